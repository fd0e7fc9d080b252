"""What a module's body finds of its loader, and who it says that it is."""

from plum_freeze import _hook
from plum_freeze._origin import find

LOADER = __loader__
SPEC_LOADER = __spec__.loader
EXECUTING = _hook.executing()


@find
def add(x, y):
    return x + y
