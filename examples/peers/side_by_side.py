"""Run one piece of work plainly, frozen with dispatch only, and frozen with jit, and compare.

Each way has a process of its own, so that none finds what another has compiled. `first` is the
first run of the work, with everything that has to be traced and compiled; `later` is the best of
the runs that follow. Both in seconds of the clock, and in seconds of the processor, which other
programs on the machine disturb less.
"""

import json
import os
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

WAYS = ("plain", "dispatch", "jit")


def clocks():
    return time.perf_counter(), time.process_time()


def since(start):
    return [now - then for now, then in zip(clocks(), start, strict=True)]


def measure(work, way, profile):
    """Run the work in this process, and print its numbers and times as JSON."""
    import numpy as np

    start = clocks()
    if way != "plain":
        import plum_freeze

        # Libraries that others extend: what is registered later is accepted.
        report = plum_freeze.freeze("*", jit=way == "jit", on_late="accept")
    numbers = work()
    first = since(start)
    runs = []
    began = time.perf_counter()
    while len(runs) < 5 or (time.perf_counter() - began < 3 and len(runs) < 200):
        start = clocks()
        numbers = work()
        runs.append(since(start))
    later = [min(column) for column in zip(*runs, strict=True)]
    if profile == "profile":
        import cProfile

        cProfile.runctx("work()", {"work": work}, {}, sort="tottime")
    if profile == "report":
        print(report)
    numbers = np.asarray(numbers, dtype=float).ravel().tolist()
    print(json.dumps({"numbers": numbers, "first": first, "later": later}))


def main(work):
    """Compare the three ways; with a way as argument, run only that."""
    if len(sys.argv) > 1:
        measure(work, sys.argv[1], *(sys.argv[2:] or [None]))
        return
    found = {}
    for way in WAYS:
        command = [sys.executable, sys.argv[0], way]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[way] = json.loads(done.stdout.splitlines()[-1])
    plain = found["plain"]
    print(f"{'':10}{'first':>19}{'later':>21}   numbers")
    for way, one in found.items():
        first, later = one["first"], one["later"]
        text = f"{way:10}{first[0]:8.2f} s ({first[1]:6.2f}){1e3 * later[0]:9.2f} ms ({1e3 * later[1]:6.1f})"
        text += f"   {compared(plain['numbers'], one['numbers'])}"
        if way != "plain":
            text += f", {plain['first'][0] / first[0]:.2f} and {plain['later'][0] / later[0]:.2f} times as fast"
        print(text)
    if any(compared(plain["numbers"], one["numbers"]) == "DIFFERENT" for one in found.values()):
        sys.exit(1)


def compared(wanted, got):
    """Whether two lists of numbers are equal, or close: inside a jitted method rounding may differ."""
    if wanted == got:
        return "identical"
    close = all(abs(a - b) <= 1e-5 * max(1, abs(a)) for a, b in zip(wanted, got, strict=True))
    return "close" if close else "DIFFERENT"


if __name__ == "__main__":
    sys.exit("run one of the scripts beside this file")
