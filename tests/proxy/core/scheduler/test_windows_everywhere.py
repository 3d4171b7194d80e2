"""Windows in a whole scheduler: reloads, documents, anonymous recordings, their replay and their checker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.verify.days import recorded

from licorne import RequestError, ResourceManager, Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.verify.verifier import verify_lines
from licorne.proxy.si import si_pb2 as si

HOUR_NS = 3600 * 10**9


def configuration(*windows: dict[str, Any]) -> str:
    """Return a configuration with windows."""
    queues = [{"name": "root", "submitacl": "*", "queues": [{"name": "a"}, {"name": "b"}]}]
    return json.dumps({"partitions": [{"name": "default", "windows": windows, "queues": queues}]})


def window(begin: str, end: str, **more: Any) -> dict[str, Any]:
    """Return a window of the first day of the clock."""
    return {
        "name": "firmware",
        "nodes": ["n1"],
        "from": f"2000-01-01T{begin}",
        "to": f"2000-01-01T{end}",
    } | more


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_a_reload_refuses_a_new_window_that_is_over(engine: EngineName) -> None:
    with Scheduler(engine=engine, stepped=True) as scheduler:
        request = si.RegisterResourceManagerRequest(
            rmID="rm", config=configuration(window("01:00", "02:00")), policyGroup="queues"
        )
        scheduler.register_resource_manager(request, ResourceManager())
        scheduler.advance_to(scheduler.now_ns() + 3 * HOUR_NS)
        text = configuration(window("01:00", "02:00"), window("02:00", "02:30", name="late"))
        with pytest.raises(
            RequestError, match=r"window 'late' is in the past: it ended at 2000-01-01 02:30 UTC"
        ):
            scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=text))
        kept = configuration(window("01:00", "02:00"), window("05:00", "06:00", name="next"))
        scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=kept))


def a_day(*, holders: dict[str, list[str]], walltime: str = "1h", node: str = "n1") -> str:
    """Return the lines of a day: one ask before a window, one in it for whom it may be."""
    size = {"resources": {"memory": {"value": "1"}}}
    config = configuration(
        window("02:00", "04:00", **{"for": holders} if holders else {}),
        window("02:00", "03:00", name="rack", nodes=[], attributes={"rack": "secret-rack"}, every="1d"),
    )
    attributes = {"rack": "secret-rack"} if node != "n1" else {}
    nodes = [{"nodeID": node, "action": "CREATE", "schedulableResource": size, "attributes": attributes}]
    new = [
        {
            "applicationID": f"app-{leaf}",
            "queueName": f"root.{leaf}",
            "ugi": {"user": "ada", "groups": ["staff"]},
        }
        for leaf in "ab"
    ]
    asks = [
        {"allocationKey": f"ask-{leaf}", "applicationID": f"app-{leaf}", "resourcePerAlloc": size}
        | {"allocationTags": {"walltime": walltime}}
        for leaf in "ab"
    ]
    lines: list[dict[str, Any]] = [
        {"register": {"rmID": "rm", "config": config}},
        {"node": {"rmID": "rm", "nodes": nodes}},
        {"application": {"rmID": "rm", "new": new}},
        {"allocation": {"rmID": "rm", "allocations": asks[:1]}},
        {"schedule": "all"},
        {"allocation": {"rmID": "rm", "releases": {"allocationsToRelease": [
            {"applicationID": "app-a", "allocationKey": "ask-a", "terminationType": "STOPPED_BY_RM"}
        ]}}},
        {"advance": "90m"},
        {"allocation": {"rmID": "rm", "allocations": asks[1:]}},
        {"schedule": "all"},
        {"advance": "150m"},
        {"schedule": "all"},
    ]  # fmt: skip
    return "\n".join(map(json.dumps, lines))


HOLDERS: list[dict[str, list[str]]] = [
    {},
    {"users": ["ada"]},
    {"groups": ["staff"]},
    {"applications": ["app-b"]},
    {"queues": ["root.b"]},
    {"users": ["eve"]},
]


@pytest.mark.parametrize("node", ["n1", "n2"])
@pytest.mark.parametrize("holders", HOLDERS, ids=str)
def test_a_recording_with_pseudonyms_has_the_same_decisions(holders: dict[str, list[str]], node: str) -> None:
    text = a_day(holders=holders, node=node)
    placed = [placements(recorded(text, anonymize=anonymize)) for anonymize in (False, True)]
    assert placed[0] == placed[1]
    assert len(placed[0]) == 2
    hidden = "".join(recorded(text, anonymize=True))
    words = ("firmware", "n1", "secret-rack", "ada", "staff", "app-b", "root.b")
    assert [word for word in words if f'"{word}"' in hidden or f'\\"{word}\\"' in hidden] == []


def placements(lines: list[str]) -> list[int]:
    """Return when allocations were placed."""
    at_ns, found = 0, []
    for line in map(json.loads, lines):
        at_ns = line.get("at", at_ns)
        found += [at_ns] * len(line.get("outcome", {}).get("allocationResponse", {}).get("new", ()))
    return found


@pytest.mark.parametrize("anonymize", [False, True])
@pytest.mark.parametrize("holders", HOLDERS, ids=str)
def test_the_checker_refutes_a_placement_that_runs_into_a_window(
    holders: dict[str, list[str]], *, anonymize: bool
) -> None:
    """What was decided without the window is refuted once the recording has it, unless it is for them."""
    lines = recorded(a_day(holders=holders), anonymize=anonymize)
    assert verify_lines(lines).refuted == []
    longer = [line.replace('"walltime":"1h"', '"walltime":"3h"') for line in lines]
    is_for_first = any(name in {"ada", "staff"} for names in holders.values() for name in names)
    refuted = [each.text for each in verify_lines(longer).refuted]
    assert len(refuted) == (0 if is_for_first else 1)
    assert all("runs into window" in text for text in refuted)
