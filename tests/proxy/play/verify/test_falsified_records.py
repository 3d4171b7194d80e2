"""Records that were falsified one by one: each is refused, with the line of what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

import pytest
from support.verify.scenes import SCENES, entries, line_of, with_text

from licorne.proxy.play.verify.verifier import verify_lines

Lines = list[dict[str, Any]]


@cache
def scene(name: str) -> Lines:
    return SCENES[name]()


def record(lines: Lines, key: str = "p1") -> dict[str, Any]:
    found: dict[str, Any] = lines[line_of(lines, key, "preemption")]["outcome"]["preemption"]
    return found


def victim(lines: Lines, key: str = "p1") -> dict[str, Any]:
    found: dict[str, Any] = record(lines, key)["victims"][0]
    return found


def figures(lines: Lines, path: str, key: str = "p1") -> dict[str, Any]:
    queues: Lines = record(lines, key)["justification"]["queues"]
    return next(each for each in queues if each["queueName"] == path)


def placed(lines: Lines, key: str) -> dict[str, Any]:
    return next(
        each for each in entries(lines[line_of(lines, key, "new")], "new") if each["allocationKey"] == key
    )


def asked(lines: Lines, key: str) -> dict[str, Any]:
    """Return the request that asks for something."""
    requests = [each for line in lines for each in line.get("allocation", {}).get("allocations", ())]
    return next(each for each in requests if each["allocationKey"] == key)


def configured(lines: Lines, old: str, new: str) -> None:
    """Change the configurations, as if the scheduler had had others."""
    bodies = [line[verb] for line in lines for verb in ("register", "configuration") if verb in line]
    assert any(old in body["config"] for body in bodies)
    for body in bodies:
        body["config"] = body["config"].replace(old, new)


def outcome_after(lines: Lines, index: int, response: dict[str, Any]) -> None:
    like = lines[index]
    added = {"at": like["at"], "partition": like["partition"], "outcome": {"allocationResponse": response}}
    lines.insert(index + 1, added)


def ends_instead(lines: Lines, old: str, new: str, key: str = "p1") -> None:
    """Have another allocation end than the one that did, in all that reports, records or confirms it."""
    run = placed(lines, new)
    reported = entries(lines[line_of(lines, old, "released")], "released")
    each = next(each for each in reported if each["allocationKey"] == old)
    each |= {"allocationKey": new, "applicationID": run["applicationID"]}
    one = next(each for each in record(lines, key)["victims"] if each["allocationKey"] == old)
    one |= {"allocationKey": new, "applicationID": run["applicationID"], "nodeID": run["nodeID"]}
    for line in lines:
        for release in line.get("allocation", {}).get("releases", {}).get("allocationsToRelease", ()):
            if release["allocationKey"] == old:
                release |= {"allocationKey": new, "applicationID": run["applicationID"]}


class Falsified(NamedTuple):
    """A falsification."""

    scene: str
    falsify: Callable[[Lines], object]
    why: str
    """What has to be said."""
    key: str = "p1"
    what: str = "preemption"
    """The line that has to be named: of the preemption of the key, or of what is `new` or `released`."""


def _put(what: dict[str, Any], **values: Any) -> None:
    what.update(values)


def _victim_twice(lines: Lines) -> None:
    record(lines)["victims"] *= 2


def _one_more_victim(lines: Lines) -> None:
    index = line_of(lines, "r3", "released")
    entries(lines[index], "released").append(
        {"applicationID": "study", "allocationKey": "r1", "terminationType": "PREEMPTED_BY_SCHEDULER"}
    )


def _one_more_needless(lines: Lines) -> None:
    _one_more_victim(lines)
    record(lines)["victims"].append({**victim(lines), "allocationKey": "r1"})


def _placed_twice(lines: Lines) -> None:
    index = line_of(lines, "t1", "new")
    outcome_after(lines, index, {"new": [deepcopy(placed(lines, "r1"))]})


def _never_asked(lines: Lines) -> None:
    index = line_of(lines, "t1", "new")
    outcome_after(lines, index, {"new": [{**placed(lines, "t1"), "allocationKey": "unknown"}]})


def _end_unasked(lines: Lines) -> None:
    index = line_of(lines, "t1", "new")
    outcome_after(
        lines,
        index,
        {"released": [{"applicationID": "shop", "allocationKey": "p2", "terminationType": "STOPPED_BY_RM"}]},
    )


def _placed_beside_a_gang(lines: Lines) -> None:
    """Have another ask placed as soon as it came, where a victim of the gang had ended."""
    late = line_of(lines, "x1", "new")
    one, *_ = entries(lines.pop(late), "new")
    ended = [index for index, line in enumerate(lines) if "releases" in line.get("allocation", {})]
    outcome_after(lines, ended[0], {"new": [{**one, "nodeID": "n2"}]})


def _end_without_record(lines: Lines) -> None:
    del lines[line_of(lines, "p1", "preemption")]


def _given_to_another(lines: Lines) -> None:
    """Place x1, which waits, in the room of the first victim."""
    confirmed = next(
        i for i, line in enumerate(lines) if "r6" in str(line.get("allocation", {}).get("releases"))
    )
    new = {**placed(lines, "r1"), "allocationKey": "x1", "applicationID": "other"}
    outcome_after(lines, confirmed + 1, {"new": [new]})


def _order(lines: Lines) -> None:
    record(lines)["victims"].reverse()


FALSIFIED = {
    "too high a priority": Falsified(
        "guarantee", lambda d: _put(asked(d, "r3"), priority=5), "priority 5 ended for p1 of priority 1"
    ),
    "a priority as it is written in the record": Falsified(
        "guarantee", lambda d: victim(d)["priorities"].update(victim=-1), "priorities"
    ),
    "a victim that needs its node": Falsified(
        "guarantee",
        lambda d: _put(asked(d, "r3"), allocationTags={"yunikorn.apache.org/requiredNode": "n1"}),
        "can run on n1 only",
    ),
    "a victim of a protected queue": Falsified(
        "guarantee",
        lambda d: configured(
            d,
            '"name": "research", "properties": {',
            '"name": "research", "properties": {"preemption.policy": "disabled"',
        ),
        "preemption.policy: disabled",
    ),
    "a victim of its own queue": Falsified(
        "guarantee",
        lambda d: ends_instead(d, "r2", "p1", "p2"),
        "p1 of root.production ended for p2 of root.production",
        "p2",
    ),
    "a victim outside of the fence": Falsified(
        "guarantee",
        lambda d: configured(
            d, '"preemption.delay": "10s"', '"preemption.delay": "10s", "preemption.policy": "fence"'
        ),
        "outside of the fence",
    ),
    "a broken guarantee": Falsified(
        "guarantee",
        lambda d: configured(d, '"guaranteed": {"memory": 10}', '"guaranteed": {"memory": 35}'),
        "falls from memory 40 to memory 30 of a guarantee of memory 35",
    ),
    "a victim that gives nothing": Falsified(
        "guarantee",
        lambda d: configured(d, '"guaranteed": {"memory": 10}', '"guaranteed": {"memory": 40}'),
        "root.research uses memory 40 of a guarantee of memory 40",
    ),
    "a queue that is owed too little": Falsified(
        "guarantee",
        lambda d: configured(d, '"guaranteed": {"memory": 20}', '"guaranteed": {"memory": 15}'),
        "would use memory 20 of a guarantee of memory 15",
        "p2",
    ),
    "a queue without a guarantee": Falsified(
        "guarantee",
        lambda d: configured(d, '"guaranteed": {"memory": 20}', '"guaranteed": {"gpu": 20}'),
        "nothing that it asks for is guaranteed",
    ),
    "one victim too many": Falsified("guarantee", _one_more_needless, "has room without its end"),
    "a victim that no record names": Falsified("guarantee", _one_more_victim, "and the record omits it"),
    "a victim that does not run": Falsified(
        "guarantee", lambda d: victim(d).update(allocationKey="r9"), "was not asked to end"
    ),
    "a victim twice": Falsified("guarantee", _victim_twice, "is listed twice"),
    "an end without a record": Falsified(
        "guarantee", _end_without_record, "no record of a preemption names it", "r3", "released"
    ),
    "too young an ask": Falsified(
        "guarantee",
        lambda d: configured(d, '"preemption.delay": "10s"', '"preemption.delay": "60s"'),
        "before the preemption.delay",
    ),
    "an ask that may not preempt": Falsified(
        "guarantee", lambda d: _put(asked(d, "p1"), preemptionPolicy={}), "may not preempt others"
    ),
    "preemption that is off": Falsified(
        "guarantee",
        lambda d: configured(d, '{"name": "default"', '{"preemption": {"enabled": false}, "name": "default"'),
        "preemption is off",
    ),
    "too young a victim": Falsified(
        "guarantee",
        lambda d: configured(
            d,
            '"name": "research", "properties": {',
            '"name": "research", "properties": {"preemption.min-runtime": "1h"',
        ),
        "min-runtime of root.research",
    ),
    "more than a budget": Falsified(
        "guarantee",
        lambda d: configured(
            d,
            '"name": "research", "properties": {',
            '"name": "research", "properties": {"preemption.victims-max": "1/1h"',
        ),
        "loses 2 in 1h of at most 1",
        "p2",
    ),
    "the time": Falsified("guarantee", lambda d: _put(record(d), time=0), "its time is"),
    "what is owed before": Falsified(
        "guarantee",
        lambda d: _put(figures(d, "root.production"), owedBefore={"memory": 10}),
        "owedBefore: expected memory 20",
    ),
    "what is owed after": Falsified(
        "guarantee",
        lambda d: _put(figures(d, "root.production"), owedAfter={}),
        "owedAfter: expected memory 10",
    ),
    "what is above before": Falsified(
        "guarantee",
        lambda d: _put(figures(d, "root.research"), aboveBefore={"memory": 10}),
        "aboveBefore: expected memory 30",
    ),
    "what is above after": Falsified(
        "guarantee",
        lambda d: _put(figures(d, "root"), aboveAfter={"memory": 1}),
        "aboveAfter: expected memory 40",
    ),
    "a guarantee in the record": Falsified(
        "guarantee",
        lambda d: _put(figures(d, "root.research"), guaranteed=None),
        "guaranteed: expected memory 10, got None",
    ),
    "a node's room": Falsified(
        "guarantee",
        lambda d: record(d)["justification"]["nodes"][0].update(before={"memory": 10}),
        "before: expected nothing, got memory 10",
    ),
    "a node that is none": Falsified(
        "guarantee",
        lambda d: record(d)["justification"]["preemptors"][0].update(nodeID="n9"),
        "n9 is not known as a node",
    ),
    "another node": Falsified(
        "guarantee", lambda d: _put(victim(d), nodeID="n2"), "nodeID: expected n1, got n2"
    ),
    "what a victim gives": Falsified(
        "guarantee", lambda d: _put(victim(d), gives=["gpu"]), "gives: expected memory, got gpu"
    ),
    "a victim's size": Falsified(
        "guarantee",
        lambda d: victim(d).update(resource={"memory": 20}),
        "resource: expected memory 10, got memory 20",
    ),
    "no ask": Falsified(
        "guarantee", lambda d: _put(record(d)["justification"], preemptors=[]), "the record has no ask"
    ),
    "an ask that does not wait": Falsified(
        "guarantee",
        lambda d: record(d)["justification"]["preemptors"][0].update(allocationKey="r1"),
        "r1 preempts, and does not wait",
    ),
    "victims in another order": Falsified("two victims", _order, "stand as r5, r6, expected r6, r5"),
    "room that is given to another": Falsified("two victims", _given_to_another, "kept for p1", "x1", "new"),
    "above a node's room": Falsified(
        "guarantee", lambda d: _put(placed(d, "t1"), nodeID="n1"), "which has memory 0 left", "t1", "new"
    ),
    "an unknown node": Falsified(
        "guarantee", lambda d: _put(placed(d, "t1"), nodeID="n9"), "n9, which is not a node", "t1", "new"
    ),
    "a drained node": Falsified(
        "guarantee", lambda d: _put(placed(d, "t1"), nodeID="n3"), "which is drained", "t1", "new"
    ),
    "above a maximum": Falsified(
        "guarantee",
        lambda d: configured(d, '"max": {"memory": 10}', '"max": {"memory": 9}'),
        "exceeds the maximum of root.small",
        "s1",
        "new",
    ),
    "above a limit": Falsified(
        "guarantee",
        lambda d: configured(d, '"maxresources": {"memory": 10}', '"maxresources": {"memory": 9}'),
        "exceeds the limit of user eve",
        "t1",
        "new",
    ),
    "another size": Falsified(
        "guarantee",
        lambda d: placed(d, "t1").update(resourcePerAlloc={"resources": {"memory": {"value": "5"}}}),
        "gets memory 5, and asks for memory 10",
        "t1",
        "new",
    ),
    "another application": Falsified(
        "guarantee", lambda d: _put(placed(d, "t1"), applicationID="few"), "placed for few", "t1", "new"
    ),
    "an allocation twice": Falsified("guarantee", _placed_twice, "placed, a second time", "r1", "new"),
    "what is not asked for": Falsified(
        "guarantee", _never_asked, "placed, and is not asked for", "unknown", "new"
    ),
    "an end that was not asked for": Falsified(
        "guarantee", _end_unasked, "and it was not asked for", "p2", "released"
    ),
    "a node that is not needed": Falsified(
        "node", lambda d: asked(d, "daemon")["allocationTags"].clear(), "does not need that node", "daemon"
    ),
    "a higher priority on a node": Falsified(
        "node",
        lambda d: ends_instead(d, "young", "high", "daemon"),
        "high of priority 9 ended for daemon of 1",
        "daemon",
    ),
    "needless on a node": Falsified(
        "node",
        lambda d: _put(asked(d, "old"), resourcePerAlloc={"resources": {"memory": {"value": "0"}}}),
        "has room without its end",
        "daemon",
    ),
    "no lower priority inside": Falsified(
        "inside",
        lambda d: _put(asked(d, "urgent"), priority=0),
        "priority 0 ended for urgent of priority 0",
        "urgent",
    ),
    "a queue that lets none preempt inside": Falsified(
        "inside", lambda d: configured(d, "lower-priority", "never"), "which does not let it", "urgent"
    ),
    "a maximum that is not exceeded": Falsified(
        "maximum",
        lambda d: configured(d, '"max": {"memory": 25}', '"max": {"memory": 45}'),
        "uses nothing above it",
        "",
    ),
    "a gang's other node": Falsified(
        "gang",
        lambda d: _put(record(d, "g1")["justification"]["preemptors"][1], nodeID="n1"),
        "justification nodes n1 after: expected memory -10, got nothing",
        "g1",
    ),
    "what a gang asks for together": Falsified(
        "gang",
        lambda d: _put(figures(d, "root.work.train", "g1"), owedAfter={"memory": 20}),
        "root.work.train owedAfter: expected memory 10, got memory 20",
        "g1",
    ),
    "the lowest priority of a gang": Falsified(
        "gang",
        lambda d: _put(victim(d, "g1")["priorities"], ask=3),
        "victims r2 priorities ask: expected 1, got 3",
        "g1",
    ),
    "the youngest of a gang": Falsified(
        "gang",
        lambda d: _put(asked(d, "g2"), allocationTags={"creationTime": "946684814"}),
        "g1 preempts after 1 s, before the preemption.delay",
        "g1",
    ),
    "a member that may not preempt": Falsified(
        "gang",
        lambda d: _put(asked(d, "g2"), preemptionPolicy={}),
        "g1 preempts, and may not preempt others",
        "g1",
    ),
    "more than a gang needs": Falsified(
        "gang",
        lambda d: _put(asked(d, "g2"), resourcePerAlloc={"resources": {"memory": {"value": "0"}}}),
        "r4 ended for g1, which has room without its end",
        "g1",
    ),
    "another on a node of a gang": Falsified(
        "gang", _placed_beside_a_gang, "x1 is placed on n2, kept for g1", "x1", "new"
    ),
    "what a victim of a gang beside promises gives": Falsified(
        "gang that backfills", lambda d: _put(victim(d, "g1"), gives=[]), "gives: expected memory", "g1"
    ),
    "more than is above a maximum": Falsified(
        "maximum",
        lambda d: configured(d, '"max": {"memory": 25}', '"max": {"memory": 35}'),
        "gives back memory 10, and is 5 above",
        "",
    ),
    "a maximum that is not enforced": Falsified(
        "maximum",
        lambda d: configured(d, '"quotapreemptionenabled": true', '"quotapreemptionenabled": false'),
        "may not be",
        "",
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_nothing_is_refuted_as_it_was(name: str) -> None:
    found = verify_lines(with_text(scene(name)))

    assert found.refuted == []
    assert sum(found.confirmed.values()) >= 4


@pytest.mark.parametrize("name", FALSIFIED)
def test_each_is_refuted_with_its_line(name: str) -> None:
    falsified = FALSIFIED[name]
    lines = deepcopy(scene(falsified.scene))
    falsified.falsify(lines)

    refuted = verify_lines(with_text(lines)).refuted
    line = line_of(lines, falsified.key, falsified.what) + 1
    assert any(each.line == line and falsified.why in each.text for each in refuted), refuted


def test_a_gang_whose_victims_ended_for_nothing() -> None:
    """None of its members is placed; both nodes were kept for it."""
    lines = deepcopy(scene("gang that backfills"))
    line = line_of(lines, "g1", "preemption") + 1
    for key in ("g1", "g2", "x1"):
        del lines[line_of(lines, key, "new")]

    (refuted,) = verify_lines(with_text(lines)).refuted
    assert refuted.text == (
        f"g1 still waits for n1, n2, 15 s after all has ended that it preempted in line {line}"
    )


def test_an_ask_whose_victims_ended_for_nothing() -> None:
    """It is not placed, and nothing else has changed: the room was lost, or kept for nothing."""
    lines = deepcopy(scene("two victims"))
    preempted = line_of(lines, "p1", "preemption")
    del lines[line_of(lines, "p1", "new")]

    (refuted,) = verify_lines(with_text(lines)).refuted
    assert refuted.text == (
        f"p1 still waits for n1, 15 s after all has ended that it preempted in line {preempted + 1}"
    )
    late = lines[refuted.line - 1]
    assert late["at"] - lines[preempted]["at"] >= 15 * 10**9
