"""What exact invalidation costs where nothing changes: the import, and a hot jitted call.

    python -m tests.benchmarks.seam

Each way is measured in processes of its own, one after the other in rounds; the medians are printed
with those of JAX alone as 1. The call is one of a user's own jitted function, which goes through
JAX's C++ fast path. It is measured once fresh, and once after the decision in another function has
changed a hundred times.
"""

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 9
CALLS = 20_000
CHANGES = 100
WAYS = {"JAX alone": "none", "plum_freeze, by epoch": "epoch", "plum_freeze, exact": "exact"}


def main() -> None:
    """Run each way in processes of its own, and print a table."""
    found: dict[str, list[list[float]]] = {title: [] for title in WAYS}
    for _ in range(ROUNDS):
        for title, way in WAYS.items():
            env = os.environ | {"PLUM_FREEZE_INVALIDATION": "epoch" if way == "epoch" else "exact"}
            command = [sys.executable, "-m", "tests.benchmarks.seam", way]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            found[title].append([float(number) for number in done.stdout.split()])
    limit: list[float] = []
    print(f"{'':24} {'import':>16} {'hot call':>16} {f'after {CHANGES} changes':>18}")
    for title, rows in found.items():
        seconds, hot, later = (statistics.median(column) for column in zip(*rows, strict=True))
        limit = limit or [seconds, hot, later]
        print(
            f"{title:24} {seconds:6.2f} s ({seconds / limit[0]:4.2f})"
            f" {hot * 1e6:6.2f} us ({hot / limit[1]:4.2f})"
            f" {later * 1e6:8.2f} us ({later / limit[2]:4.2f})"
        )


def measure(way: str) -> None:
    """Print the seconds of the imports, and of a hot call before and after changes."""
    start = time.perf_counter()
    import jax.numpy as jnp
    import plum

    if way != "none":
        import plum_freeze

        plum_freeze.install()
    import jax

    seconds = time.perf_counter() - start
    dispatch = plum.Dispatcher()

    def define(k):
        @dispatch
        def other(x: jax.Array):
            return x * k

        return other

    other = define(1.0)
    if way != "none":
        plum_freeze.freeze(other, on_late="accept")
    user, x = jax.jit(lambda x: x + 1), jnp.arange(3.0)
    hot = _call(user, x)
    for k in range(CHANGES):
        define(float(k))
        other(x)
    print(seconds, hot, _call(user, x))


def _call(user, x) -> float:
    """Seconds of one call, the median of ten turns."""
    turns = []
    user(x).block_until_ready()
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(CALLS // 10):
            user(x)
        turns.append((time.perf_counter() - start) / (CALLS // 10))
    return statistics.median(turns)


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
