"""`licorne fuzz --policy`: right policies pass, and each kind of wrong one is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.command_runs import run

from licorne import LicorneError
from licorne.proxy.fuzz.plans import Plan, drawn_plan
from licorne.proxy.fuzz.runs import run_seeds

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
