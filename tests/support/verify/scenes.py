"""Small days for the verifier: a few queues, and what is said in them, as recorded lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from support.transcripts.transcript_lines import RM_ID, resource
from support.verify.days import recorded


def ask(key: str, application: str, memory: int = 10, **more: Any) -> dict[str, Any]:
    """Return an ask that is willing to end and may preempt."""
    policy = {"allowPreemptSelf": True, "allowPreemptOther": True}
    body = {"allocationKey": key, "applicationID": application, "preemptionPolicy": policy}
    return {**body, "resourcePerAlloc": resource({"memory": memory}), **more}


def _say(*asks: dict[str, Any]) -> dict[str, Any]:
    return {"allocation": {"rmID": RM_ID, "allocations": [*asks]}}


def _node(name: str, memory: int, action: str = "CREATE") -> dict[str, Any]:
    node = {"nodeID": name, "action": action, "schedulableResource": resource({"memory": memory})}
    return {"node": {"rmID": RM_ID, "nodes": [node]}}


def _registered(queues: list[dict[str, Any]], **partition: Any) -> dict[str, Any]:
    root = {"name": "root", "submitacl": "*", "queues": queues}
    document = {"partitions": [{"name": "default", "queues": [root], **partition}]}
    return {"register": {"rmID": RM_ID, "config": json.dumps(document)}}


def _applications(gang: str = "", **leaves: str) -> dict[str, Any]:
    new: list[dict[str, Any]] = [
        {"applicationID": name, "queueName": f"root.{leaf}", "ugi": {"user": "eve"}}
        for name, leaf in leaves.items()
    ]
    for each in new:
        each["tags"] = {"gangSize": "2"} if each["applicationID"] == gang else {}
    return {"application": {"rmID": RM_ID, "new": new}}


def _owed(**properties: str) -> Iterator[dict[str, Any]]:
    """Yield a day in which a queue gets its guarantee: p1 takes the place of r3, the youngest."""
    production = {"name": "production", "properties": {"preemption.delay": "10s"}}
    research = {"name": "research", "properties": properties, "resources": {"guaranteed": {"memory": 10}}}
    production["resources"] = {"guaranteed": {"memory": 20}}
    limited = {"name": "limited", "limits": [{"users": ["*"], "maxresources": {"memory": 10}}]}
    small = {"name": "small", "resources": {"max": {"memory": 10}}}
    yield _registered([production, research, limited, small])
    yield _node("n1", 40)
    yield _applications(study="research", shop="production", tiny="limited", few="small")
    for number in range(1, 5):
        more: dict[str, Any] = {"preemptionPolicy": {}} if number == 4 else {}
        yield _say(ask(f"r{number}", "study", **more))
        yield {"advance": "1s"}
    yield {"schedule": "all"}
    yield _say(ask("p1", "shop", priority=1), ask("p2", "shop", 10))
    yield {"advance": "11s"}
    yield {"schedule": 3}
    yield {"advance": "16s"}
    yield {"schedule": 3}
    yield _node("n2", 20)
    yield _node("n3", 20, "CREATE_DRAIN")
    yield _say(ask("t1", "tiny"), ask("s1", "few"))
    yield {"schedule": "all"}
    ended = {"applicationID": "study", "allocationKey": "r1", "terminationType": "STOPPED_BY_RM"}
    yield {"allocation": {"rmID": RM_ID, "releases": {"allocationsToRelease": [ended]}}}


def _two_on_a_node() -> Iterator[dict[str, Any]]:
    """Yield a day in which two small victims end for one ask, confirmed one after the other."""
    production = {"name": "production", "properties": {"preemption.delay": "10s"}}
    production["resources"] = {"guaranteed": {"memory": 20}}
    yield _registered([production, {"name": "research"}])
    yield {"confirm": "manual"}
    yield _node("n1", 30)
    yield _applications(study="research", shop="production", other="research")
    for number in range(1, 7):
        yield _say(ask(f"r{number}", "study", 5))
        yield {"advance": "1s"}
    yield {"schedule": "all"}
    yield _say(ask("p1", "shop"))
    yield {"advance": "11s"}
    yield {"schedule": 2}
    yield _say(ask("x1", "other", 5))
    for key in ("r6", "r5"):
        ended = {"applicationID": "study", "allocationKey": key, "terminationType": "PREEMPTED_BY_SCHEDULER"}
        yield {"allocation": {"rmID": RM_ID, "releases": {"allocationsToRelease": [ended]}}}
        yield {"schedule": 1}
    yield {"advance": "20s"}
    yield {"schedule": 2}


def _for_a_node() -> Iterator[dict[str, Any]]:
    """Yield a day in which an ask that needs its node takes the place of the youngest there."""
    yield _registered([{"name": "system"}, {"name": "work"}])
    yield _node("n1", 30)
    yield _node("n2", 30)
    yield _applications(job="work", logs="system")
    for key, more in (("high", {"priority": 9}), ("old", {}), ("young", {})):
        yield _say(ask(key, "job", nodeID="n1", **more))
        yield {"advance": "1s"}
    tags = {"yunikorn.apache.org/requiredNode": "n1"}
    yield _say(ask("daemon", "logs", priority=1, allocationTags=tags))
    yield {"schedule": 3}


def _inside() -> Iterator[dict[str, Any]]:
    """Yield a day in which urgent work ends what has a lower priority in its queue."""
    properties = {"preemption.delay": "10s", "preemption.within": "lower-priority"}
    yield _registered([{"name": "research", "properties": properties}])
    yield _node("n1", 20)
    yield _applications(study="research")
    yield _say(ask("r1", "study", nodeID="n1"), ask("r2", "study", nodeID="n1", priority=2))
    yield _say(ask("urgent", "study", priority=5))
    yield {"advance": "11s"}
    yield {"schedule": 3}


def _for_a_maximum() -> Iterator[dict[str, Any]]:
    """Yield a day in which a maximum is lowered and enforced."""

    def queues(most: int) -> dict[str, Any]:
        work = {"name": "work", "properties": {"quota.preemption.delay": "5s"}}
        work["resources"] = {"max": {"memory": most}, "guaranteed": {"memory": 10}}
        return _registered([work], preemption={"quotapreemptionenabled": True})

    yield queues(40)
    yield _node("n1", 40)
    yield _applications(job="work")
    for number in range(1, 5):
        yield _say(ask(f"w{number}", "job"))
        yield {"schedule": "all"}
    yield {"configuration": {"rmID": RM_ID, "config": queues(25)["register"]["config"]}}
    yield {"advance": "8s"}


def _gang(walltime: str = "", **properties: str) -> Iterator[dict[str, Any]]:
    """Yield a day in which work on two nodes ends for a gang, confirmed one after the other.

    r3 ends by itself, so that in the end the members have each other's nodes.
    """
    train = {"name": "train", "properties": {"preemption.delay": "10s"}}
    train["resources"] = {"guaranteed": {"memory": 40}}
    work = {"name": "work", "properties": properties, "queues": [train, {"name": "research"}]}
    yield _registered([work])
    yield {"confirm": "manual"}
    for name in ("n1", "n2"):
        yield _node(name, 20)
    yield _applications("large", large="work.train", small="work.train", study="work.research")
    tags: dict[str, Any] = {"allocationTags": {"walltime": walltime}} if walltime else {}
    for number, node in enumerate(("n1", "n1", "n2", "n2"), 1):
        yield _say(ask(f"r{number}", "study", nodeID=node, **tags))
        yield {"advance": "1s"}
    yield _say(ask("g1", "large", 20, priority=3, **tags), ask("g2", "large", priority=1, **tags))
    yield {"advance": "11s"}
    yield {"schedule": 2}
    yield _say(ask("x1", "small", **tags))
    for key in ("r4", "r3", "r2", "r1"):
        why = "STOPPED_BY_RM" if key == "r3" else "PREEMPTED_BY_SCHEDULER"
        ended = {"applicationID": "study", "allocationKey": key, "terminationType": why}
        yield {"allocation": {"rmID": RM_ID, "releases": {"allocationsToRelease": [ended]}}}
        yield {"schedule": 1}
    yield {"advance": "20s"}
    yield {"schedule": 2}


def _day(lines: Callable[[], Iterator[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recorded("\n".join(map(json.dumps, lines())))]


SCENES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "guarantee": lambda: _day(_owed),
    "two victims": lambda: _day(_two_on_a_node),
    "node": lambda: _day(_for_a_node),
    "inside": lambda: _day(_inside),
    "maximum": lambda: _day(_for_a_maximum),
    "gang": lambda: _day(_gang),
    "gang that backfills": lambda: _day(
        lambda: _gang("1h", **{"backfill.reservations": "2", "preemption.delay": "10s"})
    ),
}
"""Days by name, each as the documents of its lines."""


def with_text(lines: list[dict[str, Any]]) -> list[str]:
    """Return documents as lines."""
    return [f"{json.dumps(line)}\n" for line in lines]


def entries(line: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """Return the entries of the allocation response of a line: those that are `new` or `released`."""
    found: list[dict[str, Any]] = line.get("outcome", {}).get("allocationResponse", {}).get(field, [])
    return found


def line_of(lines: list[dict[str, Any]], key: str, what: str) -> int:
    """Return the index of the last line in which something is `new`, is `released`, or preempts."""
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        record = line.get("outcome", {}).get("preemption", {})
        if what == "preemption" and record.get("allocationKey") == key:
            return index
        if what != "preemption" and any(each["allocationKey"] == key for each in entries(line, what)):
            return index
    raise AssertionError(f"expected a line with {what} of {key}, got none")
