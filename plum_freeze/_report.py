"""What `report()` returns: how each frozen function and each of its methods runs, and why."""

from __future__ import annotations

import weakref
from typing import Any

from plum_freeze import _plum, _table

failed: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


class Report:
    """What is known of some functions. `print` it, or take `as_dict()`."""

    def __init__(self, functions: list[Any]) -> None:
        self._functions = functions

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {}
