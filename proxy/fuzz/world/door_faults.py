"""Faults at a door that wait for a rare moment.

Workers are lost between the phases of a reload, or after a request to end a task; the configuration changes
in the middle of a recovery. A lying worker sends another message afterwards, which no resource manager (RM)
may receive; the door has to trust all other workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, final

from ...si import si_pb2 as si
from ...wire.door import link
from ...wire.door.linked_manager import DoorChange
from ...wire.server.remote_managers import RemoteManager
from ..manager.cluster_record import RecordError
from ..manager.manager import SimulatedManager

_COMMIT_SECONDS: Final = (0.0, 0.0, 2.0, 10.0)
"""How long a commit waits after the loss of a worker: the next worker may run earlier."""
_MEANWHILE_SECONDS: Final = 2.0
"""How long a recovery waits for a reload in its middle."""
_LIE: Final = "never-asked"
_AFTER_LIE: Final = "said after a lie"
_APART_SECONDS: Final = 0.0005
"""From one message to the next, so that a server does not merge them."""


@final
class DoorFaults:
    """The faults of one world.

    Args:
        managers: Returns a manager by its id, `None` for one that must not be affected by faults.
        end_any: Ends a worker, by a draw.
        end: Ends the worker of a partition.
        fail: Receives failures.
    """

    def __init__(
        self,
        managers: Callable[[str], SimulatedManager | None],
        end_any: Callable[[int], object],
        end: Callable[[str], object],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._managers = managers
        self._end_any = end_any
        self._end = end
        self._fail = fail
        self.waiting: dict[str, int] = {}
        """The faults that wait, each with its draw."""

    def put_in_place(self, change: Callable[[Any, str, Any], None]) -> None:
        """Install the faults for their moments; `change` sets an attribute while the run lasts."""
        module: Any = link
        commit, hand_over, report = DoorChange.commit, module.hand_over, module.report_doubt
        say = RemoteManager.update_allocation
        due = self.waiting

        def commit_late(prepared: DoorChange) -> object:
            draw = due.pop("end at commit", None)
            if draw is not None:
                self._end_any(draw)
                time.sleep(_COMMIT_SECONDS[draw // 64 % len(_COMMIT_SECONDS)])
            return commit(prepared)

        def hand_over_meanwhile(worker: Any, registration: Any, *rest: Any) -> Any:
            recovery = hand_over(worker, registration, *rest)
            manager = self._managers(registration.rmID)
            if manager is not None and (draw := due.pop("reload at recovery", None)) is not None:
                reload = threading.Thread(target=manager.act, args=("reload", draw), daemon=True)
                reload.start()
                reload.join(_MEANWHILE_SECONDS)
            return recovery

        def report_doubt(owner: Any, partition: str, doubt: str, now_ns: int) -> None:
            if _LIE not in doubt:
                self._fail(RecordError(f"an honest worker of {partition!r} is not believed: {doubt}"))
            report(owner, partition, doubt, now_ns)

        def say_and_lie(to: RemoteManager, response: si.AllocationResponse) -> None:
            say(to, response)
            is_of_worker = to.door.epoch and self._managers(to.rm_id) is not None
            if is_of_worker and response.new and due.pop("lie", None) is not None:
                for lie in _lies(response.new[0]):
                    time.sleep(_APART_SECONDS)
                    say(to, lie)

        change(DoorChange, "commit", commit_late)
        change(link, "hand_over", hand_over_meanwhile)
        change(link, "report_doubt", report_doubt)
        change(RemoteManager, "update_allocation", say_and_lie)

    def hear(self, rm_id: str, response: si.AllocationResponse) -> None:
        """Handle a message to an RM: the worker may be lost after its request to end a task."""
        manager = self._managers(rm_id)
        for released in response.released:
            if released.message == _AFTER_LIE:
                self._fail(RecordError(f"{rm_id} hears what a worker says after a lie: {released}"))
            if manager is None or released.terminationType == si.STOPPED_BY_RM:
                continue
            if self.waiting.pop("end at request", None) is not None:
                self._end(manager.record.partitions.get(released.applicationID, ""))


def _lies(placed: si.Allocation) -> tuple[si.AllocationResponse, si.AllocationResponse]:
    """Return a placement that was never requested, and a later message of the worker."""
    lie = si.AllocationResponse(new=[placed])
    lie.new[0].allocationKey = _LIE
    release = si.AllocationRelease(
        applicationID=placed.applicationID,
        allocationKey=placed.allocationKey,
        terminationType=si.TIMEOUT,
        message=_AFTER_LIE,
    )
    return lie, si.AllocationResponse(released=[release])
