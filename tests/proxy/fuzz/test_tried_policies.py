"""`licorne fuzz --policy`: right policies pass, and each kind of wrong one is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.proxy.command_runs import run

from licorne import LicorneError
from licorne.model.predicates.node_filters import FilteredNodes
from licorne.model.scheduling import leaf_visit
from licorne.model.state.charges import held_by_policy
from licorne.proxy.base.process import is_compiled
from licorne.proxy.fuzz.plans import Plan, drawn_plan
from licorne.proxy.fuzz.runs import run_seeds

FIRST_ALLOWED = FilteredNodes.first_allowed
_MODULE = "support.fuzz.tried_policies"
_RIGHT = tuple(
    f"{name.lower()}={_MODULE}:{name}" for name in ("Packing", "Apart", "Oldest", "Fewest", "Least", "Later")
)


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_nothing_is_found_in_policies_that_are_right(engine: str) -> None:
    runs = {"direct": 6, "actors": 2, "threads": 2}[engine]
    summary = run_seeds(1, runs, steps=40, engines=[engine], until=lambda: False, jobs=1, policies=_RIGHT)

    assert [(each.seed, each.failure) for each in summary.failures] == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Broken", "policy broken.application_key about "),
        ("Impure", "ImpureAnswerError: the same question was answered by "),
        ("Liar", "waits for no reason"),
    ],
)
def test_a_policy_that_is_wrong_is_found(name: str, found: str) -> None:
    """In 20 seeds at most."""
    policies = [f"{name.lower()}={_MODULE}:{name}"]
    summary = run_seeds(1, 20, steps=60, engines=["direct"], until=lambda: False, jobs=1, policies=policies)

    assert [found in each.failure for each in summary.failures] == [True]


def any_node(checks: FilteredNodes, *arguments: Any, **options: Any) -> Any:
    """Ask the filters, and search without them."""
    FIRST_ALLOWED(checks, *arguments, **options)
    return checks._inner.first_allowed(*arguments, **options)


def any_start(*arguments: Any) -> None:
    """Ask whether an application may start, and let it."""
    held_by_policy(*arguments)


@pytest.mark.parametrize(
    ("holder", "name", "broken"),
    [(FilteredNodes, "first_allowed", any_node), (leaf_visit, "held_by_policy", any_start)],
    ids=["filter", "admission"],
)
@pytest.mark.skipif(is_compiled(), reason="machine code calls what it was compiled with")
def test_a_scheduler_that_does_not_obey_is_found(
    monkeypatch: pytest.MonkeyPatch, holder: object, name: str, broken: Any
) -> None:
    """It places what a filter has refused, or starts what a policy holds."""
    monkeypatch.setattr(holder, name, broken)
    policies = [f"{policy.lower()}={_MODULE}:{policy}" for policy in ("Apart", "Later")]
    summary = run_seeds(1, 20, steps=60, engines=["direct"], until=lambda: False, jobs=1, policies=policies)

    assert ["has answered" in each.failure for each in summary.failures] == [True]


def test_a_plan_keeps_its_policies() -> None:
    """So that a failure is replayed with them."""
    plan = drawn_plan(3, 5, "direct", _RIGHT)

    assert Plan.read(plan.text(), "here") == plan
    assert plan.policies == _RIGHT


def test_other_worlds_try_no_policies() -> None:
    with pytest.raises(LicorneError):
        drawn_plan(1, 5, "hostile", _RIGHT)


def test_the_command_tries_a_policy(tmp_path: Path) -> None:
    """A failure ends with status 1, and says what was wrong."""
    option = f"--policy=broken={_MODULE}:Broken"
    status, output, _ = run(
        "fuzz", "--runs", "3", "--steps", "20", "--engine", "direct", option, "--folder", tmp_path
    )

    assert status == 1
    assert "policy broken.application_key about " in output
