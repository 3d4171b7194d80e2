"""The life of registered resource managers (RMs): running, paused while the connection is lost, stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar, final

from .....model.values.allocation import PlacementHalt, RefusalReason
from .....model.values.states import ManagerEvent, ManagerState, next_manager_state
from ....si.api import ResourceManagerCallback
from ....si.arguments import check_type

if TYPE_CHECKING:
    from .managers import Managers
    from .registrations import Registrations

T = TypeVar("T")

_HALTS: Final[Mapping[ManagerState, RefusalReason]] = {
    ManagerState.PAUSED: RefusalReason.MANAGER_PAUSED,
    ManagerState.STOPPED: RefusalReason.MANAGER_STOPPED,
}
"""The states in which nothing new is placed for an RM, and what blocks its asks then."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerStatus:
    """The state of one resource manager at one moment."""

    rm_id: str
    state: ManagerState
    since_ns: int
    """When it entered the state, or last registered if it runs; nanoseconds since 1970."""
    reason: str = ""
    """The caller's reason why it was paused or stopped; empty while it runs."""
    is_lost: bool = False
    """Whether its connection was lost, and it has not come back."""
    partitions: tuple[str, ...] = ()
    """The short names of its partitions, sorted."""
    connection: str = ""
    """How it is connected, or was last, such as `si.v1 from ipv4:127.0.0.1:40000`; empty in this process."""


@final
class ManagerLife:
    """The life of one registration of an RM; one that registers again gets another.

    Written under the registration lock alone. Any thread reads: each field is one reference to a value that
    never changes.

    Args:
        rm_id: The id of the RM.
        now_ns: Returns the time, nanoseconds since 1970.
        before: The life of its registration before, which this one continues; it is not changed.
    """

    __slots__ = ("_now_ns", "halt", "status")

    def __init__(self, rm_id: str, now_ns: Callable[[], int], *, before: ManagerLife | None = None) -> None:
        self._now_ns = now_ns
        state = ManagerState.INIT if before is None else before.status.state
        self.status: ManagerStatus = ManagerStatus(rm_id=rm_id, state=state, since_ns=now_ns())
        self.halt: PlacementHalt | None = None
        """Why nothing new is placed for the RM, `None` while it runs."""

    def advance(self, event: ManagerEvent, reason: str = "") -> bool:
        """Enter the next state; return whether the state knows the event. Otherwise nothing changes."""
        state = next_manager_state(self.status.state, event)
        if state is None:
            return False
        now_ns = self._now_ns()
        is_lost = event in (ManagerEvent.LOSE_CONNECTION, ManagerEvent.TIME_OUT)
        self.status = replace(self.status, state=state, since_ns=now_ns, reason=reason, is_lost=is_lost)
        halted_by = _HALTS.get(state)
        self.halt = (
            None if halted_by is None else PlacementHalt(reason=halted_by, since_ns=now_ns, detail=reason)
        )
        return True

    def pause(self, reason: str) -> bool:
        """Note that the connection is lost; return whether that is new, and the RM has not stopped."""
        return self.advance(ManagerEvent.LOSE_CONNECTION, reason)

    def stop(self, reason: str) -> bool:
        """Note that the RM has shut down, or was paused for too long; return whether that is new."""
        paused = self.status.state is ManagerState.PAUSED
        return self.advance(ManagerEvent.TIME_OUT if paused else ManagerEvent.SHUT_DOWN, reason)

    @property
    def has_stopped(self) -> bool:
        """Whether the RM must register again before it may ask for anything."""
        return self.status.state is ManagerState.STOPPED


class LifeSide(ABC):
    """The methods of `Scheduler` for the life of resource managers; `Scheduler` has the rest."""

    _managers: Managers
    _registrations: Registrations

    @abstractmethod
    def _uninterrupted(self, function: Callable[[], T]) -> T:
        """Run a function that an interrupt must not stop half-way."""

    @abstractmethod
    def _note_loss(self) -> None:
        """Take note that something was lost: the health is checked soon."""

    def pause_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """Place nothing new for a resource manager whose connection is lost, until it registers again.

        Its requests, timers and callbacks continue. A cycle that is under way may still place one ask.

        Args:
            rm_id: The id of the resource manager.
            reason: How the connection was lost, in words; explanations quote it.
            callback: The callback that it had registered with over this connection. If it has registered
                with another one since, nothing happens.

        Returns:
            Whether it is paused now and was not before. One that has stopped stays so.

        Raises:
            RequestError: no such resource manager has registered, the scheduler has been stopped, or a
                predicate calls.
        """
        check_type("rm_id", rm_id, str)
        check_type("reason", reason, str)
        self._managers.callback_threads.refuse("a pause of a resource manager")
        paused = self._uninterrupted(lambda: self._registrations.pause(rm_id, reason, callback))
        if paused:
            self._note_loss()
        return paused

    def stop_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """End the timers of a resource manager, and refuse its requests, until it registers again.

        Its partitions are unchanged and can be read, and nothing new is placed. It has shut down, or it was
        paused for too long. Queued announcements are still delivered.

        Args:
            rm_id: The id of the resource manager.
            reason: Why it ends, in words; refusals and explanations quote it.
            callback: As for `pause_manager`.

        Returns:
            Whether it is stopped now and was not before.

        Raises:
            RequestError: as for `pause_manager`.
        """
        check_type("rm_id", rm_id, str)
        check_type("reason", reason, str)
        self._managers.callback_threads.refuse("a stop of a resource manager")
        return self._uninterrupted(lambda: self._registrations.stop(rm_id, reason, callback))

    def forget_manager(self, rm_id: str) -> None:
        """Forget a resource manager that has stopped, with its partitions and all that is counted of it.

        Raises:
            RequestError: it has not stopped, no such one has registered, the scheduler has been stopped, or
                a callback or predicate calls.
        """
        check_type("rm_id", rm_id, str)
        self._managers.callback_threads.refuse("the end of a resource manager")
        self._uninterrupted(lambda: self._registrations.forget(rm_id))
