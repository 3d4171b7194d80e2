"""Workers that Ray places on its machines, restarts and moves; Ray does not carry messages.

The door must not be a driver of Ray: Ray ends the process of a driver when it has lost its head for 60 s. So
a helper program (`ray_side.py`) is the driver. If it dies, the workers and their sessions continue, no new
workers start, and the door starts it again.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypedDict, final

from .....actors.services.interrupts import start_thread
from .....model.errors import LicorneError
from ....base.terminal.standard_output import write_error
from ..workers import GrowingPauses, LaunchedWorker, LaunchError
from .local import piped_process

if TYPE_CHECKING:
    from .ray_worker import WorkerSeen

_SPARES: Final = 2
"""Ray spreads them over its nodes: if there are two nodes, the death of one takes at most one spare."""
_WORKER_SECONDS: Final = 120.0
"""The time limit of the wait for a worker; Ray detects after about 25 s that a node is gone."""
_PAUSE_SECONDS: Final = 1.0
_PAUSE_MAX_SECONDS: Final = 30.0
"""The longest pause before the helper program is started again; pauses double."""
_CONNECTED_WELL_SECONDS: Final = 60.0
_ORDERLY_SECONDS: Final = 10.0
"""The time limit for the end of the helper program."""
_LAST_LINE_SECONDS: Final = 2.0
_NOISE: Final = re.compile(r"\x1b\[[0-9;]*m|^\[[^\]]*\] \(?[\w.]+\)?:?[0-9]*:? ")
"""The parts of a line of Ray besides its text: colours; the time, the level and the place in its source."""
_LINE_MAX: Final = 300
_SIDE: Final = "licorne.proxy.wire.door.launchers.ray_side"
_LOST_MAX: Final = 1_000
"""The number of lost workers that are remembered."""


@final
class RayLauncher:
    """A launcher that lets Ray start workers: an actor for each partition with a worker, and two spares.

    A lost worker is replaced by a spare at once, on another node if possible; an actor that Ray restarts
    becomes a spare. A worker that Ray considers dead stays in use as long as the door has not lost it.

    Each worker listens on the address of its node. `licorne serve` refuses that without certificates, so the
    arguments need `--tls-cert` and `--tls-key`, files on each node, or `--insecure-public`.

    Args:
        address: The head of Ray, `HOST:PORT`; `auto` for the cluster that this machine belongs to, which the
            environment variable `RAY_ADDRESS` may name.
        arguments: The arguments of `licorne serve`, for each worker.
        write: Called with a line when Ray becomes unusable. The output of workers is in Ray's logs.

    Raises:
        LicorneError: Ray is not installed.
    """

    def __init__(
        self,
        address: str = "auto",
        arguments: Sequence[str] = (),
        write: Callable[[str], None] = write_error,
    ) -> None:
        if find_spec("ray") is None:
            raise LicorneError("ray is not installed: pip install 'licorne[ray]'")
        self._settings = {"address": address, "namespace": f"licorne-{uuid.uuid4().hex}"}
        self._arguments = list(arguments)
        self._write = write
        self._pauses = GrowingPauses()
        self._changed = threading.Condition()
        """The lock for all attributes below."""
        self._workers = RayWorkers()
        self._side: subprocess.Popen[str] | None = None
        """The helper program; `None` if it does not run."""
        self._reason = ""
        """The reason for missing workers, if known."""
        self._failed = ""
        """The reason for the end of the helper program, if it has given one."""
        self._is_stopped = False
        self._stopping = threading.Event()
        self._keeper = start_thread(self._keep_side, "licorne-ray")

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Return a worker that Ray has started and no partition uses; wait for one.

        Raises:
            LaunchError: `licorne serve` refuses its arguments.
            LicorneError: Ray cannot be used now, or does not start a worker, or the start was given up.
        """
        self._pauses.wait(partition, given_up)
        deadline = time.monotonic() + _WORKER_SECONDS
        with self._changed:
            self._workers.want(partition)
            self._order({"actors": self._workers.partitions + _SPARES})
            while (worker := self._workers.take(partition)) is None:
                self._check(partition, given_up, deadline)
                self._changed.wait(0.1)
        self._pauses.started(partition)
        return worker

    def lost(self, worker: LaunchedWorker) -> None:
        """End the process of a worker, if Ray reaches it."""
        with self._changed:
            end = self._workers.lose(worker)
            if end is not None:
                self._order({"end": end})
        self._pauses.failed(worker.partition)

    def stop(self) -> None:
        """End all workers and the helper program, within 10 s."""
        with self._changed:
            self._is_stopped = True
            self._stopping.set()
            side = self._side
            if side is not None and side.stdin is not None:
                with suppress(OSError):
                    side.stdin.close()
            self._changed.notify_all()
        if side is not None:
            try:
                side.wait(_ORDERLY_SECONDS)
            except subprocess.TimeoutExpired:
                side.kill()
        if self._keeper is not None:
            self._keeper.join(_ORDERLY_SECONDS)

    def _check(self, partition: str, given_up: threading.Event, deadline: float) -> None:
        """Raise an error if further waiting is useless.

        Raises:
            LaunchError: `licorne serve` refuses its arguments.
            LicorneError: Ray cannot be used now, or the start was given up.
        """
        why = ""
        if self._is_stopped:
            why = "the launcher has been stopped"
        elif given_up.is_set():
            why = "it was given up"
        elif self._workers.refusal:
            raise LaunchError(f"Ray has no worker for partition {partition!r}: {self._workers.refusal}")
        elif self._side is None and self._reason:
            why = self._reason
        elif time.monotonic() >= deadline:
            why = f"none within {_WORKER_SECONDS:g} s: {self._reason or 'Ray gives no reason'}"
        if why:
            self._pauses.failed(partition)
            raise LicorneError(f"Ray has no worker for partition {partition!r}: {why}")

    def _order(self, order: dict[str, Any]) -> None:
        """Send an order to the helper program; do nothing without one."""
        if self._side is not None and self._side.stdin is not None:
            with suppress(OSError, ValueError):  # The helper program has just died.
                self._side.stdin.write(json.dumps(order) + "\n")
                self._side.stdin.flush()

    # ---------------------------------------------------------------------------- on its own thread

    def _keep_side(self) -> None:
        """Keep the helper program running."""
        pause = _PAUSE_SECONDS
        while not self._stopping.is_set():
            started_at = time.monotonic()
            self._run_side()
            if time.monotonic() - started_at >= _CONNECTED_WELL_SECONDS:
                pause = _PAUSE_SECONDS
            self._stopping.wait(pause)
            pause = min(2 * pause, _PAUSE_MAX_SECONDS)

    def _run_side(self) -> None:
        """Start the helper program, and read its output to its end."""
        settings = json.dumps({**self._settings, "arguments": self._arguments})
        try:
            side = piped_process([_SIDE, settings])
        except OSError as error:
            with self._changed:
                self._reason = f"the helper program cannot be started: {error.strerror or error}"
            return
        with self._changed:
            self._side, self._reason = side, ""
            if self._is_stopped:
                side.kill()
        last: list[str] = [""]
        errors = start_thread(lambda: _hear_errors(side, last), "licorne-ray-errors")
        assert side.stdout is not None
        with side.stdout as lines:
            for line in lines:
                self._hear(json.loads(line))
        status = side.wait()
        if errors is not None:
            errors.join(_LAST_LINE_SECONDS)
        if side.stdin is not None:
            with suppress(OSError):
                side.stdin.close()
        self._side_ended(status, last[0])

    def _side_ended(self, status: int, last_line: str) -> None:
        how = f"with status {status}" if status >= 0 else f"by signal {-status}"
        with self._changed:
            self._side = None
            self._workers.forget_spares()
            failed, self._failed = self._failed, ""
            said = f": {last_line}" if last_line and status >= 0 else ""
            self._reason = failed or f"the program that connects to Ray ended {how}{said}"
            self._changed.notify_all()
            if not self._is_stopped:
                self._write(f"{self._reason}; workers that are in use continue")

    def _hear(self, said: dict[str, Any]) -> None:
        with self._changed:
            if "connected" in said:
                self._order({"actors": self._workers.partitions + _SPARES})
            elif "worker" in said:
                again = self._workers.seen(said["actor"], said["worker"])
                if again is not None:
                    self._order({"end": again})
            elif "failed" in said:
                self._failed = said["failed"]
            elif "gone" in said:
                self._workers.gone(said["gone"])
                self._reason = said["reason"]
            self._changed.notify_all()


