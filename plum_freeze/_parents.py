"""An inherited method: a decision that an assignment to a class changes, which nobody tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plum_freeze import _plum
from plum_freeze._dependencies import Baked

if TYPE_CHECKING:
    from plum_freeze._plum import Function


class Parents(Baked):
    """Where a function of a class has found no method of its own: what its parents hold.

    `Parent.f = g` is an assignment, and no registration. Python 3.12 and later can tell of it
    (`PyType_Watch`), but from within the assignment, where a look-up by Python code leaves the old
    method in the interpreter's own cache for good. So it is compared when it is needed.
    """

    __slots__ = ("held", "name", "order", "owner")
    is_told = False

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.owner = function.owner
        self.order = getattr(self.owner, "__mro__", ())
        self.name = _plum.first_implementation(function).__name__
        self.held = _plum.parents_holding(function)

    @property
    def subject(self) -> object:
        """The class and the name."""
        return id(self.owner), self.name

    def holds(self) -> bool:
        """Whether the parents are the same classes, and hold the same under the name."""
        if not self.valid or getattr(self.owner, "__mro__", ()) is not self.order:
            return False
        return all(parent.__dict__.get(self.name) is value for parent, value in self.held)
