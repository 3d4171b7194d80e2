"""Simulated clusters, run as users run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from licorne import LicorneError
from licorne.model.preemption.guarantee import attempt
from licorne.model.preemption.guarantee.candidate_victims import CandidateVictims, collect_victims
from licorne.model.queues.child_orders import QUEUE_ORDERS
from licorne.model.queues.order import ChildKey
from licorne.proxy.base.process import is_compiled
from licorne.proxy.fuzz.manager.cluster_record import ClusterRecord, RecordError
from licorne.proxy.fuzz.plans import Plan, drawn_plan
from licorne.proxy.fuzz.runs import run_seeds, shrunk
from licorne.proxy.fuzz.world.cluster import run_plan
from licorne.proxy.shell.command_line import application
from licorne.proxy.si import si_pb2 as si

ENGINES = ("direct", "actors", "threads", "reference")
CLUSTERS = ENGINES[:3]
WORLDS = ("door", "hostile", "files")


def licorne(*arguments: str) -> tuple[int, str]:
    """Run the command in this process; return its status and what it wrote."""
    result = CliRunner().invoke(application, ["fuzz", *arguments])
    return result.exit_code, result.output


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the records find fault with the third ask that is placed."""
    real = ClusterRecord.placed

    def placed(record: ClusterRecord, allocation: si.Allocation) -> bool:
        if len(record.running) == 2:
            raise RecordError(f"planted: {allocation.allocationKey}")
        return real(record, allocation)

    monkeypatch.setattr(ClusterRecord, "placed", placed)


def test_nothing_is_found_on_any_engine() -> None:
    """The seeds are the same on every run; `make soak` takes others."""
    summary = run_seeds(1, 20, steps=60, engines=ENGINES, until=lambda: False, jobs=1)

    assert [] == summary.failures
    assert dict.fromkeys(ENGINES, 20) == dict(summary.runs)


def traces(seeds: Iterable[int]) -> list[str]:
    """Return the traces of plans, each on all engines."""
    return [run_plan(drawn_plan(seed, 40, engine)).trace for seed in seeds for engine in ENGINES]


