"""The errors of this package. Each is a `LockCheckError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .findings import Finding

CLEAN: Final = 0
FOUND: Final = 1
"""Something that fails was found."""
USAGE: Final = 2
"""A command was called wrongly, or a file could not be read or written."""
FAULT: Final = 3
"""The checker itself had an error."""


class LockCheckError(RuntimeError):
    """The base of all errors of this package.

    Attributes:
        finding: the finding, if the error comes from a check.
    """

    def __init__(self, text: str, finding: Finding | None = None) -> None:
        super().__init__(text)
        self.finding = finding


class LockUsageError(LockCheckError):
    """A lock was used in a way that it cannot serve, such as taken twice by one thread."""


class LockOrderError(LockCheckError):
    """A declared order or a contract was broken (R0); raised before the lock is taken."""


class DeadlockPossibleError(LockCheckError):
    """A cycle that nothing guards (R2 and above); raised before the lock is taken."""


class DeadlockError(LockCheckError):
    """Threads wait for each other (R5), and this one was chosen to give way."""


class OrderDeclarationError(LockCheckError, ValueError):
    """A declaration that cannot be read, contradicts itself or allows a deadlock."""


class LockOrderWarning(RuntimeWarning):
    """A finding of a session whose policy is to warn."""


def fault_said(error: Exception) -> str:
    """Return what is said of an error of the checker itself."""
    return f"a fault of its own, please report: {type(error).__name__}: {error}"
