"""What it costs to record what locks do, and to analyse a trace such as eight scheduling threads make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from lock_costs import TIMES, time_taking
from report import Figure

from licorne import lockcheck
from licorne.lockcheck.commands.command import gc_paused
from licorne.lockcheck.findings.terms import Frame
from licorne.lockcheck.prediction.prediction import predict
from licorne.lockcheck.prediction.trace_index import TraceIndex
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.trace import Event, EventKind, TracedExecution, TracedLock, read_trace
from licorne.lockcheck.traces.writer import SEGMENT_BYTES, TraceWriter

THREADS: Final = 8
_COUNTS: Final = {"partition": 2, "queue": 20, "application": 200, "node": 200}
"""How many locks of each class the trace has, in the order in which they are taken."""
_REVERSED: Final = 3
"""So many chains go wrong: the thread takes the node and then its application, without the queue."""
_SITE: Final = Frame("cluster.py", 1, "schedule", "with lock:")


def recorded_events(
    clock_seconds: Callable[[], float], *, times: int = TIMES, rounds: int = 30
) -> tuple[Figure, ...]:
    """Return what recording adds to an event, over the level `full`, of both kinds of lock."""
    full: dict[str, float] = {}
    record: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for _ in range(rounds):
            with lockcheck.session():
                _time_locks(full, clock_seconds, times)
            with recording(Path(folder) / "locks.lct"):
                _time_locks(record, clock_seconds, times)
    return tuple(
        Figure(
            f"recording adds to an event of an {name}",
            (seconds - full[name]) / (2 * times) * 1e6,
            "µs",
            wanted_max=0.2,
        )
        for name, seconds in record.items()
    )


def _time_locks(fastest: dict[str, float], clock_seconds: Callable[[], float], times: int) -> None:
    """Take and release new locks so often, and keep the shortest time of each kind."""
    locks: dict[str, AbstractContextManager[object]] = {
        "RLock": lockcheck.RLock("queue"),
        "RWLock": lockcheck.RWLock("queue").write(),
    }
    for name, lock in locks.items():
        seconds = time_taking(lock, clock_seconds, times)
        fastest[name] = min(seconds, fastest.get(name, seconds))


def analysis(clock_seconds: Callable[[], float], *, events: int) -> tuple[Figure, ...]:
    """Return how fast a trace of so many events is read, indexed and searched for deadlocks."""
    with TemporaryDirectory() as folder, gc_paused():
        path = Path(folder) / "locks.lct"
        used_bytes = write_cluster_trace(path, events)
        start = clock_seconds()
        trace = read_trace(path)
        read = clock_seconds()
        TraceIndex(trace)
        indexed = clock_seconds()
        found = predict(trace).found
        predicted = clock_seconds()
    millions = len(trace.events) / 1e6
    return (
        Figure("a trace has", len(trace.events), "events"),
        Figure("an event has", used_bytes / len(trace.events), "bytes", wanted_max=16),
        Figure("reading", millions / (read - start), "million events/s"),
        Figure("the graph", millions / (indexed - read), "million events/s", wanted_min=1),
        Figure("prediction, a million events", (predicted - indexed) / millions, "s", wanted_max=10),
        Figure("that many deadlocks were predicted", len(found), ""),
    )


def write_cluster_trace(path: Path, events: int) -> int:
    """Write a trace of eight threads that take chains of four locks; return how many bytes it has."""
    segments = events * 16 // SEGMENT_BYTES + 2
    writer = TraceWriter(path, SEGMENT_BYTES, segments)
    names = [(name, str(number)) for name, count in _COUNTS.items() for number in range(count)]
    locks = {at: TracedLock(name, key, "writer") for at, (name, key) in enumerate(names, 1)}
    executions = {
        number: TracedExecution(f"scheduling-{number}", "scheduling") for number in range(1, THREADS + 1)
    }
    for event in _events(events):
        writer.event(event, lambda event=event: (executions[event.execution], locks[event.object], _SITE))  # type: ignore[misc] # bound
    used = writer.used_bytes
    writer.close()
    return used


def _events(count: int) -> Iterator[Event]:
    """Yield what threads do that take turns after each chain; an application has its queue and partition."""
    chance = Random(5)  # noqa: S311 - a seed to repeat
    partitions, queues, applications, nodes = _COUNTS.values()
    chains = count // (2 * len(_COUNTS))
    wrong = False
    for number in range(chains):
        if not wrong:  # otherwise another thread takes the same ones in the right order
            application, node = chance.randrange(applications), chance.randrange(nodes)
        queue = application % queues
        below = [partitions + queues + application, partitions + queues + applications + node]
        wrong = number % (chains // _REVERSED + 1) == 1
        chain = below[::-1] if wrong else [queue % partitions, partitions + queue, *below]
        execution = number % THREADS + 1
        for kind, order in ((EventKind.TOOK, chain), (EventKind.LEFT, chain[::-1])):
            for lock in order:
                yield Event(kind, execution, lock + 1, "R" if lock < partitions else "W", "block", 1)
