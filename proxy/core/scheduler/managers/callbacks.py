"""Callbacks of resource managers (RMs): their threads, their failures, and when they are delivered."""

from __future__ import annotations

import inspect
import json
import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from .....actors.services.interrupts import Uninterrupted
from .....actors.services.log import Log
from .....model.applications.report import ApplicationSummary
from .....model.errors import LicorneError, RequestError, error_text
from .....model.values.messages import (
    AllocationPlaced,
    AllocationsRejected,
    AllocationsReleased,
    Announcement,
    ApplicationsAnswered,
    NodesAnswered,
)
from ....si.api import ResourceManagerCallback
from ....si.older_generation import Delivery, EventsHappened
from ....si.writing import dispatch

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
_FIELDS: Final = {
    "partition": "partition",
    "application_id": "application",
    "allocation_key": "allocation_key",
    "node_id": "node",
}


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


class TakesAnnouncements(ABC):
    """A callback in this package that takes some announcements of the model without a message."""

    @abstractmethod
    def announced(self, announcement: Announcement | EventsHappened) -> bool:
        """Process an announcement; return false for one that is to come as a message."""


def dispatcher_for(callback: ResourceManagerCallback) -> Callable[..., None]:
    """Return `dispatch`; for a callback that takes announcements itself, one for those that it leaves."""
    if not isinstance(callback, TakesAnnouncements):
        return dispatch
    takes = callback.announced
    return lambda news, callback, older: None if takes(news) else dispatch(news, callback, older=older)


ErrorHook: TypeAlias = "Callable[[CallbackFailure], object]"
"""Called with failures on the thread that called the RM; it may not make calls that wait for partitions."""


def is_fault(error: BaseException) -> bool:
    """Return whether what a predicate raises looks like a fault of the program rather than a refusal."""
    return isinstance(error, _FAULTS) or not isinstance(error, Exception)


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
        except BaseException as another:  # noqa: BLE001 - it is shown; it cannot be reported elsewhere
            self._show(rm_id, "on_error", another)

    def _show(self, rm_id: str, callback: str, error: BaseException, subject: str = "") -> None:
        kind = (rm_id, callback, type(error))
        if kind in self._shown or len(self._shown) >= _KINDS_MAX:
            return
        self._shown.add(kind)
        logging.getLogger("licorne").error(
            "%s of resource manager %r raised %s%s; the scheduler continues, and reports no other %s there",
            *(callback, rm_id, error_text(error), f" about {subject!r}" if subject else ""),
            type(error).__name__,
            exc_info=error,
            extra={"rm_id": rm_id},
        )


@final
class CallbackThreads(threading.local):
    """Contexts that are entered around each predicate and callback; each thread has its own state.

    The partition that asks a predicate or policy waits for its answer. A call from inside it that waits for
    partitions could wait for ever: for this partition, or for another thread that waits for it. A callback
    may call the scheduler, but must not wait for another callback, which may do the same.
    """

    def __init__(self) -> None:
        self.questions = 0
        """How many questions to predicates and policies the thread is answering."""
        self._callback_of: str | None = None

    @contextmanager
    def predicate(self) -> Iterator[None]:
        """Mark the thread as inside a predicate."""
        self.questions += 1
        try:
            yield
        finally:
            self.questions -= 1

    @contextmanager
    def callback(self, rm_id: str) -> Iterator[None]:
        """Mark the thread as inside a callback of a resource manager."""
        before = self.enter_callback(rm_id)
        try:
            yield
        finally:
            self.leave_callback(before)

    def enter_callback(self, rm_id: str) -> str | None:
        """Mark the thread as `callback` does, for a third of its time; return what `leave_callback` needs."""
        before, self._callback_of = self._callback_of, rm_id
        return before

    def leave_callback(self, before: str | None) -> None:
        """Restore the mark of the thread from before `enter_callback`."""
        self._callback_of = before

    @property
    def callback_of(self) -> str | None:
        """The resource manager whose callback runs on this thread."""
        return self._callback_of

    @property
    def may_wait(self) -> bool:
        """Whether a call from this thread may wait for room: the scheduler does not wait for it."""
        return not self.questions and self._callback_of is None

    def refuse(self, call: str) -> None:
        """Refuse a call if this thread is inside a predicate.

        Raises:
            RequestError: it is; nothing has changed.
        """
        if self.questions:
            raise RequestError(
                f"{call} inside a predicate is refused: the partition that asked the predicate waits for it"
            )


@final
class Outbox:
    """One queue for all RMs of a scheduler, so that their callbacks come in the order of the causes."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[Delivery], None], Delivery]] = deque()

    def announcer(self, deliver: Callable[[Delivery], None]) -> Callable[[Delivery], None]:
        """Return the function with which an RM's partitions announce; `deliver` reports its errors itself."""

        def announce(announcement: Delivery) -> None:
            self._waiting.append((deliver, announcement))

        return announce

    def deliver(self) -> int:
        """Deliver all announcements, also those that the callbacks cause; return how many there were."""
        count = 0
        while self._waiting:
            with Uninterrupted() as section:
                while self._waiting and not section.is_interrupted:
                    self._deliver_next()
                    count += 1
        return count

    def _deliver_next(self) -> None:
        deliver, announcement = self._waiting.popleft()
        try:
            deliver(announcement)
        except KeyboardInterrupt:
            raise  # The keys were pressed twice: callbacks run on the program's own thread here.
        except BaseException:  # noqa: BLE001, S110 - it has been reported
            pass


def announcement_fields(announcement: object) -> dict[str, str]:
    """Return the partition, application, allocation and node of an announcement about one thing."""
    subject = announcement
    match announcement:
        case AllocationPlaced(allocation=allocation):
            fields = {"application": allocation.ask.application_id, "node": allocation.node_id}
            return {**fields, "allocation_key": allocation.allocation_key}
        case AllocationsReleased(releases=(release,)):
            subject = release
        case AllocationsRejected(rejections=(rejection,)):
            subject = rejection
        case ApplicationsAnswered(accepted=accepted, rejected=rejected):
            names = (*accepted, *(one.subject_id for one in rejected))
            return {"application": names[0]} if len(names) == 1 else {}
        case NodesAnswered(accepted=accepted, rejected=rejected):
            names = (*accepted, *(one.subject_id for one in rejected))
            return {"node": names[0]} if len(names) == 1 else {}
        case _:
            pass
    return {field: value for name, field in _FIELDS.items() if (value := getattr(subject, name, ""))}


@final
class _Summary:
    """A summary that is converted to text only if its log record is written."""

    __slots__ = ("_rm_id", "_summary")

    def __init__(self, rm_id: str, summary: ApplicationSummary) -> None:
        self._rm_id = rm_id
        self._summary = summary

    def __str__(self) -> str:
        from ...documents.applications import summary_document  # noqa: PLC0415 - most are not written

        return json.dumps(summary_document(self._summary) | {"RmID": self._rm_id})


def summariser(rm_id: str, log: Log) -> Callable[[ApplicationSummary], None]:
    """Return the function that logs one RM's application summaries; operators search for their first word."""

    def summarise(summary: ApplicationSummary) -> None:
        fields = {"application": summary.application_id, "queue": summary.queue_path}
        log.bind(**fields).info("YK_APP_SUMMARY: {}", _Summary(rm_id, summary))

    return summarise
