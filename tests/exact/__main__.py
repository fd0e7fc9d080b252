"""Random programs in a process of their own, for invalidation by epoch: `python -m exact SEED CALLS`.

A third word names a part of `plum_freeze._asked` to leave out.
"""

from __future__ import annotations

import sys

import plum_freeze._asked as asked
from plum_freeze import _invalidation, _watch

PARTS = ("ASKING", "FAST", "BAKING")


def main(seed: str, calls: str, without: str = "") -> None:
    if without:
        assert getattr(asked, without)
        setattr(asked, without, ())
    _watch.watch_everything()

    from . import duel, leaves

    kinds = leaves.UNTOLD if without else leaves.KINDS + leaves.UNTOLD * 4
    duel.run(int(seed), int(calls), modes=["jit", "scan"] if without else None, kinds=kinds)
    assert _invalidation.why_not(), "invalidation is exact"
    print(f"{duel.counts['calls']} calls, {duel.counts['changes']} changes, 0 stale")


if __name__ == "__main__":
    main(*sys.argv[1:])
