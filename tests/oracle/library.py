"""plum_freeze as the oracle uses it, and fakes: one that is nothing, and some that are wrong.

The fakes show that the harness can fail before there is anything to test, and afterwards.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import plum


class Library:
    """What a frozen world needs of a freezer. This one does nothing at all."""

    keeps_callers = True
    seals = True  # whether what is frozen is right without plum clearing its caches
    late: tuple[type[Warning], ...] = ()
    refusal: type[Exception] | None = None

    def install(self, package: str) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def freeze(self, functions: Iterable[plum.Function], *, jit: bool, on_late: str) -> None:
        pass

    def thaw(self, functions: Iterable[plum.Function]) -> None:
        pass

    def thawed(self, functions: Iterable[plum.Function]) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def report(self, functions: Iterable[plum.Function]) -> None:
        """Look at everything that can be asked about functions, which changes nothing."""

    def is_frozen(self, function: plum.Function) -> bool | None:
        """Whether it is sealed, or `None` if this library does not know."""
        return None

    @contextlib.contextmanager
    def watching(self) -> Iterator[list[Any]]:
        """Collect this library's warnings, and let others be errors as they are in our tests."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            for category in self.late:
                warnings.simplefilter("always", category)
            yield caught


class Plain(Library):
    """Plain plum twice, with new callers each time: nothing may ever differ."""

    keeps_callers = False
    seals = False


class Naive(Library):
    """The first thing one tries: `jax.jit` around each method."""

    def freeze(self, functions: Iterable[plum.Function], *, jit: bool, on_late: str) -> None:
        for function in functions:
            for method in list(function.methods):
                function.register(jax.jit(method.implementation), signature=method.signature)


class Real(Library):
    """plum_freeze."""

    def __init__(self) -> None:
        import plum_freeze

        self._library = plum_freeze
        self.late = (plum_freeze.LateRegistrationWarning,)
        self.refusal = plum_freeze.LateRegistrationError

    def install(self, package: str) -> contextlib.AbstractContextManager[Any]:
        return self._library.install(package)

    def freeze(self, functions: Iterable[plum.Function], *, jit: bool, on_late: str) -> None:
        self._library.freeze(*functions, jit=jit, on_late=on_late)

    def thaw(self, functions: Iterable[plum.Function]) -> None:
        self._library.thaw(*functions)

    def thawed(self, functions: Iterable[plum.Function]) -> contextlib.AbstractContextManager[Any]:
        return self._library.thawed(*functions)

    def report(self, functions: Iterable[plum.Function]) -> None:
        self._library.registrations(*functions)
        self._library.report(*functions).as_dict()

    def is_frozen(self, function: plum.Function) -> bool | None:
        return self._library.is_frozen(function)
