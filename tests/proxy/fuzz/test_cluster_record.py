"""The record of a simulated resource manager finds what cannot be, and nothing where all is well."""

from __future__ import annotations

from typing import Any

import pytest

from licorne.proxy.fuzz.manager.cluster_record import (
    ClusterRecord,
    KnownApplication,
    KnownNode,
    RecordError,
    Task,
)
from licorne.proxy.si import si_pb2 as si


def a_record(*waiting: str) -> ClusterRecord:
    """Return a record with a node, an application, and asks."""
    record = ClusterRecord()
    record.nodes["n"] = KnownNode("n", "default", {"memory": 10})
    record.applications["app"] = KnownApplication("app", "default", "root.a", "ada", [], state="Running")
    for key in waiting:
        record.waiting[key] = Task(key, "app", "default", {"memory": 1})
    return record


def placed(key: str, node: str = "n") -> si.Allocation:
    return si.Allocation(allocationKey=key, applicationID="app", nodeID=node)


def released(key: str, termination: Any) -> si.AllocationRelease:
    return si.AllocationRelease(allocationKey=key, applicationID="app", terminationType=termination)


def snapshot(
    *runs: str,
    waits: tuple[str, ...] = (),
    state: str = "Running",
    drained: bool = False,
    memory: int = 1,
) -> Any:
    size = {"memory": memory}
    allocations = [{"allocationKey": key, "nodeId": "n", "resource": size} for key in runs]
    requests = [{"allocationKey": key, "resource": size} for key in waits]
    application = {
        "applicationID": "app",
        "applicationState": state,
        "allocations": allocations,
        "requests": requests,
    }
    return {
        "applications": {"default": [application]},
        "nodes": {
            "default": [
                {
                    "nodeID": "n",
                    "schedulable": not drained,
                    "allocations": [{"allocationKey": key} for key in runs],
                }
            ]
        },
    }


def test_what_agrees_passes() -> None:
    """One runs, one waits, one was withdrawn and is placed all the same: its end is under way."""
    record = a_record("runs", "waits", "withdrawn")
    record.end(["withdrawn"])

    assert (True, False) == (record.placed(placed("runs")), record.placed(placed("withdrawn")))
    record.check(snapshot("runs", waits=("waits",)))


@pytest.mark.parametrize(
    ("allocation", "text"),
    [
        (placed("runs"), "runs on n"),
        (placed("waits", "unheard"), "which there never was"),
        (placed("unheard"), "never asked for"),
        (placed("bound"), "may run on other only"),
    ],
)
def test_a_placement_that_cannot_be_is_found(allocation: si.Allocation, text: str) -> None:
    """Twice, on a node that never was, without an ask, on another node than it needs."""
    record = a_record("runs", "waits", "bound")
    record.waiting["bound"].required_node = "other"
    record.placed(placed("runs"))

    with pytest.raises(RecordError, match=text):
        record.placed(allocation)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (snapshot(waits=("waits",)), "what runs: {'runs': 'n'} for the RM"),
        (snapshot("runs", "more", waits=("waits",)), "{'more': 'n'} for the scheduler"),
        (snapshot("runs"), "what waits"),
        (snapshot("runs", waits=("waits",), memory=2), "what is the size"),
        (snapshot("runs", waits=("waits",), state="Completing"), "what is the state"),
        (snapshot("runs", waits=("waits",), drained=True), "what is drained"),
    ],
)
def test_books_that_differ_are_found(shown: Any, text: str) -> None:
    """Lost, too much, forgotten, of another size, in another state, or not to be used."""
    record = a_record("runs", "waits")
    record.placed(placed("runs"))

    with pytest.raises(RecordError, match=text):
        record.check(shown)


def test_what_the_scheduler_wants_ended_runs_until_it_is_confirmed() -> None:
    """What the RM ended itself, or asks that are given up, have ended."""
    record = a_record("timeout", "own", "waits")
    for key in ("timeout", "own"):
        record.placed(placed(key))
    wanted = [
        record.released(released("timeout", si.TIMEOUT)),
        record.released(released("own", si.STOPPED_BY_RM)),
        record.released(released("waits", si.TIMEOUT)),
    ]

    assert [True, False, False] == wanted
    assert (["timeout"], {"timeout": si.TIMEOUT}) == ([*record.running], record.to_confirm)
    with pytest.raises(RecordError, match="never asked for"):
        record.released(released("unheard", si.TIMEOUT))
    with pytest.raises(RecordError, match="is requested again"):
        record.released(released("timeout", si.TIMEOUT))


def test_a_node_that_is_too_small_for_what_runs_there_is_found() -> None:
    """By the sizes that the RM has reported."""
    record = a_record("one", "other")
    record.waiting["other"].size = {"memory": 10}
    record.placed(placed("one"))

    with pytest.raises(RecordError, match="n has 10 memory, and 11 of it are used"):
        record.placed(placed("other"))


def test_an_end_that_the_scheduler_does_not_confirm_is_found() -> None:
    """It confirms what the RM has ended by itself, if it ran."""
    record = a_record("runs", "confirmed", "waits")
    for key in ("runs", "confirmed"):
        record.placed(placed(key))
    record.end_running(["runs", "confirmed", "waits"])
    record.released(released("confirmed", si.STOPPED_BY_RM))

    with pytest.raises(RecordError, match=r"\['runs'\] were ended by the RM"):
        record.check(snapshot())
