"""A replay that watches: after every line it checks what must be true whatever was said."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

from support.transcripts.contract_checker import ContractChecker, ContractError
from support.transcripts.snapshot_checks import check_snapshot, tree

from licorne.model.state.host import ApplicationTimer, QuotaCheck, TimerKey, timer_key
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import Line, read_transcript

_HOUR_NS: Final = 3_600 * 1_000_000_000

_QUIET: Final = ("schedule", "advance")
"""Verbs during which the RM says nothing of its own, so that what grows is what the core has placed."""


class _Usage(NamedTuple):
    """What is used somewhere, and how much may be; a type without a maximum is free, or must be unused."""

    used: dict[str, int]
    maximum: dict[str, int]
    is_closed: bool


def output_of(
    text: str, engine: EngineName, *, check_direction: bool = False, threads: int | None = None
) -> list[str]:
    """Replay a transcript and return the lines of output; of days only the last hour second by second."""
    output: list[str] = []
    replay = make_replay(engine, output, check_direction=check_direction, threads=threads)
    with replay.scheduler:
        replay.run(_hurried(replay.scheduler, line) for line in read_transcript(text, "transcript"))
    return output


def _hurried(scheduler: Scheduler, line: Line) -> Line:
    """Jump over all but the last hour that a line lets pass; the timers that are due on the way fire."""
    left_ns = line.duration_ns() - _HOUR_NS if line.verb == "advance" else 0
    if left_ns <= 0:
        return line
    scheduler.advance_to(scheduler.now_ns() + left_ns)
    return replace(line, body=_HOUR_NS)


def make_replay(
    engine: EngineName, output: list[str], *, check_direction: bool = False, threads: int | None = None
) -> Replay:
    """Make a replay that writes to a list; `check_direction` refuses asks between actors that go up."""
    scheduler = Scheduler(engine=engine, stepped=True, threads=threads, check_direction=check_direction)
    return Replay(scheduler, output.append)


class Witness:
    """Replays line by line on a stepped scheduler, and keeps the RM's callbacks."""

    def __init__(self, engine: EngineName = "direct") -> None:
        self.output: list[str] = []
        self._heard = 0
        self._replay = Replay(Scheduler(engine=engine, stepped=True), self.output.append)
        self.book = ContractChecker()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._replay.scheduler.stop()

    def watch(self, lines: list[str]) -> None:
        """Replay all lines.

        Raises:
            ContractError: something was broken; the text has the line of the transcript.
        """
        for line in read_transcript("\n".join(lines), "transcript"):
            text = lines[line.number - 1]
            try:
                self._watch_line(line, json.loads(text)[line.verb])
            except Exception as error:
                raise ContractError(
                    f"{type(error).__name__}: {error}\nat line {line.number}: {text}"
                ) from error

    def replay_unwatched(self, lines: list[str]) -> None:
        """Replay without a check."""
        self._replay.run(read_transcript("\n".join(lines), "transcript"))

    def _watch_line(self, line: Line, body: Any) -> None:
        before = self._usages() if line.verb in _QUIET else {}
        documents = self.snapshot() if line.verb == "configuration" else None
        self.book.note_said(line.verb, body)
        self._replay.run([line])
        self._replay.scheduler.validate()
        check_timers(self._replay.scheduler)
        answers = [json.loads(row) for row in self.output[self._heard :]]
        self._heard = len(self.output)
        refused = any("error" in answer for answer in answers)
        for answer in answers:
            self.book.note_heard(answer)
        if line.verb in ("register", "configuration") and not refused:
            self.book.forget_partitions(body.get("config", ""), note_registration=line.verb == "register")
        after = self.snapshot()
        if documents is not None and refused and documents != after:
            raise ContractError("a refused configuration has changed something")
        if before:
            _check_growth(before, self._usages())
        check_snapshot(after)
        self.book.check([entry for entries in after["applications"].values() for entry in entries])

    # ------------------------------------------------------------------------------- what is in use

    def snapshot(self) -> Any:
        """Return the documents of everything."""
        return self._replay.scheduler.snapshot()

    def _usages(self) -> dict[str, _Usage]:
        """Return the usage of every queue, node, user and group."""
        document = self.snapshot()
        usages: dict[str, _Usage] = {}
        for partition in document["queues"]:
            for queue in tree(document["queues"][partition]):
                usages[f"queue {partition} {queue['queuename']}"] = _Usage(
                    queue.get("allocatedResource", {}),
                    queue.get("maxResource", {}),
                    queue["queuename"] == "root",
                )
            for node in document["nodes"][partition]:
                capacity, occupied = node.get("capacity", {}), node.get("occupied", {})
                room = {name: capacity[name] - occupied.get(name, 0) for name in capacity}
                usages[f"node {partition} {node['nodeID']}"] = _Usage(node.get("allocated", {}), room, True)
            for holder in (*document["users"][partition], *document["groups"][partition]):
                name = holder.get("userName") or f"group {holder['groupName']}"
                for queue in tree(holder["queues"]):
                    usages[f"limit {partition} {name} {queue['queuePath']}"] = _Usage(
                        queue.get("resourceUsage", {}), queue.get("maxResources", {}), False
                    )
        return usages

    def check_empty(self) -> None:
        """Check that nothing is left in use, after everything has been released and removed.

        Raises:
            ContractError: something is.
        """
        left = [f"{name}: {usage.used}" for name, usage in self._usages().items() if any(usage.used.values())]
        left += [*_left_over(self.snapshot())]
        left += [f"{entry} was placed and never ended" for entry in sorted(self.book.placed)]
        if left:
            raise ContractError("left over at the end: " + ", ".join(left))


