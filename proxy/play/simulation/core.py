"""The interfaces of the two sides of a simulation: a scheduler core, and the resource managers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ...si.api import SchedulerAPI
from .reporting.run_series import QueueBounds

if TYPE_CHECKING:
    from ...core.scheduler.answering.asking import QueueAndUser


class Core(Protocol):
    """A scheduler on a virtual clock that only its caller moves.

    Everything happens on the calling thread: the callbacks of resource managers arrive inside the API's
    methods, `run_until_idle` and `advance_to`, and send no requests themselves. Only predicates may be asked
    by several threads at once, if it was opened with as many; all have been answered when `run_until_idle`
    returns.
    """

    @property
    def api(self) -> SchedulerAPI:
        """The interface for resource managers."""
        ...

    def now_ns(self) -> int:
        """Return the virtual time; each core chooses where it starts."""
        ...

    def run_until_idle(self) -> int:
        """Run scheduling cycles until one changes nothing; return how many gave a result."""
        ...

    def next_deadline_ns(self) -> int | None:
        """Return when the next timer of the core is due, `None` if it has none.

        A timer that could not change anything should not be counted: a simulation visits every deadline.
        """
        ...

    def queue_and_user(self, application_id: str, rm_id: str) -> QueueAndUser | None:
        """Return where an application was placed and whose it is, `None` if it is not known."""
        ...

    def queue_bounds(self) -> Mapping[str, QueueBounds]:
        """Return what each queue that there is now is guaranteed and may use, by its path."""
        ...

    def advance_to(self, now_ns: int) -> None:
        """Move the clock forward, firing everything that is due on the way in order."""
        ...

    def close(self) -> None:
        """End the core; nothing else may be called afterwards."""
        ...


class Traffic(Protocol):
    """The side of the resource managers: it has events of its own and answers what the core says.

    Times are virtual nanoseconds from the start of the simulation.
    """

    def start(self) -> None:
        """Register with the core and bring the nodes.

        Raises:
            LicorneError: The core refuses the registration, for example its configuration.
        """
        ...

    def next_event_ns(self) -> int | None:
        """Return when something happens next on this side, `None` if nothing will any more."""
        ...

    def deliver(self, now_ns: int) -> None:
        """Process the events that are due; the requests that follow are kept for `send`."""
        ...

    def has_to_send(self) -> bool:
        """Return whether there are requests for `send`."""
        ...

    def send(self) -> None:
        """Send the requests that were kept; callbacks may come from inside and add more."""
        ...

    def is_anything_open(self) -> bool:
        """Return whether the core's timers could still matter when nothing happens on this side."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return how much is done of how much there is to do."""
        ...
