"""Reports of callbacks of a resource manager (RM) that raise: the program gets them, and goes on."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from .....model.errors import LicorneError

_FAULTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    TypeError,
)
_KINDS_MAX: Final = 1_000
"""How many kinds of failures are shown, the first of each: a program may make any number of error classes."""


@final
@dataclass(frozen=True, slots=True)
class CallbackFailure:
    """A callback or predicate of a resource manager, or a policy, that raised or answered with no answer."""

    rm_id: str
    callback: str
    """Its name, for example `update_allocation`, or `policy sjf.application_key`."""
    error: BaseException
    subject: str = ""
    """The node, application or ask that a policy was asked about."""


ErrorHook: TypeAlias = "Callable[[CallbackFailure], object]"
"""Called with failures on the thread that called the RM; it may not make calls that wait for partitions."""


def is_fault(error: BaseException) -> bool:
    """Return whether what a predicate raises looks like a fault of the program rather than a refusal."""
    return isinstance(error, _FAULTS) or not isinstance(error, Exception)


def text_of(error: BaseException) -> str:
    """Return the text of an error, with its type unless it is one of ours, raised on purpose."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text of a foreign error
        text = "its text cannot be read"
    kind = type(error).__name__
    if not text:
        return kind
    return text if isinstance(error, LicorneError) else f"{kind}: {text}"


@final
class CallbackFailures:
    """Reports failing callbacks to the program.

    Args:
        on_error: called with each of them. Without it the first one of each kind (RM, callback, type of
            error) is logged as an error by `logging`, which writes to standard error unless it is configured.
    """

    def __init__(self, on_error: ErrorHook | None) -> None:
        if on_error is not None and not callable(on_error):
            raise LicorneError(f"on_error={on_error!r:.200} cannot be called")
        if inspect.iscoroutinefunction(on_error):
            raise LicorneError("on_error is `async def`, and is not awaited: write `def`")
        self._on_error = on_error
        self._shown: set[tuple[str, str, type]] = set()

    def note(self, rm_id: str, callback: str, error: BaseException, subject: str = "") -> None:
        """Report one failure; nothing is raised."""
        if self._on_error is None:
            self._show(rm_id, callback, error, subject)
            return
        try:
            self._on_error(CallbackFailure(rm_id, callback, error, subject))
        except BaseException as another:  # noqa: BLE001 - it is shown; there is no other place to report it
            self._show(rm_id, "on_error", another)

    def note_policy(self, rm_id: str, policy: str, subject: str, error: Exception) -> None:
        """Report that a policy has failed."""
        self.note(rm_id, policy, error, subject)

    def _show(self, rm_id: str, callback: str, error: BaseException, subject: str = "") -> None:
        kind = (rm_id, callback, type(error))
        if kind in self._shown or len(self._shown) >= _KINDS_MAX:
            return
        self._shown.add(kind)
        logging.getLogger("licorne").error(
            "%s of resource manager %r raised %s%s; the scheduler goes on, and tells of no other %s there",
            *(callback, rm_id, text_of(error), f" about {subject!r}" if subject else ""),
            type(error).__name__,
            exc_info=error,
            extra={"rm_id": rm_id},
        )
