"""The scheduler of pods with what it needs around it: an election, the label of its pod, and an orderly end.

The label says whether this process leads. The service of the REST interface selects by it, since only the
process that leads knows the cluster. A pod keeps its labels when its container is started anew, so every
process begins by writing its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, Self, final

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..client.api_calls import ApiCalls
from ..client.api_client import ApiClient
from .coordinator import PodSchedulerOptions
from .leader_election import LeaderElection
from .pod_scheduler import PodScheduler

if TYPE_CHECKING:
    from ...core.scheduler.scheduler import Scheduler
    from ...wire.client.remote_scheduler import RemoteScheduler

LEASE_NAME: Final = "licorne"
_ANSWER_SECONDS: Final = 3.0
ROLE_LABEL: Final = "licorne.io/role"
_PAUSE_SECONDS: Final = 2.0
"""From a label that could not be written to the next attempt."""


class PodRole(Enum):
    """What the process in a pod does; the value is that of the label."""

    LEADER = "leader"
    STANDBY = "standby"


@final
class OwnPod:
    """Keeps the label of a pod as it is to be, from `start` to `stop`; what fails is tried again.

    Args:
        calls: The API server.
        namespace: The namespace of the pod.
        name: Its name.
        role: What the process does at first.
        log: Where failures are logged.
    """

    def __init__(
        self, calls: ApiCalls, namespace: str, name: str, role: PodRole, log: Log | None = None
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._name = name
        self._role = role
        self._written: PodRole | None = None
        self._log = log if log is not None else Log()
        self._is_stopped = False
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-kubernetes-own-pod", daemon=True)

    @property
    def is_marked(self) -> bool:
        """Whether the label says what the process does; from any thread."""
        return self._written is self._role

    def start(self) -> None:
        """Begin to write the label."""
        self._thread.start()

    def become(self, role: PodRole) -> None:
        """Have the label say something else; from any thread."""
        self._role = role
        self._changed.set()

    def stop(self) -> None:
        """End; the label stays, as the pod ends with the process."""
        self._is_stopped = True
        self._changed.set()
        self._thread.join(_PAUSE_SECONDS)

    def _run(self) -> None:
        while not self._is_stopped:
            self._changed.clear()
            role = self._role
            if role is not self._written:
                try:
                    self._calls.patch_pod_labels(self._namespace, self._name, {ROLE_LABEL: role.value})
                    self._written = role
                except LicorneError as error:
                    self._log.warning("the label of pod {}/{}: {}", self._namespace, self._name, error)
            self._changed.wait(None if self.is_marked else _PAUSE_SECONDS)


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
