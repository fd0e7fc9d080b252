"""Edit and run again, as in a notebook: what is compiled, and the time to the next answer.

    python -m tests.benchmarks.rerun

A method is defined again twenty times. After each a model that uses it is called, and forty jitted
functions that do not; by three ways to have no stale result.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import plum

import plum_freeze

EDITS = 20
OTHERS = 40
EVENT = "/jax/core/compile/backend_compile_duration"
WAYS = {
    "jax.clear_caches()": "clear",
    "plum_freeze, by epoch": "epoch",
    "plum_freeze, exact": "exact",
}


def main() -> None:
    """Run each way in a process of its own, and print a table."""
    print(f"{'after each of 20 edits':24} {'compilations':>12} {'ms to the answers':>18}")
    for title, way in WAYS.items():
        env = os.environ | {"PLUM_FREEZE_INVALIDATION": "epoch" if way != "exact" else "exact"}
        command = [sys.executable, "-m", "tests.benchmarks.rerun", way]
        found = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        compiled, ms = found.stdout.split()
        print(f"{title:24} {compiled:>12} {float(ms):>18.0f}")


def measure(way: str) -> None:
    """Edit twenty times; print the medians of compilations and milliseconds."""
    plum_freeze.install()
    dispatch = plum.Dispatcher()
    compiled: list[float] = []

    def listen(name: str, seconds: float, **_: object) -> None:
        if name == EVENT:
            compiled.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)

    def cell(k):
        @dispatch
        def loss(x: jax.Array):
            return jnp.sum(x**2) * k

        return loss

    loss = cell(1.0)
    plum_freeze.freeze(loss, on_late="accept")
    model = jax.jit(jax.grad(lambda x: loss(jnp.sin(x))))
    others = [jax.jit(lambda x, i=i: jnp.where(x > i, x, jnp.cos(x))) for i in range(OTHERS)]
    x = jnp.arange(3.0)

    def answers() -> None:
        model(x).block_until_ready()
        for other in others:
            other(x).block_until_ready()

    answers()
    cell(2.0)  # the first change tries out what is relied on
    answers()
    counts, times = [], []
    for k in range(EDITS):
        compiled.clear()
        start = time.perf_counter()
        cell(3.0 + k)
        if way == "clear":
            jax.clear_caches()
        answers()
        times.append((time.perf_counter() - start) * 1e3)
        counts.append(len(compiled))
    print(statistics.median(counts), statistics.median(times))


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
