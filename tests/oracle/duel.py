"""The same step in all worlds, compared; and the shortening of a program that differs."""

from __future__ import annotations

import collections
import time
from typing import TYPE_CHECKING, Any

from .compare import Outcome, describe_error, difference
from .control import Thawed
from .speed import remembered_compilations
from .steps import Call, MidTrace, Plugin, is_refusal
from .world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .library import Library
    from .steps import Step

counts: collections.Counter[str] = collections.Counter()


class Difference(AssertionError):
    """Two worlds gave different outcomes for one step."""


class Duel:
    """A plain world against a frozen one that jits and a frozen one that does not."""

    def __init__(self, library: Library, on_late: str = "accept") -> None:
        self.library = library
        self.on_late = on_late
        self.program: list[Step] = []
        self.plain = World("plain", None)
        self.frozen = (
            World("frozen", library, jit=True, on_late=on_late),
            World("frozen without jit", library, jit=False, on_late=on_late),
        )
        counts["programs"] += 1

    def take(self, step: Step) -> None:
        """Take a step in every world.

        Raises:
            Difference: Where a frozen world differs from the plain one.

        """
        number = len(self.program)
        self.program.append(step)
        counts["steps"] += 1
        counts["calls"] += isinstance(step, Call) or isinstance(step, MidTrace) * 2
        said = []
        for world in self.frozen:
            late = world.late
            with self.library.watching() as caught:
                said.append(_taken(step, world, number))
            counts["late registrations"] += world.late - late
            counts["late warnings"] += len(caught)
        refused = [is_refusal(s) for s in said]
        if self.on_late == "raise" and all(refused):
            counts["refusals"] += 1
            return  # the plain world would have registered it
        with self.library.watching():
            self.plain.leave_unwatched()
            wanted = _taken(step, self.plain, number)
        for world, got in zip(self.frozen, said, strict=True):
            counts["comparisons"] += 1
            if text := _differs(step, wanted, got):
                raise Difference(
                    f"{world.name}, on_late={self.on_late!r}, step {number}: {step}\n{text}"
                )
        counts["raised"] += wanted.kind == "raised"
        counts["call raised"] += wanted.kind == "raised" and isinstance(step, Call)

    def close(self) -> None:
        for world in (self.plain, *self.frozen):
            world.close()


def _taken(step: Step, world: World, number: int) -> Outcome:
    try:
        return step.run(world, number)
    except (NameError, KeyError) as error:  # a class that comes later, a function left out
        return Outcome("raised", describe_error(error))


def _differs(step: Step, wanted: Outcome, got: Outcome) -> str:
    text = difference(wanted, got)
    inner = step.inside if isinstance(step, Thawed) else step
    if not text or not isinstance(inner, MidTrace) or wanted.kind != got.kind:
        return text
    # The trace in which the registration landed may mix old and new as Python would, or be all new.
    _, renewed = (Outcome(*half) for half in wanted.what)
    first, second = (Outcome(*half) for half in got.what)
    return difference(renewed, second) or difference(renewed, first)


def run(program: Iterable[Step], library: Library, on_late: str = "accept") -> None:
    """Run a program in fresh worlds.

    Raises:
        Difference: Where a frozen world differs from the plain one.

    """
    with remembered_compilations():
        duel = Duel(library, on_late)
        try:
            for step in program:
                duel.take(step)
        finally:
            duel.close()


def shortened(
    program: list[Step], library: Library, on_late: str, seconds: float = 60
) -> tuple[list[Step], str]:
    """A shorter program that differs too, and what it says. Steps are left out, large chunks first."""

    def said(candidate: list[Step]) -> str:
        try:
            run(candidate, library, on_late)
        except Difference as error:
            return str(error)
        return ""

    text = said(program)
    if not text:
        return program, "(run alone, the program does not differ: something before it is needed)"
    end = time.monotonic() + seconds
    size = len(program) // 2
    while size and time.monotonic() < end:
        start = 0
        while start < len(program) and time.monotonic() < end:
            candidate = program[:start] + program[start + size :]
            if shorter := said(candidate):
                program, text = candidate, shorter
            else:
                start += size
        size = size // 2 if size > 1 else 0
    for i, step in enumerate(program):
        for simpler in _simpler(step):
            candidate = [*program[:i], simpler, *program[i + 1 :]]
            if time.monotonic() < end and (shorter := said(candidate)):
                program, text = candidate, shorter
    return program, text


def _simpler(step: Any) -> Iterable[Step]:
    if isinstance(step, Thawed):
        yield step.inside
    if isinstance(step, Plugin):
        yield step.imports
        yield step.registered
    if isinstance(step, MidTrace):
        yield step.call


def printed(program: list[Step]) -> str:
    """A program as text, to read and to think about."""
    return "\n".join(str(step) for step in program)


def as_data(program: list[Step]) -> str:
    """A program as text that evaluates to it, to keep as a test."""
    return "[\n" + "".join(f"    {step!r},\n" for step in program) + "]"
