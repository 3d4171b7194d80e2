"""A log in the standard workload format as a workload.

The rules, each counted in the notes of the workload if it was used:

* A job is one application. Times start with the first submitted job.
* Jobs are skipped if their submit time, run time or number of processors is unknown (negative, or no
  processors), or if they were cancelled (status 5) before they ran at all. No other jobs are skipped.
* A run time of 0 is taken as one second: the log rounds.
* The number of processors is the allocated one, or the requested one if that is unknown. For a job that
  starts as a whole it is the reverse, as in simulators of batch systems.
* A job becomes tasks that a node can hold. A request such as `2:ppn=8+1:ppn=4` defines them: two tasks with 8
  processors and one with 4. Its properties (`:cl_zewura`, `#excl`) are ignored. Without such a text, or if it
  does not add up to the processors of the job, the processors are grouped up to the size of the smallest kind
  of node, fewer if the memory of that node does not allow more.
* Tasks start one by one as room is found and each runs as long as the job did: a job is not a gang. With
  `JobOptions.whole` it is one whose placeholders never time out; then jobs that do not fit on the empty
  machine are skipped, and the numbers in names have leading zeros: the scheduler orders applications of one
  moment by their names.
* The requested time is the walltime; if it is unknown, the run time times `JobOptions.estimate_factor`.
* Memory is the requested one. In the standard that is kB per processor. A log with request texts is from
  MetaCentrum, and has bytes for each node of the request.
* Users are `u<id>`, groups `g<id>`. The queue is the extra column, or else the name in the header for its
  number, or else `queue<number>`, or else `default`.
* A job with more processors than the whole machine is kept unless it must start as a whole: its tasks run as
  room is found.
* A job with a preceding one waits for the end of that. With a think time as well it is submitted that long
  after that end, as the format defines it, and not at its own time. None waits for a job that is not there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from .....model.resources.quantities import INT64_MAX
from .....model.values.dependencies import AFTER_TAG
from ....base.files.input_files import NANOSECONDS_IN_SECOND, InputError, unpacked_name
from ....base.terminal.standard_output import counted
from .machines import MACHINES_SUFFIX, machines_of_header, nodes_of, read_machines
from .slurm_nodes import Machine
from .swf_log import BYTES_IN_KILOBYTE, CANCELLED, FAILED, UNKNOWN, SwfJob, SwfLog, read_swf_log
from .workload import (
    GangStyle,
    InputNote,
    SimulatedApplication,
    SimulatedTask,
    SimulatedWorkload,
    configuration_for,
    queue_name,
    without_absent,
    without_what_never_starts,
)

_MILLI: Final = 1000
_PROCESSORS_MAX: Final = 10**6
PLACEHOLDER_TIMEOUT_NS: Final = 100 * 365 * 86_400 * NANOSECONDS_IN_SECOND
"""The time for which placeholders of a whole job wait for each other: a hundred years, longer than logs."""
_CHUNK: Final = re.compile(r"(?P<nodes>[0-9]{1,7})(?P<properties>(:[^:]+)*)")
_PROCESSORS_OF_NODE: Final = re.compile(r"ppn=([0-9]{1,7})")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The conversion of the jobs of a log into applications.

    Attributes:
        whole: Whether a job starts as a whole, as a gang with its requested size, instead of task by task.
        task_processors: The largest number of processors of a task; `None` for that of the request or the
            node.
        estimate_factor: The walltime of a job without a requested time, in run times; `None` for no walltime.
    """

    whole: bool = False
    task_processors: int | None = None
    estimate_factor: int | None = None


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Equal parts of a job, each for one node: their number, and the processors of each."""

    count: int
    processors: int


@dataclass(slots=True)
class _Reading:
    """The data for the conversion of jobs into applications, and the notes about them."""

    log: SwfLog
    start_ns: int
    machines: tuple[Machine, ...]
    options: JobOptions
    number_width: int
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def path(self) -> Path:
        """The file of the log."""
        return self.log.path

    def pool_of(self, job: SwfJob) -> str:
        """Return the partition that a job runs in, empty if no machine has it."""
        known = (machine.partitions.split(",") for machine in self.machines)
        return job.queue_name if any(job.queue_name in each for each in known) else ""

    def name_of(self, number: int) -> str:
        """Return the name of the job with a number."""
        return f"job-{number:0{self.number_width}}"

    @property
    def smallest(self) -> Machine:
        """The machine with the fewest processors."""
        return min(self.machines, key=lambda machine: machine.processors)

    @property
    def processors(self) -> int:
        """The number of all processors."""
        return sum(machine.nodes * machine.processors for machine in self.machines)


def read_swf(
    path: Path, machines_path: Path | None = None, options: JobOptions = JobOptions()
) -> SimulatedWorkload:
    """Read a log and its machines.

    Args:
        path: The log.
        machines_path: The machines; by default `<log>.machines`, and without that file the header of the log.
        options: The conversion of jobs into applications.

    Raises:
        InputError: A file cannot be read, a value in it is invalid, or the machines are missing.
    """
    return workload_of_log(read_swf_log(path), machines_path, options)


def workload_of_log(log: SwfLog, machines_path: Path | None, options: JobOptions) -> SimulatedWorkload:
    """Return the workload of a parsed log, with the machines that `read_swf` would find.

    Raises:
        InputError: As for `read_swf`.
    """
    path = log.path
    origin, machines = _machines(path, log, machines_path)
    nodes = nodes_of(origin, machines)
    width = max(len(str(job.number)) for job in log.jobs) if options.whole else 0
    reading = _Reading(log, _start_ns(log), machines, options, width, Counter(log.notes))
    unused = log.processors_max - reading.processors if origin == path else 0
    if unused > 0:
        reading.notes["processor of the header that is left out: they do not divide by the nodes"] += unused
    ordered = sorted(log.jobs, key=lambda job: job.submit_ns)
    made = [_application(job, reading) for job in ordered if not _is_skipped(job, reading)]
    work = SimulatedWorkload(
        name=unpacked_name(path).name, nodes=nodes, applications=_joined(made), default_configuration=""
    )
    work, left_out = without_what_never_starts(work)
    work, absent = without_absent(work)
    if left_out:
        reading.notes["job skipped: there is no room for the whole of it on the empty machine"] += left_out
    return replace(
        work,
        default_configuration=configuration_for(
            (application.queue for application in work.applications), has_whole_gangs=options.whole
        ),
        notes=(*(InputNote(count, text) for text, count in reading.notes.items()), *absent),
    )


def _joined(applications: Iterable[SimulatedApplication]) -> tuple[SimulatedApplication, ...]:
    """Return applications in the order of submission, of which those of one name are parts of one job."""
    joined: dict[str, SimulatedApplication] = {}
    for part in applications:
        name = part.application_id
        before = joined.setdefault(name, part)
        if before is not part:
            walltimes_ns = [each for each in (before.walltime_ns, part.walltime_ns) if each is not None]
            joined[name] = replace(
                before, tasks=(*before.tasks, *part.tasks), walltime_ns=max(walltimes_ns, default=None)
            )
    return tuple(joined.values())


def _machines(path: Path, log: SwfLog, machines_path: Path | None) -> tuple[Path, tuple[Machine, ...]]:
    """Return the machines and their file: the given one, the one next to the log, or the log."""
    beside = path.with_name(unpacked_name(path).name + MACHINES_SUFFIX)
    if machines_path is not None or beside.exists():
        named = machines_path or beside
        return named, read_machines(named)
    machines = machines_of_header(log)
    if not machines:
        message = (
            "no machines: the header has neither MaxNodes nor MaxProcs, "
            f"there is no {beside.name!r} beside it, and no other file was named (--nodes), "
            "for Slurm the output of `scontrol show node`"
        )
        raise InputError(path, message)
    return path, machines


def _start_ns(log: SwfLog) -> int:
    """Return the time of the first submission."""
    return min((job.submit_ns for job in log.jobs if job.submit_ns != UNKNOWN), default=0)


def _is_skipped(job: SwfJob, reading: _Reading) -> bool:
    """Return whether a job is left out, and note the reason."""
    reason = _reason_to_skip(job)
    if reason:
        reading.notes[f"job skipped: {reason}"] += 1
    return bool(reason)


def _reason_to_skip(job: SwfJob) -> str:
    """Return the reason to leave out a job, the empty text without one."""
    if job.submit_ns == UNKNOWN:
        return "submit time unknown"
    if job.run_ns == UNKNOWN:
        return "run time unknown"
    if job.run_ns == 0 and job.status == CANCELLED:
        return "cancelled before it ran"
    if job.processors <= 0 and job.requested_processors <= 0 and not job.resources:
        return "number of processors unknown"
    return ""


def _application(job: SwfJob, reading: _Reading) -> SimulatedApplication:
    """Return the application of one job."""
    if job.run_ns == 0:
        reading.notes["job with a run time of 0: taken as 1 s"] += 1
    submit_at_ns = job.submit_ns - reading.start_ns
    parts = _tasks_of(job, reading)
    processors = sum(count * resources.get("vcore", 0) for count, resources in parts) // _MILLI
    if processors > reading.processors and not reading.options.whole:
        text = f"job larger than the machine, which has {counted(reading.processors, 'processor')}"
        reading.notes[f"{text}: its tasks never run all at once"] += 1
    name = job.name or reading.name_of(job.number)
    follows = reading.name_of(job.preceding) if job.preceding > 0 else ""
    has_think_time = bool(follows) and job.think_ns != UNKNOWN
    key = f"{name}-{job.part}" if job.part else name
    tasks = tuple(
        SimulatedTask(
            key=key + (f"-part{number}" if len(parts) > 1 else ""),
            resources=resources,
            submit_at_ns=submit_at_ns,
            duration_ns=job.run_ns or NANOSECONDS_IN_SECOND,
            count=count,
        )
        for number, (count, resources) in enumerate(parts, start=1)
    )
    whole = reading.options.whole
    pool = reading.pool_of(job)
    if job.queue_name and not pool and any(machine.partitions for machine in reading.machines):
        reading.notes["job of a partition that no machine has: it runs on any machine"] += 1
    return SimulatedApplication(
        application_id=name,
        queue=_queue(job, reading.log),
        pool=pool,
        user=job.user_name or (f"u{job.user}" if job.user >= 0 else "unknown"),
        groups=(job.group_name or (f"g{job.group}" if job.group >= 0 else "unknown"),),
        submit_at_ns=submit_at_ns,
        tasks=tasks,
        gang=GangStyle.SOFT if whole else None,
        placeholder_timeout_ns=PLACEHOLDER_TIMEOUT_NS if whole else None,
        walltime_ns=_walltime_ns(job, reading),
        tags={AFTER_TAG: follows, **job.tags} if follows and not has_think_time else job.tags,
        follows=follows if has_think_time else "",
        think_ns=job.think_ns if has_think_time else 0,
        fails=job.status in {FAILED, CANCELLED},
        recorded_start_ns=None if job.start_ns == UNKNOWN else job.start_ns - reading.start_ns,
    )


def _tasks_of(job: SwfJob, reading: _Reading) -> list[tuple[int, dict[str, int]]]:
    """Return the tasks of a job: the numbers of equal ones, with the request of each."""
    if job.resources:
        return _equal_tasks(job, reading)
    processors = _processors(job, reading)
    chunks = _requested_chunks(job, processors, reading) or _grouped_chunks(job, processors, reading)
    return [part for chunk in chunks for part in _parts(job, chunk, reading)]


def _equal_tasks(job: SwfJob, reading: _Reading) -> list[tuple[int, dict[str, int]]]:
    """Return a job of known resources as tasks that are equal, except for remainders of the divisions."""
    pool = reading.pool_of(job)
    machines = (each for each in reading.machines if not pool or pool in each.partitions.split(","))
    kinds = [machine.resources() for machine in machines]
    amounts = {name: amount for name, amount in job.resources.items() if amount > 0}
    for name in [name for name in amounts if not any(name in kind for kind in kinds)]:
        reading.notes[f"job that requests {name}, which no machine has: ignored"] += 1
        del amounts[name]
    able = [kind for kind in kinds if set(amounts) <= set(kind)] or kinds
    sizes = (-(-amount // kind[name]) for kind in able for name, amount in amounts.items() if kind.get(name))
    count = job.tasks or max(sizes, default=1)
    if reading.options.task_processors is not None:
        count = max(count, -(-amounts.get("vcore", 0) // (reading.options.task_processors * _MILLI)))
    if max(count, amounts.get("vcore", 0) // _MILLI) > _PROCESSORS_MAX:
        message = f"expected at most {_PROCESSORS_MAX} tasks and processors, got {count} tasks"
        raise InputError(reading.path, f"{message} of {job.resources}", line=job.line)
    tasks: Counter[tuple[tuple[str, int], ...]] = Counter()
    for number in range(count):
        parts = (
            (name, amount * (number + 1) // count - amount * number // count)
            for name, amount in amounts.items()
        )
        tasks[tuple((name, part) for name, part in parts if part)] += 1
    return [(times, dict(size)) for size, times in tasks.items()]


def _walltime_ns(job: SwfJob, reading: _Reading) -> int | None:
    """Return the maximum run time of a job by its owner, `None` if it is unknown."""
    if job.requested_ns > 0:
        return job.requested_ns
    if reading.options.estimate_factor is None:
        return None
    reading.notes["job without a requested time: its walltime comes from its run time"] += 1
    return min((job.run_ns or NANOSECONDS_IN_SECOND) * reading.options.estimate_factor, INT64_MAX)


def _queue(job: SwfJob, log: SwfLog) -> str:
    """Return the full path of a job's queue."""
    name = job.queue_name or log.queue_names.get(job.queue, "")
    if name:
        return f"root.{queue_name(name)}"
    return f"root.queue{job.queue}" if job.queue >= 0 else "root.default"


