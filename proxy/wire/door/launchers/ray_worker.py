"""The actor that Ray places, restarts and moves: it runs one `licorne serve`, and reports its address.

It does not carry messages. Ray imports this module on the machines of its cluster; nothing else imports Ray
when this module is loaded.
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
from .local import ServingProcess

_LISTENING_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 1.0
_FORGOTTEN_SECONDS: Final = 600.0
"""The time after which an actor that was not asked ends itself: the door and its helper program are gone."""


class WorkerSeen(TypedDict):
    """The report of an actor about its process."""

    id: str
    """A new id each time that Ray starts the actor."""
    address: str
    """The address at which the process serves `licorne.v1`."""
    token: str
    """The bearer token that the process requires."""
    node: str
    """The node of Ray with the actor."""
    refusal: str
    """The reason why the process cannot run and another attempt does not help; empty if it runs."""


@final
class RayWorker:
    """Starts a process that serves at the address of its node; they end together, and Ray restarts both.

    If only the actor ends, because Ray has lost its head or the node has lost its raylet, the process
    continues to serve its connected clients.

    Args:
        arguments: The arguments of `licorne serve`.
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
            os._exit(1)  # Ray starts it again, possibly on another node.
        self._itself = ray.get_runtime_context().current_actor
        self._raylet = os.getppid()
        threading.Thread(target=self._watch, name="licorne-ray-worker", daemon=True).start()

    def seen(self) -> WorkerSeen:
        """Return the report about the process."""
        self._asked_at = time.monotonic()
        return self._seen

    def end(self, worker_id: str) -> None:
        """End the process if it still has this id; Ray starts another one."""
        if worker_id == self._seen["id"] and not self._seen["refusal"]:
            self._process.kill()

    def _watch(self) -> None:
        import ray

        while not self._process.wait_for_end(_LOOK_SECONDS):
            if os.getppid() != self._raylet:  # Ray's own check may take minutes to end the actor.
                break
            if time.monotonic() - self._asked_at > _FORGOTTEN_SECONDS:
                ray.kill(self._itself, no_restart=True)
        os._exit(1)
