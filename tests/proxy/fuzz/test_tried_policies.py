"""`licorne fuzz --policy`: right policies pass, and each kind of wrong one is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.proxy.command_runs import run

from licorne import LicorneError
from licorne.model.nodes import node_orders
from licorne.model.predicates.node_filters import FilteredNodes
from licorne.model.queues import child_orders
from licorne.model.scheduling import leaf_visit
from licorne.model.state.charges import held_by_policy
from licorne.proxy.base.process import is_compiled
from licorne.proxy.fuzz.plans import Plan, drawn_plan
from licorne.proxy.fuzz.runs import run_seeds
from licorne.proxy.fuzz.tried_policies import TriedPolicies

FIRST_ALLOWED = FilteredNodes.first_allowed
_MODULE = "support.fuzz.tried_policies"
_RIGHT = tuple(
    f"{name.lower()}={_MODULE}:{name}"
    for name in ("Zoned", "Sized", "Apart", "Oldest", "Fewest", "Least", "Later", "Guess", "Widest")
)


def failures_of(name: str, engine: str, seeds: int) -> list[str]:
    """Run seeds with one policy; return the failures that were found."""
    given = [f"{name.lower()}={_MODULE}:{name}"]
    summary = run_seeds(1, seeds, steps=60, engines=[engine], until=lambda: False, jobs=1, policies=given)
    return [each.failure for each in summary.failures]


@pytest.mark.parametrize("engine", ["direct", "actors", "threads", "reference"])
def test_nothing_is_found_in_policies_that_are_right(engine: str) -> None:
    runs = {"direct": 6, "actors": 2, "threads": 2, "reference": 6}[engine]
    summary = run_seeds(1, runs, steps=40, engines=[engine], until=lambda: False, jobs=1, policies=_RIGHT)

    assert [(each.seed, each.failure) for each in summary.failures] == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Broken", "policy broken.application_key about "),
        ("Impure", "ImpureAnswerError: the same question was answered by "),
        ("Hidden", "ImpureAnswerError: the same question was answered by "),
        ("Identity", "ImpureAnswerError: the same question was answered by "),
        ("Timely", "ImpureAnswerError: the same question was answered by "),
        ("Unwilling", "ImpureAnswerError: the same question was answered by "),
        ("Mutating", "policy mutating.application_key about "),
        ("Forking", "ImpureAnswerError: it has forked the process"),
        ("Shapes", "expected a key like those before it"),
        ("Comparing", "expected a finite number or a text"),
        ("Liar", "waits for no reason"),
    ],
)
def test_a_policy_that_is_wrong_is_found(name: str, found: str) -> None:
    """In 20 seeds at most."""
    assert [found in failure for failure in failures_of(name, "direct", 20)] == [True]


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


def by_size(_: object, node: Any, *__: object) -> float:
    """Order nodes by their size instead of by the key of a policy."""
    return -float(node.capacity.get("memory"))


def by_name(_: object, entry: Any, __: object) -> tuple[str, str]:
    """Order applications by their names."""
    return entry.application_id[::-1], entry.application_id


def by_path(_: object, queue: Any, *__: object, **___: object) -> tuple[str]:
    """Order queues by their names."""
    return (queue.name[::-1],)


@pytest.mark.parametrize(
    ("policy", "holder", "name", "broken"),
    [
        ("Packing", node_orders._NodesByPolicy, "key", by_size),
        ("Least", child_orders._ApplicationsByPolicy, "key", by_name),
        ("Fewest", child_orders._QueuesByPolicy, "key", by_path),
        ("Apart", FilteredNodes, "first_allowed", any_node),
        ("Later", leaf_visit, "held_by_policy", any_start),
    ],
    ids=["node_key", "application_key", "queue_key", "refuses", "may_start"],
)
@pytest.mark.skipif(is_compiled(), reason="machine code calls what it was compiled with")
def test_a_scheduler_that_decides_otherwise_than_its_policies_is_found(
    monkeypatch: pytest.MonkeyPatch, policy: str, holder: object, name: str, broken: Any
) -> None:
    """The second scheduler asks the same policy, and decides otherwise."""
    monkeypatch.setattr(holder, name, broken)
    given = [f"{policy.lower()}={_MODULE}:{policy}"]
    summary = run_seeds(1, 20, steps=60, engines=["reference"], until=lambda: False, jobs=1, policies=given)

    assert [", and the second one " in each.failure for each in summary.failures] == [True]


def test_the_second_scheduler_asks_the_policies_that_it_can_follow() -> None:
    """Those whose answers follow from the views, about the decisions that it makes by policies."""
    names = ("Sized", "Zoned", "Oldest", "Aged")
    tried = TriedPolicies([f"{name.lower()}={_MODULE}:{name}" for name in names], compared=True)

    named = tried.named_below({"queues": [{"name": "root"}]})
    assert {
        "queues": [{"name": "root"}],
        "policies": {"filters": ["sized"]},
        "nodesortpolicy": {"type": "policy/zoned"},
    } == named
    assert {"sized", "zoned"} == tried.given.keys()
    assert not hasattr(tried.factories["zoned"](), "ask_class")


@pytest.mark.parametrize("name", ["Oldest", "Aged"])
def test_policies_that_the_second_scheduler_cannot_follow_are_refused_alone(name: str) -> None:
    """Before anything runs: a run without them would find nothing."""
    given = [f"mine={_MODULE}:{name}"]
    with pytest.raises(LicorneError, match="neither time nor outside, got mine"):
        run_seeds(1, 1, steps=5, engines=["reference"], until=lambda: False, jobs=1, policies=given)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Broken", "policy broken.application_key"),
        ("Nowhere", "policy nowhere.node_key"),
        ("Impure", "ImpureAnswerError: the same question was answered by "),
    ],
)
def test_a_policy_that_is_wrong_is_found_beside_the_second_scheduler(name: str, found: str) -> None:
    assert [found in failure for failure in failures_of(name, "reference", 5)] == [True]


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
