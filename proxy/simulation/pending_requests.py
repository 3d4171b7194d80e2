"""Requests of a resource manager that are kept until they are sent to the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..si import si_pb2 as si

if TYPE_CHECKING:
    from ..si.api import SchedulerAPI

__all__ = ["PendingRequests"]


@final
class PendingRequests:
    """The messages of one resource manager on their way to the scheduler, in order within each kind.

    A callback only adds: the scheduler is never called from inside its own callback.
    """

    def __init__(self, api: SchedulerAPI, rm_id: str) -> None:
        self._api = api
        self._rm_id = rm_id
        self._applications: list[si.AddApplicationRequest] = []
        self._asks: list[si.Allocation] = []
        self._releases: list[si.AllocationRelease] = []

    def add_application(self, application: si.AddApplicationRequest) -> None:
        """Keep the submission of an application."""
        self._applications.append(application)

    def add_ask(self, ask: si.Allocation) -> None:
        """Keep an ask."""
        self._asks.append(ask)

    def add_release(self, release: si.AllocationRelease) -> None:
        """Keep a release; it is copied, so that it may be part of a callback's message."""
        kept = si.AllocationRelease()
        kept.CopyFrom(release)
        self._releases.append(kept)

    def is_empty(self) -> bool:
        """Return whether there is nothing to send."""
        return not (self._releases or self._applications or self._asks)

    def send(self) -> None:
        """Send releases, then applications, then asks: one request for each kind that has any.

        What callbacks add meanwhile is sent with a later kind in this order, or the next time.
        """
        if self._releases:
            releases = si.AllocationReleasesRequest(allocationsToRelease=self._releases)
            self._releases = []
            self._api.update_allocation(si.AllocationRequest(releases=releases, rmID=self._rm_id))
        if self._applications:
            applications, self._applications = self._applications, []
            self._api.update_application(si.ApplicationRequest(new=applications, rmID=self._rm_id))
        if self._asks:
            asks, self._asks = self._asks, []
            self._api.update_allocation(si.AllocationRequest(allocations=asks, rmID=self._rm_id))
