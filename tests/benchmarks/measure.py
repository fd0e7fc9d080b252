"""Timing of several ways to do the same thing, side by side.

Other programs share the machine. So each round times every way once, in random order, and what is
reported is the median over many short rounds: whatever slows the machine down slows all ways down.
The clock is the CPU time of the process, with all its threads: it stands while others run.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
import timeit
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


clock = time.process_time


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: Rounds of the rows that time one call.
        seconds: What one way takes in one round, about.
        repeats: Rounds of the rows that time something once, such as an import.
        scale: How large the large things are: nested calls, methods, modules.
    """

    rounds: int
    seconds: float
    repeats: int
    scale: float = 1.0

    def size(self, number: int) -> int:
        """A number of calls, methods or modules, cut down where the effort is small."""
        return max(2, int(number * self.scale))


FULL = Effort(rounds=301, seconds=0.0006, repeats=9)
QUICK = Effort(rounds=101, seconds=0.0003, repeats=3)
TINY = Effort(rounds=3, seconds=0.0001, repeats=1, scale=0.02)


@dataclass(frozen=True)
class Figure:
    """One cell of the table.

    Attributes:
        value: The median: seconds, or a number of things.
        spread: Distance of the quartiles, as a share of the median.
        unit: "s", or what is counted.
    """

    value: float
    spread: float = 0.0
    unit: str = "s"

    @classmethod
    def of(cls, samples: list[float], unit: str = "s") -> Figure:
        """Median and spread of some samples."""
        middle = statistics.median(samples)
        if len(samples) < 4 or not middle:
            return cls(middle, 0.0, unit)
        low, _, high = statistics.quantiles(samples, n=4)
        return cls(middle, (high - low) / middle, unit)


@dataclass(frozen=True)
class Call:
    """A statement to time, the names in it, and how many calls it makes."""

    statement: str
    names: dict[str, Any]
    calls: int = 1

    def timer(self) -> timeit.Timer:
        """The statement in a loop."""
        return timeit.Timer(self.statement, timer=clock, globals=self.names)

    def result(self) -> Any:
        """What the statement gives."""
        return eval(self.statement, self.names)


def interleaved(ways: dict[str, Call], effort: Effort) -> dict[str, Figure]:
    """Time each way in each round."""
    timers = {name: way.timer() for name, way in ways.items()}
    numbers = {name: _number(timer, effort.seconds) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    shuffled = random.Random(0)
    names = list(timers)
    for _ in range(effort.rounds):
        shuffled.shuffle(names)
        for name in names:
            number = numbers[name]
            samples[name].append(timers[name].timeit(number) / number / ways[name].calls)
    return {name: Figure.of(found) for name, found in samples.items()}


def _number(timer: timeit.Timer, seconds: float) -> int:
    """How many times fit in so many seconds."""
    timer.timeit(20)  # compile, resolve, and let Python specialise its bytecode
    once = min(timer.timeit(5) for _ in range(3)) / 5
    return max(1, round(seconds / once))


def interleaved_once(
    ways: dict[str, Callable[[], Callable[[], Any]]], repeats: int
) -> dict[str, Figure]:
    """Time things that can happen once: each way is prepared anew in each round."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    shuffled = random.Random(0)
    names = list(ways)
    for _ in range(repeats):
        shuffled.shuffle(names)
        for name in names:
            run = ways[name]()
            samples[name].append(once(run))
    return {name: Figure.of(found) for name, found in samples.items()}


def once(run: Callable[[], Any]) -> float:
    """The seconds that something takes, without the garbage that others left."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        run()
        return clock() - start
    finally:
        if was_enabled:
            gc.enable()
