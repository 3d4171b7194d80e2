"""A replay that watches: after every line it checks what must be true whatever was said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from licorne.model.configuration.reader import DEFAULT_CONFIGURATION, load
from licorne.proxy.replay import Replay
from licorne.proxy.scheduler import Scheduler
from licorne.proxy.transcript import read_transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from licorne.proxy.scheduler import EngineName
    from licorne.proxy.transcript import Line

__all__ = ["ContractError", "Witness", "output_of"]

_QUIET: Final = ("schedule", "advance")
"""Verbs during which the RM says nothing of its own, so that what grows is what the core has placed."""
_CONFIRMED: Final = ("TIMEOUT", "PREEMPTED_BY_SCHEDULER", "PLACEHOLDER_REPLACED")


class ContractError(AssertionError):
    """The scheduler did what it must never do."""


class _Usage(NamedTuple):
    """What is used somewhere, and how much may be; a type without a maximum is free, or must be unused."""

    used: dict[str, int]
    maximum: dict[str, int]
    is_closed: bool


def output_of(text: str, engine: EngineName, *, check_direction: bool = False) -> list[str]:
    """Replay a transcript and return the lines of output."""
    output: list[str] = []
    replay = Replay(engine, output.append)
    if check_direction:
        replay.scheduler.stop()
        replay.scheduler = Scheduler(engine=engine, stepped=True, check_direction=True)
    with replay.scheduler:
        replay.run(read_transcript(text, "transcript"))
    return output


class Witness:
    """Replays line by line on a stepped scheduler, and remembers what the RM has been told."""

    def __init__(self, engine: EngineName = "direct") -> None:
        self.output: list[str] = []
        self._heard = 0
        self._replay = Replay(engine, self.output.append)
        self._confirms = True
        self._partitions: dict[str, str] = {}
        """The partition of each application, as the RM writes it."""
        self._placed: set[tuple[str, str]] = set()
        """Applications and keys that have been announced, and have not ended."""
        self._ended: set[tuple[str, str]] = set()
        """Those that have ended, and have not been asked for again."""
        self._asked: set[tuple[str, str]] = set()
        """All that were ever asked for."""

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
        documents = self._snapshot() if line.verb == "configuration" else None
        new_keys = self._listen_to_manager(line.verb, body)
        self._replay.run([line])
        self._replay.scheduler.validate()
        answers = [json.loads(row) for row in self.output[self._heard :]]
        self._heard = len(self.output)
        refused = any("error" in answer for answer in answers)
        for answer in answers:
            self._listen_to_scheduler(answer.get("allocationResponse", {}))
        if line.verb in ("register", "configuration") and not refused:
            self._forget_partitions(body.get("config", ""), starts_afresh=line.verb == "register")
        if documents is not None and refused and documents != self._snapshot():
            raise ContractError("a refused configuration has changed something")
        if before:
            _check_growth(before, self._usages())
        if new_keys and not refused:
            self._check_answered(new_keys, answers)

    # ------------------------------------------------------------------------- what has been placed

    def _listen_to_manager(self, verb: str, body: Any) -> set[tuple[str, str]]:
        """Note what the RM says; return the asks that it has never made before.

        A known key without an allocation may stand for one that ended with its node, or by a timeout:
        such an ask is over, and to make it again changes nothing until it has been released.
        """
        if verb == "confirm":
            self._confirms = body == "auto"
        if verb == "application":
            for new in body.get("new", []):
                self._partitions[new["applicationID"]] = new.get("partitionName") or "default"
        if verb != "allocation":
            return set()
        asked = {
            (allocation["applicationID"], allocation["allocationKey"])
            for allocation in body.get("allocations", [])
            if "foreign" not in allocation.get("allocationTags", {})
        }
        self._ended -= asked
        for release in body.get("releases", {}).get("allocationsToRelease", []):
            self._note_release(release)
        new, self._asked = asked - self._asked, self._asked | asked
        return new if "releases" not in body else set()

    def _note_release(self, release: dict[str, str]) -> None:
        """Note what the RM ends; an end that it says is its own will be echoed."""
        name, key = release["applicationID"], release.get("allocationKey", "")
        ended = {entry for entry in self._placed if entry[0] == name and key in ("", entry[1])}
        if release.get("terminationType") in _CONFIRMED:
            self._placed -= ended
        self._ended |= ended

    def _listen_to_scheduler(self, response: Any) -> None:
        for allocation in response.get("new", []):
            entry = (allocation["applicationID"], allocation["allocationKey"])
            if entry in self._placed:
                raise ContractError(f"{entry} is announced twice")
            if entry in self._ended:
                raise ContractError(f"{entry} is announced after its end")
            self._placed.add(entry)
        for release in response.get("released", []):
            entry = (release["applicationID"], release["allocationKey"])
            if release.get("terminationType") not in _CONFIRMED or self._confirms:
                if entry in self._placed:
                    self._ended.add(entry)
                self._placed.discard(entry)

    def _forget_partitions(self, config: str, *, starts_afresh: bool) -> None:
        """Forget what was in partitions that are gone, or are new."""
        kept = {partition.name for partition in load(config or DEFAULT_CONFIGURATION).partitions}
        gone = {entry for entry in self._placed if starts_afresh or self._partitions[entry[0]] not in kept}
        self._placed -= gone

    def _check_answered(self, asked: set[tuple[str, str]], answers: list[Any]) -> None:
        """Check that every ask of one message waits, is placed or was rejected."""
        responses = [answer.get("allocationResponse", {}) for answer in answers]
        rejections = [entry for response in responses for entry in response.get("rejectedAllocations", [])]
        answered = {(entry.get("applicationID", ""), entry["allocationKey"]) for entry in rejections}
        for application in self._applications():
            listed = [*application.get("requests", []), *application.get("allocations", [])]
            answered |= {(application["applicationID"], entry["allocationKey"]) for entry in listed}
        lost = asked - answered - self._placed
        if lost:
            raise ContractError(f"{sorted(lost)} neither wait nor are placed nor were rejected")

    # ------------------------------------------------------------------------------- what is in use

    def _snapshot(self) -> Any:
        return self._replay.scheduler.snapshot()

    def _applications(self) -> list[Any]:
        return [entry for entries in self._snapshot()["applications"].values() for entry in entries]

    def _usages(self) -> dict[str, _Usage]:
        """Return the usage of every queue, node, user and group."""
        document = self._snapshot()
        usages: dict[str, _Usage] = {}
        for partition in document["queues"]:
            for queue in _tree(document["queues"][partition]):
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
                for queue in _tree(holder["queues"]):
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
        left += [*_left_over(self._snapshot())]
        left += [f"{entry} was placed and never ended" for entry in sorted(self._placed)]
        if left:
            raise ContractError("left over at the end: " + ", ".join(left))


def _tree(document: Any) -> Iterator[Any]:
    yield document
    for child in document.get("children", []):
        yield from _tree(child)


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
        yield from _tree(root)
