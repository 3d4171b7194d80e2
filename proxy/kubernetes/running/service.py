"""The scheduler of pods with what it needs around it: an election, and an orderly end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, final

from ....actors.services.log import Log
from ..client.api_calls import ApiCalls
from ..client.api_client import ApiClient
from .coordinator import PodSchedulerOptions
from .leader_election import LeaderElection
from .own_pod import OwnPod, PodRole
from .pod_scheduler import PodScheduler

if TYPE_CHECKING:
    from ...client.remote_scheduler import RemoteScheduler
    from ...scheduler.scheduler import Scheduler

__all__ = ["LEASE_NAME", "PodService"]

LEASE_NAME: Final = "licorne"
_ANSWER_SECONDS: Final = 3.0


@final
class PodService:
    """Schedules the pods of a cluster inside of a `with` block.

    Args:
        scheduler: Who decides where pods run; it is not stopped at the end.
        client: The API server.
        options: What the command line says.
        on_lost: Is called when another process schedules from now on: this one has to end.
        pod_name: The pod that this process runs in, which gets a label that says whether it leads; `None`
            if it runs in no pod.
        log: Where failures are logged.
    """

    def __init__(
        self,
        scheduler: Scheduler | RemoteScheduler,
        client: ApiClient,
        options: PodSchedulerOptions,
        *,
        on_lost: Callable[[], None],
        pod_name: str | None = None,
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
                on_lead=self._take_lead,
                on_lost=self._lose_lead,
                log=log,
            )
            if options.waits_for_lead
            else None
        )
        self._own_pod = (
            None
            if pod_name is None
            else OwnPod(
                ApiCalls(client),
                options.namespace,
                pod_name,
                PodRole.STANDBY if options.waits_for_lead else PodRole.LEADER,
                log,
            )
        )

    @property
    def leads(self) -> bool:
        """Whether this process is the one that schedules."""
        return self._election is None or self._election.leads()

    def why_stuck(self) -> str:
        """Return why this process has to be started anew, empty if it works; waits some seconds at most."""
        if self._election is not None and not self.has_lost_lead and not self._election.is_alive():
            return "the thread of the lease has ended"
        if not self.pods.answers_within(_ANSWER_SECONDS):
            return f"the scheduler of pods has carried out nothing for {_ANSWER_SECONDS:g} s"
        return ""

    def why_not_ready(self) -> str:
        """Return what this process still waits for, empty if it schedules or could take over at once."""
        if self._own_pod is not None and not self._own_pod.is_marked:
            return "the label of the pod is not written yet"
        if self.leads and not self.pods.is_ready:
            return "the scheduler does not have the nodes and pods of the cluster yet"
        return "" if self.pods.is_listed else "the objects of the cluster are not listed yet"

    def __enter__(self) -> Self:
        if self._own_pod is not None:
            self._own_pod.start()
        self.pods.start()
        if self._election is not None:
            self._election.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pods.stop()
        if self._election is not None:
            self._election.stop()
        if self._own_pod is not None:
            self._own_pod.stop()

    def _take_lead(self) -> None:
        self.pods.lead()
        if self._own_pod is not None:
            self._own_pod.become(PodRole.LEADER)

    def _lose_lead(self) -> None:
        self.has_lost_lead = True
        self.pods.stop_acting()
        self._on_lost()