def _processors(job: SwfJob, reading: _Reading) -> int:
    """Return the processors of a job: allocated, or else requested ones; for a whole job, the reverse."""
    processors = job.processors
    if reading.options.whole and job.requested_processors > 0:
        processors = job.requested_processors
    if processors <= 0:
        reading.notes["job of unknown processors: taken from what it requested"] += 1
        processors = job.requested_processors
    if processors > _PROCESSORS_MAX:
        message = f"processors: {processors} are more than {_PROCESSORS_MAX}"
        raise InputError(reading.path, message, line=job.line)
    return processors


def _requested_chunks(job: SwfJob, processors: int, reading: _Reading) -> list[_Chunk]:
    """Return the parts in the text of the request, an empty list if they are not usable."""
    if not job.request:
        return []
    chunks, ignored = _parse_request(job.request)
    if sum(chunk.count * chunk.processors for chunk in chunks) != processors:
        reading.notes["job whose request does not add up to its processors: grouped instead"] += 1
        return []
    if ignored:
        reading.notes["job that asks for properties of nodes: ignored"] += 1
    return chunks


def _parse_request(request: str) -> tuple[list[_Chunk], bool]:
    """Return the parts of a request text, and whether it asks for more than processors."""
    parts, _, exclusive = request.partition("#")
    ignored = bool(exclusive)
    chunks: list[_Chunk] = []
    for text in parts.split("+"):
        # A part that names a node instead of a number of nodes is for that node.
        match = _CHUNK.fullmatch(text if text[:1].isdigit() else f"1:{text}")
        if match is None:
            return [], True
        properties = match["properties"].split(":")[1:]
        sizes = [size for name in properties if (size := _PROCESSORS_OF_NODE.fullmatch(name))]
        ignored = ignored or len(properties) > len(sizes)
        chunks.append(_Chunk(int(match["nodes"]), int(sizes[0][1]) if sizes else 1))
    return [chunk for chunk in chunks if chunk.count and chunk.processors], ignored


