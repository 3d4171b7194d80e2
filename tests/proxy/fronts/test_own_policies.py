"""The policies of the examples do what they say, and are as short as people expect."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from support.proxy.simulation_builders import shared_data

import licorne

EXAMPLES = Path(__file__).parents[3] / "examples"
SOURCE = EXAMPLES / "own_policies.py"


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the examples."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "own_policies", raising=False)
    import own_policies  # type: ignore[import-not-found]

    return own_policies


def _queues(
    *, nodes: str = "fair", jobs: str = "fifo", leaf: str = "batch", **partition: Any
) -> dict[str, Any]:
    properties = {"application.sort.policy": jobs, "gang.placing": "whole"}
    root = {"name": "root", "submitacl": "*", "queues": [{"name": leaf, "properties": properties}]}
    return {
        "partitions": [{"name": "default", "nodesortpolicy": {"type": nodes}, "queues": [root], **partition}]
    }


def _node(
    prefix: str, count: int = 1, attributes: dict[str, str] | None = None, **resources: int
) -> dict[str, Any]:
    return {"prefix": prefix, "count": count, "resources": resources, "attributes": attributes or {}}


def _jobs(
    name: str, count: int, *, queue: str = "root.batch", every: str = "0s", **resources: int
) -> dict[str, Any]:
    tasks = [{"resources": resources, "duration": "1h"}]
    return {"name": name, "count": count, "queue": queue, "user": "ada", "every": every, "tasks": tasks}


def _placed(nodes: list[Any], applications: list[Any], **options: Any) -> list[str]:
    run = licorne.simulate({"nodes": nodes, "applications": applications}, **options)
    return [str(decision["node"]) for decision in run.decisions]


def test_each_has_at_most_15_lines() -> None:
    """Without the texts that describe it."""
    classes = [each for each in ast.parse(SOURCE.read_text("utf-8")).body if isinstance(each, ast.ClassDef)]

    for each in classes:
        for inside in ast.walk(each):
            if isinstance(inside, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(inside):
                inside.body = inside.body[1:]
        assert len(ast.unparse(each).splitlines()) <= 15, each.name
    assert 6 == len(classes)


def test_gpus_are_packed(own: Any) -> None:
    """What needs none does not take a node that has some, and what needs one takes a node that is begun."""
    gpus: dict[str, Any] = {"nvidia.com/gpu": 1}
    nodes = [_node("gpu", 2, vcore=8, **{**gpus, "nvidia.com/gpu": 4}), _node("plain", vcore=4)]
    jobs = [_jobs("one", 3, vcore=1, **gpus), _jobs("none", 2, vcore=1)]

    placed = _placed(nodes, jobs, queues=_queues(nodes="policy/p"), policies={"p": own.GpuPack})
    assert ["plain-1", "plain-1", "gpu-1", "gpu-1", "gpu-1"] == placed


def test_the_cheapest_node_is_first(own: Any) -> None:
    """Each is filled before the next price is paid; a type without a price is the last."""
    kinds = ("unheard", "on-demand", "spot", "reserved")
    nodes = [_node(kind, vcore=2, attributes={"si/instance-type": kind}) for kind in kinds]
    given = {"p": own.CheapestFirst}

    placed = _placed(nodes, [_jobs("a", 7, vcore=1)], queues=_queues(nodes="policy/p"), policies=given)
    assert ["spot-1"] * 2 + ["reserved-1"] * 2 + ["on-demand-1"] * 2 + ["unheard-1"] == placed


def test_racks_stay_off(own: Any) -> None:
    """The second rack is begun when the first is full; the node in no rack is the last one."""
    racks = {"b": {"rack": "r2"}, "a": {"rack": "r10"}, "c": {"rack": "r1"}, "z": {}}
    nodes = [_node(name, 2, vcore=2, attributes=attributes) for name, attributes in racks.items()]

    placed = _placed(
        nodes, [_jobs("a", 13, vcore=1)], queues=_queues(nodes="policy/p"), policies={"p": own.RacksOff}
    )
    assert ["c-1", "c-1", "c-2", "c-2"] == placed[:4]
    assert ["b", "b", "b", "b", "a", "a", "a", "a", "z"] == [name[0] for name in placed[4:]]


def test_what_is_for_the_night_waits_for_it(own: Any) -> None:
    """To the second; what is in other queues starts at once."""
    queues = _queues(leaf="night", policies={"admission": ["p"]})
    queues["partitions"][0]["queues"][0]["queues"].append({"name": "batch"})
    day = {
        "nodes": [_node("n", vcore=9)],
        "applications": [
            {**_jobs("n", 1, queue="root.night", vcore=1), "submit": "7h"},
            {**_jobs("b", 1, vcore=1), "submit": "7h"},
        ],
    }

    run = licorne.simulate(day, queues=queues, policies={"p": own.NightOnly})
    assert [0.0, 15 * 3600.0] == sorted(float(job["wait"]) for job in run.jobs)


def test_orders_of_jobs_look_at_walltime_size_and_age(own: Any) -> None:
    """One at a time: by walltime, and by walltime and cores."""
    rows = [
        {"job": "first", "run_time": 9000, "resources_vcore": 3},
        {"job": "wide", "run_time": 100, "walltime": 6000, "resources_vcore": 3, "submitted": 4000},
        {"job": "long", "run_time": 100, "walltime": 9000, "resources_vcore": 2, "submitted": 4001},
        {"job": "short", "run_time": 100, "walltime": 5000, "resources_vcore": 2, "submitted": 4002},
    ]
    work = licorne.Workload.from_rows([{**row, "queue": "root.batch"} for row in rows], [_node("n", vcore=3)])

    def order(policy: Any) -> list[object]:
        run = licorne.simulate(work, queues=_queues(jobs="policy/p"), policies={"p": policy})
        return [decision["application"] for decision in run.decisions]

    assert ["first", "short", "wide", "long"] == order(own.ShortestFirst)
    assert ["first", "short", "long", "wide"] == order(own.F1)


def _slowdowns(own: Any, first: int, estimate_factor: int) -> tuple[float, ...]:
    """Return the mean slowdowns of the first come, `ShortestFirst` and `F1` on a log."""
    work = licorne.load(
        shared_data("swf/lublin_256.swf"), gang=True, first=first, estimate_factor=estimate_factor
    )
    leaf = str(work.jobs[0]["queue"]).removeprefix("root.")
    given = {"sjf": own.ShortestFirst, "f1": own.F1}
    options = {
        word: {"queues": _queues(leaf=leaf, jobs=word), "policies": given}
        for word in ("fifo", "policy/sjf", "policy/f1")
    }
    runs = licorne.compare(work, options, figures=False)
    return tuple(float(run.summary["slowdown_mean"]) for run in runs)


def test_both_orders_of_jobs_beat_the_first_come_on_lublin(own: Any) -> None:
    """On its first 300 jobs, with walltimes that are five times too long."""
    fifo, sjf, f1 = _slowdowns(own, 300, 5)
    assert max(sjf, f1) < fifo


@pytest.mark.soak
@pytest.mark.parametrize("estimate_factor", [1, 5])
def test_the_table_of_orders_of_jobs_is_as_the_page_has_it(own: Any, estimate_factor: int) -> None:
    """`docs/which-policy.md` has the figures of the first 1,000 jobs."""
    sjf = {1: 16.5, 5: 17.3}[estimate_factor]
    found = [round(value, 1) for value in _slowdowns(own, 1000, estimate_factor)]
    assert [93.9, sjf, 14.3] == found
