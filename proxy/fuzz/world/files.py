"""A run of a plan on disks that fail: the earlier contents of files must survive.

The scheduler writes usage files and state dumps. A write may end at any byte, as on a full disk; the process
may die at any step; and after a loss of power a file has only its synced part. In all cases the usage file
has the contents of one complete write, the last one that was reported or a later one; and no state dump is
lost except the oldest for a newer one.
"""

from __future__ import annotations

import errno
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, final

from ....model.errors import LicorneError
from ...core.scheduler.scheduler import Scheduler
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ...views import dumps
from ...views.dumps import DUMPS_KEPT, PeriodicDumps, UsageFile, read_usage
from ..manager.cluster_record import RecordError
from ..plans import Plan, one_of
from .standard_parts import replaced

_RM_ID: Final = "rm"
_TEXT: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', properties: {fair.half-life: 1d}, "
    "queues: [{name: a, properties: {fair.half-life: 1d}}, {name: b}]}]}]"
)
_STEP_SECONDS: Final = 3_600
_CLOCKS_SECONDS: Final = (-7_200, -1, 0, 1, 7_200)
_STEPS_MAX: Final = 6


class _Killed(BaseException):
    """The process is dead: its operations have no effect."""


@final
class _Disk:
    """The files, as their writers see them: `Path`, and their syncs."""

    def __init__(self) -> None:
        self.fails_after: int | None = None
        """The number of operations that succeed before one fails; `None` for all."""
        self.bytes_left = 0
        """The number of bytes that the failing write puts into its file."""
        self.kills = False
        """Whether the failure ends the process."""
        self._is_dead = False
        self._unsynced: dict[str, int] = {}
        """The number of bytes of an unsynced file that survive a loss of power, by path."""
        self._open, self._replace, self._unlink = Path.open, Path.replace, Path.unlink

    def begin(self, *, fails_after: int | None, bytes_left: int, kills: bool) -> None:
        """Start again, with the next failure."""
        self.fails_after, self.bytes_left, self.kills = fails_after, bytes_left, kills
        self._is_dead = False

    def lose_power(self) -> None:
        """Lose the unsynced data."""
        for path, kept in self._unsynced.items():
            with suppress(FileNotFoundError):
                os.truncate(path, min(kept, Path(path).stat().st_size))
        self._unsynced.clear()

    def _fails(self) -> bool:
        """Count an operation; return whether it is the one that fails.

        Raises:
            _Killed: The process is dead.
        """
        if self._is_dead:
            raise _Killed
        if self.fails_after is None:
            return False
        self.fails_after -= 1
        if self.fails_after >= 0:
            return False
        self.fails_after = None
        self._is_dead = self.kills
        return True

    def _fail(self) -> None:
        if self._is_dead:
            raise _Killed
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open(self, path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """Open a file; its planned write fails."""
        if "r" in mode:
            return self._open(path, mode, *args, **kwargs)
        fails = self._fails()
        if fails and not self.bytes_left:
            self._fail()
        file: Any = self._open(path, mode, *args, **kwargs)
        self._unsynced[str(path)] = self.bytes_left
        real = file.write

        def write(data: Any) -> Any:
            if not fails:
                return real(data)
            real(data[: self.bytes_left])
            file.flush()
            return self._fail()

        return _WrittenFile(file, write, lambda: self._unsynced.pop(str(path), None))

    def replace(self, path: Path, target: Path) -> Any:
        """Rename a file."""
        if self._fails():
            self._fail()
        moved = self._unsynced.pop(str(path), None)
        self._unsynced.pop(str(target), None)
        if moved is not None:
            self._unsynced[str(target)] = moved
        return self._replace(path, target)

    def unlink(self, path: Path, **kwargs: Any) -> None:
        """Remove a file."""
        if self._fails():
            self._fail()
        self._unlink(path, **kwargs)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Replace the methods of `Path` for a while."""
        synced: dict[int, _WrittenFile] = _WrittenFile.by_number

        with replaced() as change:
            for name in ("open", "replace", "unlink"):
                change(Path, name, _function(getattr(self, name)))
            change(os, "fsync", lambda number: synced[number].sync())
            yield


def _function(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method as a function, which a class gives its objects as the first argument."""

    def called(path: Path, *args: Any, **kwargs: Any) -> Any:
        return method(path, *args, **kwargs)

    return called


@final
class _WrittenFile:
    """An open file that is being written."""

    by_number: Final[dict[int, _WrittenFile]] = {}
    """The open files by descriptor, for their syncs."""

    def __init__(self, file: Any, write: Callable[[Any], Any], synced: Callable[[], object]) -> None:
        self._file = file
        self.write = write
        self._synced = synced
        self.flush = file.flush
        self.fileno = file.fileno
        self.by_number[file.fileno()] = self

    def sync(self) -> None:
        """Record that the written data survives."""
        self._file.flush()
        self._synced()

    def __enter__(self) -> _WrittenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@final
class FilesWorld(ResourceManager):
    """The world of one plan.

    Args:
        plan: The plan; only its seed and its steps count.
        note: Records actions.
    """

    def __init__(self, plan: Plan, note: Callable[[str, Any], None]) -> None:
        self._plan = plan
        self._note = note
        self._disk = _Disk()
        self._names = map("t{}".format, count())
        self._scheduler: Scheduler
        self._kept: list[Any] = [None]
        """The allowed contents of the usage file: the last write, or one begun since; `None` for no file."""
        self._dumps: set[str] = set()
        """The existing state dumps."""
        self._clock_seconds = 0

    def run(self) -> None:
        """Carry out all steps.

        Raises:
            RecordError: A file is lost, or torn.
        """
        with tempfile.TemporaryDirectory(prefix="licorne-fuzz-") as name, replaced() as change:
            self._folder = Path(name)
            self._path = self._folder / "usage.json"
            self._begin()
            change(dumps, "time_ns", self._wall_ns)
            try:
                for step in self._plan.steps:
                    rng = random.Random(step.draw)  # noqa: S311 - it plays, and keeps no secret
                    self._note(step.action, None)
                    getattr(self, step.action.replace(" ", "_"))(rng)
                    self._check()
            finally:
                self._scheduler.stop()

    def _wall_ns(self) -> int:
        return self._scheduler.now_ns() + self._clock_seconds * 1_000_000_000

    def _begin(self) -> None:
        """Start a scheduler that continues from the usage file, with a task in each queue."""
        usage = read_usage(self._path)[1] if self._path.exists() else {}
        self._scheduler = Scheduler(engine="direct", kept_use=usage)
        self._scheduler.register(_RM_ID, self, configuration=_TEXT)
        node = si.NodeInfo(nodeID="n", action=si.NodeInfo.CREATE)
        node.schedulableResource.resources["vcore"].value = 1_000_000
        self._scheduler.update_node(si.NodeRequest(rmID=_RM_ID, nodes=[node]))

    def _check(self) -> None:
        """Check the files on the disk.

        Raises:
            RecordError: A file is lost, or torn.
        """
        if self._found() not in self._kept:
            raise RecordError(
                f"the usage file has {self._found()}, not what was written last: {self._kept[0]}"
            )
        there = {path.name for path in self._folder.glob("licorne-state-*.json")}
        if there < self._dumps or (self._dumps and len(there) < min(DUMPS_KEPT, len(self._dumps))):
            raise RecordError(f"the state dumps {self._dumps - there} are lost; there are {there}")
        for name in there - self._dumps:
            self._read_dump(name)
        self._dumps = there

    def _read_dump(self, name: str) -> None:
        try:
            json.loads((self._folder / name).read_text(encoding="utf-8"))
        except ValueError as error:
            raise RecordError(f"the state dump {name} is torn: {error}") from error

    @contextmanager
    def _faults(self, rng: random.Random) -> Iterator[None]:
        """Make a write fail, or not; the process may die from it, and the power be lost."""
        fails = rng.random() < 0.7
        self._disk.begin(
            fails_after=int(rng.random() * _STEPS_MAX) if fails else None,
            bytes_left=one_of(rng, (0, 1, 60, 400)),
            kills=rng.random() < 0.4,
        )
        try:
            with self._disk.in_place():
                yield
        except _Killed:
            self._note("is killed", None)
            if rng.random() < 0.5:
                self._disk.lose_power()
            self._check()
            self._scheduler.stop()
            self._begin()

    # -------------------------------------------------------------------------------------- actions

    def use(self, rng: random.Random) -> None:
        """Run a task for a while."""
        name, queue = next(self._names), one_of(rng, ("root.a", "root.b"))
        application = si.AddApplicationRequest(applicationID=name, queueName=queue, partitionName="default")
        application.ugi.user = one_of(rng, ("ada", "bob"))
        self._scheduler.update_application(si.ApplicationRequest(rmID=_RM_ID, new=[application]))
        ask = si.Allocation(allocationKey=name, applicationID=name, partitionName="default")
        ask.resourcePerAlloc.resources["vcore"].value = 1 + int(rng.random() * 5_000)
        self._scheduler.update_allocation(si.AllocationRequest(rmID=_RM_ID, allocations=[ask]))
        self._scheduler.run_until_idle()
        self._scheduler.advance_to(self._scheduler.now_ns() + _STEP_SECONDS * 1_000_000_000)

    def write_usage(self, rng: random.Random) -> None:
        """Write the usage file."""
        document: Any = self._scheduler.kept_use()
        self._kept.append(document)
        with self._faults(rng):
            UsageFile(self._scheduler, self._path).write()
            if self._found() == document:
                self._kept = [document]

    def _found(self) -> Any:
        """Return the contents of the usage file, `None` if it does not exist.

        Raises:
            RecordError: It is torn.
        """
        if not self._path.exists():
            return None
        try:
            return json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RecordError(f"the usage file is torn: {error}") from error

    def write_dump(self, rng: random.Random) -> None:
        """Write a state dump, perhaps with a clock that is slow."""
        path = None
        dumps = PeriodicDumps(self._scheduler, self._folder, 60.0)
        if left := [*self._folder.glob("*.unfinished")]:
            raise RecordError(f"parts of state dumps are left on the disk: {left}")
        with self._faults(rng), suppress(OSError, LicorneError):
            path = dumps.write()
        if path is not None and not path.exists():
            raise RecordError(f"the state dump {path.name} is gone as soon as it is written")

    def start_again(self, rng: random.Random) -> None:
        """Lose the power, or stop, and restart."""
        if rng.random() < 0.5:
            self._disk.lose_power()
        self._check()
        self._scheduler.stop()
        self._begin()
        if self._path.exists():
            self._read_torn(rng)

    def _read_torn(self, rng: random.Random) -> None:
        """Read a copy of the usage file without its end.

        Raises:
            RecordError: It is not refused.
        """
        text, torn = self._path.read_text(encoding="utf-8"), self._folder / "torn.json"
        torn.write_text(text[: int(rng.random() * (len(text) - 2))], encoding="utf-8")
        try:
            read_usage(torn)
        except LicorneError:
            return
        raise RecordError(f"a torn usage file is read: {torn.read_text(encoding='utf-8')}")

    def set_clock(self, rng: random.Random) -> None:
        """Set the wall clock ahead, or back."""
        self._clock_seconds += one_of(rng, _CLOCKS_SECONDS)