def _grouped_chunks(job: SwfJob, processors: int, reading: _Reading) -> list[_Chunk]:
    """Return parts that each fit on the smallest kind of node."""
    size = reading.smallest.processors
    memory = _memory_of_processor(job)
    if memory and reading.smallest.memory:
        size = max(1, min(size, reading.smallest.memory // memory))
    whole, rest = divmod(processors, size)
    return [chunk for chunk in (_Chunk(whole, size), _Chunk(1, rest)) if chunk.count and chunk.processors]


def _memory_of_processor(job: SwfJob) -> int:
    """Return the bytes that a job of a standard log requests for each processor, 0 if they are unknown."""
    if job.request or job.requested_memory <= 0:
        return 0
    return job.requested_memory * BYTES_IN_KILOBYTE


def _parts(job: SwfJob, chunk: _Chunk, reading: _Reading) -> list[tuple[int, dict[str, int]]]:
    """Return a chunk as tasks within the allowed size: their number, and the request of each."""
    resources = _resources(job, chunk, reading)
    size = reading.options.task_processors
    if size is None or chunk.processors <= size:
        return [(chunk.count, resources)]
    whole, rest = divmod(chunk.processors, size)
    counts = [(chunk.count * whole, size), (chunk.count if rest else 0, rest)]
    return [
        (
            count,
            {name: amount * processors // chunk.processors for name, amount in resources.items()},
        )
        for count, processors in counts
        if count
    ]


def _resources(job: SwfJob, chunk: _Chunk, reading: _Reading) -> dict[str, int]:
    """Return the request of one part of a job."""
    resources = {"vcore": chunk.processors * _MILLI}
    if job.requested_memory <= 0:
        return resources
    if not reading.smallest.memory:
        reading.notes["task that requests memory on machines of unknown memory: ignored"] += chunk.count
        return resources
    memory = _memory_of_processor(job) * chunk.processors or job.requested_memory
    if memory > INT64_MAX:
        message = f"requested memory: {job.requested_memory} is too large"
        raise InputError(reading.path, message, line=job.line)
    resources["memory"] = memory
    return resources