def _hear_errors(side: subprocess.Popen[str], last: list[str]) -> None:
    """Keep the first sentence of the last line that is not part of a state, which Ray prints in full."""
    assert side.stderr is not None
    with side.stderr as lines:
        for line in lines:
            if line.strip() and not line[0].isspace():
                last[0] = _NOISE.sub("", line.strip()).partition(". ")[0][:_LINE_MAX]


class WorkerToEnd(TypedDict):
    """A process that has to end: the number of its actor, and its id."""

    actor: int
    id: str


@dataclass(frozen=True, slots=True)
class _Placed:
    """A process on a node, held by an actor."""

    actor: int
    id: str
    address: str
    token: str
    node: str


@final
class RayWorkers:
    """The table of workers: spares, and workers in use. Its user makes one call at a time."""

    def __init__(self) -> None:
        self.refusal = ""
        """The reason why `licorne serve` starts nowhere; empty if it starts."""
        self._spares: dict[str, _Placed] = {}
        self._used: dict[LaunchedWorker, _Placed] = {}
        self._counts: dict[str, int] = {}
        """The number of workers that each partition has had."""
        self._left: dict[str, str] = {}
        """The node on which each partition has lost its last worker."""
        self._lost: dict[str, None] = {}
        """The ids of lost workers, the latest last."""

    @property
    def partitions(self) -> int:
        """The number of partitions that have asked for a worker."""
        return len(self._counts)

    def want(self, partition: str) -> None:
        """Note that a partition needs a worker."""
        self._counts.setdefault(partition, 0)

    def take(self, partition: str) -> LaunchedWorker | None:
        """Return a spare as the worker of a partition, if possible on another node than its last one."""
        left = self._left.get(partition)
        placed = min(self._spares.values(), key=lambda spare: spare.node == left, default=None)
        if placed is None:
            return None
        del self._spares[placed.id]
        self._counts[partition] += 1
        worker = LaunchedWorker(partition, placed.address, self._counts[partition], placed.token, True)
        self._used[worker] = placed
        return worker

    def lose(self, worker: LaunchedWorker) -> WorkerToEnd | None:
        """Note that a worker is lost; return the process to end, `None` for an unknown worker."""
        placed = self._used.pop(worker, None)
        if placed is None:
            return None
        self._left[worker.partition] = placed.node
        self._lost[placed.id] = None
        if len(self._lost) > _LOST_MAX:
            del self._lost[next(iter(self._lost))]
        return WorkerToEnd(actor=placed.actor, id=placed.id)

    def seen(self, actor: int, seen: WorkerSeen) -> WorkerToEnd | None:
        """Note a worker that Ray has started; return the process to end if the worker was lost before."""
        self.refusal = seen["refusal"]
        if self.refusal:
            return None
        if seen["id"] in self._lost:
            return WorkerToEnd(actor=actor, id=seen["id"])
        if all(placed.id != seen["id"] for placed in self._used.values()):
            placed = _Placed(actor, seen["id"], seen["address"], seen["token"], seen["node"])
            self._spares[placed.id] = placed
        return None

    def gone(self, worker_id: str) -> None:
        """Note that Ray does not reach a worker; one in use is lost only when the door reports it."""
        self._spares.pop(worker_id, None)

    def forget_spares(self) -> None:
        """Note that the state of the spares is unknown."""
        self._spares.clear()
