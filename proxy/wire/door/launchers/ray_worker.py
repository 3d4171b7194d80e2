"""The actor that Ray places, restarts and moves: it holds one `licorne serve`, and says where that listens.

It carries no messages. Ray imports this module on the machines of its cluster; nothing else imports Ray when
it is loaded.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Final, TypedDict, final

from .....model.errors import LicorneError
from ...server.access import Address
from ..workers import LaunchError
from .serving_process import ServingProcess

_LISTENING_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 1.0
_FORGOTTEN_SECONDS: Final = 600.0
"""An actor that was not asked for so long removes itself: the door and what is beside it are gone."""


class WorkerSeen(TypedDict):
    """What an actor says of its process."""

    id: str
    """Another one each time that Ray starts the actor."""
    address: str
    """Where the process serves `licorne.v1`."""
    token: str
    """The bearer token that it requires."""
    node: str
    """The node of Ray that it is on."""
    refusal: str
    """Why there is none, and why another attempt does not help; empty if there is one."""


@final
class RayWorker:
    """Starts a process that serves at the address of its node; they end together, and Ray starts both again.

    If the actor alone ends, because Ray has lost its head or the node has lost its raylet, then the process
    serves who is connected to it to the end.

    Args:
        arguments: Of `licorne serve`.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        import ray
        from ray.util import get_node_ip_address

        node = ray.get_runtime_context().get_node_id()
        self._seen = WorkerSeen(id=uuid.uuid4().hex, address="", token="", node=node, refusal="")
        self._asked_at = time.monotonic()
        where = str(Address(get_node_ip_address(), 0))
        try:
            self._process = ServingProcess([*arguments, "--address", where, "--rest-address", where])
            self._seen["token"] = self._process.token
            self._seen["address"] = self._process.wait_for_address(threading.Event(), _LISTENING_SECONDS)
        except LaunchError as error:
            self._seen["refusal"] = str(error)
            return
        except LicorneError:
            os._exit(1)  # Ray starts it again, maybe elsewhere.
        self._itself = ray.get_runtime_context().current_actor
        self._raylet = os.getppid()
        threading.Thread(target=self._watch, name="licorne-ray-worker", daemon=True).start()

    def seen(self) -> WorkerSeen:
        """Return what there is to know of the process."""
        self._asked_at = time.monotonic()
        return self._seen

    def end(self, worker_id: str) -> None:
        """End the process if it is still the one that is meant; Ray starts another one."""
        if worker_id == self._seen["id"] and not self._seen["refusal"]:
            self._process.kill()

    def _watch(self) -> None:
        import ray

        while not self._process.wait_for_end(_LOOK_SECONDS):
            if os.getppid() != self._raylet:  # Ray's own look for this may take minutes to end the actor.
                break
            if time.monotonic() - self._asked_at > _FORGOTTEN_SECONDS:
                ray.kill(self._itself, no_restart=True)
        os._exit(1)
