"""What plum_freeze raises and warns. The texts say what happened, where, and what to do now."""

from __future__ import annotations

__all__ = ["FreezeError", "InvalidationWarning", "LateRegistrationError", "LateRegistrationWarning"]


class FreezeError(Exception):
    """Something that was asked of plum_freeze cannot be done; nothing of it was done."""


class LateRegistrationError(FreezeError):
    """A method was registered on a function that was frozen with `on_late="raise"`.

    The registration did not happen: the function has the methods that it had.

    Attributes:
        function: Qualified name of the function, with its module.
        signature: The signature that was refused.
        where: File and line of the registration.
        frozen_at: File and line of the `freeze()` that sealed the function.
        changes: The decisions already taken that the method would have changed, as text.
    """

    def __init__(
        self,
        text: str,
        *,
        function: str = "",
        signature: str = "",
        where: str = "",
        frozen_at: str = "",
        changes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(text)
        self.function = function
        self.signature = signature
        self.where = where
        self.frozen_at = frozen_at
        self.changes = changes


class LateRegistrationWarning(UserWarning):
    """A method was registered on a frozen function. No decision taken so far changes."""


class InvalidationWarning(LateRegistrationWarning):
    """A late registration changed decisions; what was compiled with them is compiled again."""


for _public in (
    FreezeError,
    LateRegistrationError,
    LateRegistrationWarning,
    InvalidationWarning,
):
    # Tracebacks and warning filters then show the name under which users import it.
    _public.__module__ = "plum_freeze"