def traces_elsewhere(seeds: Sequence[int], *, compiled: bool, hash_seed: str = "42") -> list[str]:
    """Return the same from another process, perhaps of the other build; `hash_seed` orders its sets."""
    program = (
        "from licorne.proxy.fuzz.world.cluster import run_plan\n"
        "from licorne.proxy.fuzz.plans import drawn_plan\n"
        f"for seed in {[*seeds]}:\n"
        f"    for engine in {ENGINES}:\n"
        "        print(run_plan(drawn_plan(seed, 40, engine)).trace)\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "LOGURU_LEVEL": "CRITICAL"}
    if not compiled:
        environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    return ran.stdout.split()


def test_a_seed_does_the_same_in_another_process() -> None:
    """Whatever the order of its sets and dictionaries of strings, and whatever ran before."""
    seeds, compiled = (3, 5, 7), is_compiled()

    after_another = traces_elsewhere((1, *seeds), compiled=compiled, hash_seed="7")[len(ENGINES) :]

    assert after_another == traces_elsewhere(seeds, compiled=compiled)


@pytest.mark.skipif(not is_compiled(), reason="it compares a compiled build with the pure one")
def test_a_seed_does_the_same_in_both_builds() -> None:
    """But for plans that are narrow or share partitions, which compiled modules cannot be."""
    drawn = {seed: [drawn_plan(seed, 40, engine) for engine in ENGINES] for seed in range(1, 40)}
    seeds = [
        seed for seed, plans in drawn.items() if not any(plan.is_narrow or plan.shares for plan in plans)
    ]

    assert traces(seeds) == traces_elsewhere(seeds, compiled=False)


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("engine", CLUSTERS)
def test_a_failure_is_shrunk_to_a_plan_that_fails_alike(engine: str) -> None:
    """Most steps have nothing to do with it."""
    seed = next(seed for seed in range(1, 20) if run_plan(drawn_plan(seed, 40, engine)).failure is not None)
    plan, outcome = shrunk(drawn_plan(seed, 40, engine), 60)

    assert "planted" in str(outcome.failure)
    assert len(plan.steps) <= 6
    assert str(outcome.failure) == str(run_plan(Plan.read(plan.text(), "here")).failure)


@pytest.mark.soak
def test_nothing_is_found_with_seeds_that_were_not_used_before() -> None:
    """Half an hour; the seeds begin with the time."""
    end = time.monotonic() + 1_800
    summary = run_seeds(
        int(time.time()) * 1_000,
        None,
        steps=60,
        engines=(*ENGINES, *WORLDS),
        until=lambda: time.monotonic() > end,
        jobs=os.cpu_count() or 1,
    )

    assert [] == summary.failures


@pytest.mark.usefixtures("planted")
def test_the_command_writes_the_plan_of_a_failure_and_replays_it(tmp_path: Path) -> None:
    """With the transcript, the error, and how to see it again."""
    status, text = licorne("--runs", "20", "--engine", "direct", "--folder", str(tmp_path))
    (path,) = tmp_path.iterdir()
    again, replayed = licorne("--replay", str(path))

    assert (1, 1) == (status, again)
    for output in (text, replayed):
        assert "RecordError: planted" in output
        assert 'hears {"new": [{"allocationKey"' in output
    assert f"licorne fuzz --replay {path}" in text


@pytest.mark.usefixtures("planted")
def test_the_command_writes_its_results_as_one_document(tmp_path: Path) -> None:
    """Of the runs, and of a plan that is replayed."""
    status, text = licorne("--runs", "20", "--engine", "direct", "--folder", str(tmp_path), "--json")
    document = json.loads(text)
    failure = document["failure"]
    again, replayed = licorne("--replay", failure["plan"], "--json")

    assert (1, 1) == (status, again)
    assert ["direct"] == [each["engine"] for each in document["engines"]]
    assert ("direct", True) == (failure["engine"], "planted" in failure["text"])
    assert "planted" in json.loads(replayed)["failure"]


def test_the_command_says_how_much_it_has_run() -> None:
    """On each engine, on several processes as on one."""
    for jobs in ("1", "2"):
        status, text = licorne("--runs", "2", "--steps", "10", "--jobs", jobs)

        assert (0, "nothing was found") == (status, text.splitlines()[-1])
        assert [f"{engine}: 2 runs" for engine in ENGINES] == [
            line.partition(",")[0] for line in text.splitlines()[:4]
        ]


def test_a_wrong_order_is_found_by_the_second_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else finds it: whatever is placed first, all of it agrees."""
    rule = type(QUEUE_ORDERS["fair"])
    right_key = rule.key

    def reversed_key(*arguments: Any, **options: Any) -> ChildKey:
        priority, use, share, waiting, name = right_key(*arguments, **options)
        assert isinstance(share, int | float)
        return (priority, use, -share, waiting, name)

    monkeypatch.setattr(rule, "key", reversed_key)
    summary = run_seeds(1, 50, steps=100, engines=["reference"], until=lambda: False, jobs=1)

    assert "and the second one" in summary.failures[0].failure


def test_a_wrong_victim_is_found_by_the_second_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """It decides for itself what ends inside of a queue: no rule but the order of victims is broken."""

    def oldest_first(*arguments: Any, **options: Any) -> CandidateVictims:
        found = collect_victims(*arguments, **options)
        return found._replace(victims=found.victims[::-1])

    monkeypatch.setattr(attempt, "collect_victims", oldest_first)
    summary = run_seeds(1, 50, steps=100, engines=["reference"], until=lambda: False, jobs=1)

    assert "and the second one places [] and ends ['k" in summary.failures[0].failure


def test_the_time_that_is_given_is_an_end() -> None:
    """With no time, nothing is run."""
    assert "direct: 0 runs, 0 steps" in licorne("--minutes", "0")[1]


@pytest.mark.parametrize("text", ["", "[]", '{"plan": {}}', '{"plan": {"seed": 1}, "steps": [[1, 2]]}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    """With the name of the file."""
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")

    status, output = licorne("--replay", str(path))

    assert 2 == status
    assert f"{path}: this is not a plan of licorne fuzz" in output


def test_an_unknown_engine_is_refused() -> None:
    """Before anything runs."""
    assert (2, "engine 'fast' is unknown") == (licorne("--engine", "fast")[0], "engine 'fast' is unknown")
    with pytest.raises(LicorneError, match="engine 'fast' is unknown"):
        drawn_plan(1, 10, "fast")


def test_a_plan_is_read_as_it_was_written() -> None:
    """All of it."""
    plan = drawn_plan(11, 20, "threads")

    assert plan == Plan.read(plan.text(), "here")
    assert 20 == len(json.loads(plan.text())["steps"])
