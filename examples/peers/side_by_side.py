"""Run one piece of work plainly, frozen with dispatch only, and frozen with jit, and compare.

Each way has a process of its own, so that none finds what another has compiled. `first` is the
first run of the work, with everything that has to be traced and compiled; `later` is the best of
the runs that follow.
"""

import json
import os
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

WAYS = ("plain", "dispatch", "jit")


def measure(work, way, profile):
    """Run the work in this process, and print its numbers and times as JSON."""
    import numpy as np

    start = time.perf_counter()
    if way != "plain":
        import plum_freeze

        # Libraries that others extend: what is registered later is accepted.
        report = plum_freeze.freeze("*", jit=way == "jit", on_late="accept")
    numbers = work()
    first = time.perf_counter() - start
    runs, began = [], time.perf_counter()
    while len(runs) < 5 or (time.perf_counter() - began < 3 and len(runs) < 200):
        start = time.perf_counter()
        numbers = work()
        runs.append(time.perf_counter() - start)
    if profile == "profile":
        import cProfile

        cProfile.runctx("work()", {"work": work}, {}, sort="tottime")
    if profile == "report":
        print(report)
    numbers = np.asarray(numbers, dtype=float).ravel().tolist()
    print(json.dumps({"numbers": numbers, "first": first, "later": min(runs)}))


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
    print(f"{'':10}{'first':>12}{'later':>12}   numbers")
    for way in WAYS:
        one = found[way]
        same = all(
            abs(a - b) <= 1e-5 * max(1, abs(a))
            for a, b in zip(plain["numbers"], one["numbers"], strict=True)
        )
        says = "identical" if plain["numbers"] == one["numbers"] else "close" if same else "DIFFERENT"
        factors = "" if way == "plain" else (
            f"   {plain['first'] / one['first']:.2f} times as fast first,"
            f" {plain['later'] / one['later']:.2f} later"
        )
        print(f"{way:10}{one['first']:10.3f} s{1e3 * one['later']:9.2f} ms   {says}{factors}")
    if "DIFFERENT" in str(found) or not all(len(f["numbers"]) for f in found.values()):
        sys.exit(1)