def check_timers(scheduler: Scheduler) -> None:
    """Check that nothing waits on the clock of a scheduler on `direct` for who is gone, nor twice.

    Raises:
        ContractError: something does.
    """
    incarnations = scheduler._managers._incarnations._partitions
    waiting: Counter[tuple[str, TimerKey]] = Counter()
    for _, _, incarnation, action in scheduler._clock._due:
        if incarnation not in incarnations:
            raise ContractError(f"{action} waits for {incarnation}, which is gone")
        waiting[incarnation, timer_key(action)] += not isinstance(action, QuotaCheck)
        serials = incarnations[incarnation]._state.serials
        if isinstance(action, ApplicationTimer) and serials.get(action.application_id) != action.serial:
            raise ContractError(f"{action} waits for an application that is gone")
    twice = [key for key, count in waiting.items() if count > 1]
    if twice:
        raise ContractError(f"{twice} wait more than once")


def _check_growth(before: dict[str, _Usage], after: dict[str, _Usage]) -> None:
    """Check that nothing has grown beyond its maximum; what the RM itself put there may stay."""
    for name, usage in after.items():
        used_before = before[name].used if name in before else {}
        for kind, quantity in usage.used.items():
            maximum = usage.maximum.get(kind, 0 if usage.is_closed else quantity)
            if quantity > max(maximum, used_before.get(kind, 0)):
                raise ContractError(f"{name} has grown to {quantity} {kind}, maximum {maximum}")


def _left_over(document: Any) -> Iterator[str]:
    """Name everything that an empty cluster has not."""
    for partition in document["partitions"]:
        shown = {"capacity": partition.get("capacity", {}).get("capacity", {})}
        shown |= {
            count: partition[count] for count in ("totalContainers", "totalNodes") if count in partition
        }
        yield from _non_zero(f"partition {partition['name']}", shown)
    for queue in _trees(document["queues"].values()):
        fields = ("pendingResource", "preemptingResource", "runningApps", "allocatingAcceptedApps")
        yield from _non_zero(f"queue {queue['queuename']}", {name: queue.get(name) for name in fields})
    for part in ("users", "groups"):
        holders = [holder for holders in document[part].values() for holder in holders]
        for queue in _trees(holder["queues"] for holder in holders):
            yield from _non_zero(
                f"{part} of {queue['queuePath']}", {"runs": queue.get("runningApplications")}
            )


def _non_zero(where: str, fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if any(value.values()) if isinstance(value, dict) else value:
            yield f"{name} of {where}: {value}"


def _trees(roots: Iterable[Any]) -> Iterator[Any]:
    for root in roots:
        yield from tree(root)
