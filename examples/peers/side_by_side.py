"""Run one piece of work plainly, frozen with dispatch only, and frozen with jit, and compare.

Import this first. Each way has processes of its own, so that none finds what another has
compiled, and they take turns; of each the best is shown. `whole` is the whole program from the
start of Python to its end, imports, freezing and compiling among it; `warm-up` is what of it
passes before the first piece of work is done; `later` is one of the pieces that follow. All in
seconds of the clock, and in brackets in seconds of the processor, which other programs on the
machine disturb less.

    python examples/peers/SCRIPT.py             compare
    python examples/peers/SCRIPT.py WAY         one way: plain, dispatch, jit, or raise: with jit,
                                                and late registrations are refused
    python examples/peers/SCRIPT.py WAY profile     and where its time goes
    python examples/peers/SCRIPT.py WAY report      and what plum_freeze says of the functions
"""

import json
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

WAYS = ("plain", "dispatch", "jit")
TURNS = int(os.environ.get("SIDE_BY_SIDE_TURNS", "3"))
way, show = [*sys.argv[1:], None, None][:2]


def clocks():
    return time.perf_counter(), time.process_time()


def since(start):
    return [now - then for now, then in zip(clocks(), start, strict=True)]


start = clocks()
if way in ("dispatch", "jit", "raise"):
    import plum_freeze

    plum_freeze.install()  # before the package, so that nothing is compiled again at the freeze


def measure(work, times):
    """Do the work in this process, and print its numbers and times as JSON."""
    import numpy as np

    report = None
    if way != "plain":
        # Libraries that others extend: what is registered later is accepted.
        on_late = "raise" if way == "raise" else "accept"
        report = plum_freeze.freeze("*", jit=way != "dispatch", on_late=on_late)
    numbers = work()
    warm_up = since(start)
    pieces = []
    for _ in range(times - 1):
        begin = clocks()
        numbers = work()
        pieces.append(since(begin))
    later = [min(column) for column in zip(*pieces, strict=True)]
    if show == "profile":
        import cProfile

        cProfile.runctx("work()", {"work": work}, {}, sort="tottime")
    if show == "report":
        print(report)
    numbers = np.asarray(numbers, dtype=float).ravel().tolist()
    print(json.dumps({"numbers": numbers, "warm-up": warm_up, "later": later}))


def run(one):
    """Run this program in one way, and add the times of the whole."""
    # A package that is installed has its bytecode kept; one that is under work may not.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    used, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, sys.argv[0], one]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    whole = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return json.loads(done.stdout.splitlines()[-1]) | {"whole": [whole, processor]}


def main(work, times):
    """Do the work so many times in each of the three ways, and compare."""
    if way is not None:
        measure(work, times)
        return
    found = {one: [] for one in WAYS}
    for _ in range(TURNS):
        for one in WAYS:
            found[one].append(run(one))
    print(f"{'':8}{'whole':>19}{'warm-up':>19}{'later':>21}   numbers")
    best = {one: fastest(turns) for one, turns in found.items()}
    plain = best["plain"]
    for one, times_of in best.items():
        text = f"{one:8}"
        for kind, factor, unit in (("whole", 1, "s"), ("warm-up", 1, "s"), ("later", 1e3, "ms")):
            clock, processor = (factor * seconds for seconds in times_of[kind])
            text += f"{clock:9.2f} {unit} ({processor:6.2f})"
        results = [compared(plain["numbers"], turn["numbers"]) for turn in found[one]]
        text += f"   {max(results, key=('identical', 'close', 'DIFFERENT').index)}"
        if one != "plain":
            for kind in ("whole", "later"):
                clock, processor = (a / b for a, b in zip(times_of[kind], plain[kind], strict=True))
                text += f", {kind} {clock:.2f} ({processor:.2f}) of plain"
        print(text)
        if "DIFFERENT" in results:
            sys.exit(1)


def fastest(turns):
    """The best times of each kind."""
    kinds = ("whole", "warm-up", "later")
    columns = {kind: zip(*(turn[kind] for turn in turns), strict=True) for kind in kinds}
    best = {kind: [min(column) for column in both] for kind, both in columns.items()}
    return best | {"numbers": turns[0]["numbers"]}


def compared(wanted, got):
    """Whether two lists of numbers are equal, or close: inside a jitted method rounding may differ."""
    if wanted == got:
        return "identical"
    close = all(abs(a - b) <= 1e-5 * max(1, abs(a)) for a, b in zip(wanted, got, strict=True))
    return "close" if close else "DIFFERENT"


if __name__ == "__main__":
    sys.exit("run one of the scripts beside this file")
