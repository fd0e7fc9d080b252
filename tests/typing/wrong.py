"""What a type checker must refuse: each line with a mark is an error, and no other."""

from __future__ import annotations

import plum_freeze


@plum_freeze.eager
def counts(x: int) -> str:
    return str(x)


counts("one")  # wrong
counts(1).real  # wrong
plum_freeze.freeze(on_late=1)  # wrong
plum_freeze.freeze(jit="yes")  # wrong
plum_freeze.freeze(verfy=True)  # wrong
plum_freeze.traced(1)  # wrong
plum_freeze.eager(3)  # wrong
plum_freeze.install(plum_freeze)  # wrong
plum_freeze.report().as_dict()[0]  # wrong
plum_freeze.nothing  # wrong
