"""The scheduler of pods with what it needs around it: an election, and an orderly end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, final

from ....actors.services.log import Log
from ..client.api_calls import ApiCalls
from ..client.api_client import ApiClient
from .coordinator import PodSchedulerOptions
from .leader_election import LeaderElection
from .pod_scheduler import PodScheduler

if TYPE_CHECKING:
    from ...client.remote_scheduler import RemoteScheduler
    from ...scheduler.scheduler import Scheduler

__all__ = ["LEASE_NAME", "PodService"]

LEASE_NAME: Final = "licorne"


@final
class PodService:
    """Schedules the pods of a cluster inside of a `with` block.

    Args:
        scheduler: Who decides where pods run; it is not stopped at the end.
        client: The API server.
        options: What the command line says.
        on_lost: Is called when another process schedules from now on: this one has to end.
        log: Where failures are logged.
    """

    def __init__(
        self,
        scheduler: Scheduler | RemoteScheduler,
        client: ApiClient,
        options: PodSchedulerOptions,
        *,
        on_lost: Callable[[], None],
        log: Log | None = None,
    ) -> None:
        self.pods = PodScheduler(scheduler, client, options, log)
        self.has_lost_lead = False
        self._on_lost = on_lost
        self._election = (
            LeaderElection(
                ApiCalls(client),
                namespace=options.namespace,
                name=LEASE_NAME,
                identity=options.identity,
                on_lead=self.pods.lead,
                on_lost=self._lose_lead,
                log=log,
            )
            if options.waits_for_lead
            else None
        )

    @property
    def leads(self) -> bool:
        """Whether this process is the one that schedules."""
        return self._election is None or self._election.leads()

    def __enter__(self) -> Self:
        self.pods.start()
        if self._election is not None:
            self._election.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pods.stop()
        if self._election is not None:
            self._election.stop()

    def _lose_lead(self) -> None:
        self.has_lost_lead = True
        self.pods.stop_acting()
        self._on_lost()
