"""The pod that the scheduler itself runs in: a label of it says whether this process leads.

The service of the REST interface selects by that label, since only the process that leads knows the cluster.
A pod keeps its labels when its container is started anew, so every process begins by writing its own.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import Final, final

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..client.api_calls import ApiCalls

__all__ = ["ROLE_LABEL", "OwnPod", "PodRole"]

ROLE_LABEL: Final = "licorne.io/role"
_PAUSE_SECONDS: Final = 2.0


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
