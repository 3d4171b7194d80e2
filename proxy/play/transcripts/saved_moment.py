"""A saved moment of a scheduler as a transcript: at its end a scheduler has the saved state.

First all nodes are created, drained so that nothing is placed, with a configuration that accepts each
application in its queue. Then everything follows at its time, counted from the oldest. At the saved moment
the nodes become schedulable again, and the saved configuration takes effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

import yaml

from ....actors.services.clocks import EPOCH_2000_NS
from ....model.requests.submission_terms import APPLICATION_CREATION_TAG
from ....model.values.allocation import CHECKPOINT_TIME_TAG, CREATION_TIME_TAG, START_TIME_TAG
from ....model.values.documents import Document

_SECOND_NS: Final = 1_000_000_000
_TIME_TAGS: Final = (
    CREATION_TIME_TAG,
    APPLICATION_CREATION_TAG,
    CHECKPOINT_TIME_TAG,
    START_TIME_TAG,
)
"""The tags whose value is a time, in seconds since 1970."""


def saved_lines(saved: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the transcript of a saved moment, the document of `Scheduler.saved`."""
    partitions = saved["partitions"]
    moment_ns = max((partition["time"] for partition in partitions), default=EPOCH_2000_NS)
    timed = [request for partition in partitions for request in partition["requests"]]
    timed.sort(key=lambda request: request[0])  # Requests of one time keep their order.
    oldest_ns = timed[0][0] if timed else moment_ns
    shift_seconds = oldest_ns // _SECOND_NS - EPOCH_2000_NS // _SECOND_NS
    yield f"# The moment is {(moment_ns - oldest_ns) / _SECOND_NS:.9g} s after the oldest application came."
    for rm_id, text in saved["managers"].items():
        paths = {each["name"]: each["queues"] for each in partitions if each["rmID"] == rm_id}
        yield _line("register", {"rmID": rm_id, "config": open_configuration(text, paths)})
    for partition in partitions:
        yield from _nodes(partition, shift_seconds)
    now_ns = oldest_ns // _SECOND_NS * _SECOND_NS
    for (at_ns, verb, rm_id), requests in groupby(
        timed, key=lambda request: (request[0], request[1], request[2]["rmID"])
    ):
        yield from _advance(at_ns - now_ns)
        now_ns = at_ns
        yield _line(verb, _joined(rm_id, [body for _, _, body in requests], shift_seconds))
    yield from _advance(moment_ns - now_ns)
    for partition in partitions:
        if partition["schedulable"]:
            yield _line("node", {"rmID": partition["rmID"], "nodes": partition["schedulable"]})
    for rm_id, text in saved["managers"].items():
        yield _line("configuration", {"rmID": rm_id, "config": text})


def open_configuration(text: str, paths: Mapping[str, Iterable[str]]) -> str:
    """Return a queue configuration that accepts each application in the queue it names, without preemption.

    Args:
        text: The configuration in effect.
        paths: The queues with applications, by the short name of the partition. Each becomes a leaf, even if
            a reload has made a parent of it or removed it.
    """
    configuration = yaml.safe_load(text)
    for partition in configuration["partitions"]:
        queues = partition.get("queues") or []
        if len(queues) != 1 or queues[0]["name"].lower() != "root":
            queues = [{"name": "root", "queues": queues}]
        queues[0]["submitacl"] = "*"
        partition["queues"] = queues
        partition["placementrules"] = [{"name": "provided", "create": True}]
        partition["preemption"] = {"enabled": False}
        for path in paths.get(partition["name"], ()):
            _make_leaf(queues[0], path.split(".")[1:])
    return yaml.safe_dump(configuration, sort_keys=False)


def _make_leaf(queue: dict[str, Any], names: Iterable[str]) -> None:
    """Make a leaf of the queue with these names; a missing queue is created by the placement."""
    for name in names:
        below = queue.get("queues") or []
        found = next((each for each in below if each["name"].lower() == name.lower()), None)
        if found is None:
            queue["parent"] = True
            return
        queue = found
    for key in ("queues", "parent", "childtemplate"):
        queue.pop(key, None)


def _nodes(partition: Mapping[str, Any], shift_seconds: int) -> Iterator[str]:
    """Yield the creation of the nodes, with the allocations of others there."""
    rm_id = partition["rmID"]
    if partition["nodes"]:
        yield _line("node", {"rmID": rm_id, "nodes": partition["nodes"]})
    if partition["foreign"]:
        yield _line("allocation", _joined(rm_id, [{"allocations": partition["foreign"]}], shift_seconds))


def _joined(rm_id: str, bodies: Iterable[Mapping[str, Any]], shift_seconds: int) -> Document:
    """Return requests of one kind as one, with the times in their tags counted from the start."""
    joined: dict[str, Any] = {"rmID": rm_id}
    for body in bodies:
        for field, tags in (("new", "tags"), ("allocations", "allocationTags")):
            for each in body.get(field, ()):
                moved = {**each, tags: _moved(each[tags], shift_seconds)} if tags in each else each
                joined.setdefault(field, []).append(moved)
    return joined


def _moved(tags: Mapping[str, str], shift_seconds: int) -> Mapping[str, str]:
    times = {
        name: str(max(0, int(tags[name]) - shift_seconds))
        for name in _TIME_TAGS
        if re.fullmatch(r"[0-9]{1,10}", tags.get(name, ""))
    }
    return {**tags, **times}


def _advance(duration_ns: int) -> Iterator[str]:
    if duration_ns > 0:
        yield _line("advance", f"{duration_ns}ns")


def _line(verb: str, body: object) -> str:
    return json.dumps({verb: body}, ensure_ascii=False)
