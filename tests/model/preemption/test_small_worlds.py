"""Preemption in small worlds, in every order of what may happen; `make proofs` explores all of them."""

from __future__ import annotations

import pytest
from support.fuzz.planting import ROOT, planted_text
from support.proofs.accounts import Accounts, Asked, Ran
from support.proofs.explorer import Step, explore
from support.proofs.families import FAMILIES_OF_RULES
from support.proofs.planted import PREEMPTION_FAULTS
from support.proofs.rules import Rules
from support.proofs.run import prove
from support.proofs.worlds import FAMILIES, AskIn, Family, QueueIn, RunningIn, World

from licorne.model.preemption.guarantee import attempt

EVERY, EVERY_OF_RULES = 499, 197
A_FULL_NODE = World(
    queues=(QueueIn("root.a", (1,)), QueueIn("root.b", (2,))),
    nodes=((3,),),
    running=(RunningIn("root.b", 0, (1,)), RunningIn("root.b", 0, (2,))),
    asks=(AskIn("root.a", (1,)), AskIn("root.a", (1,), node=0)),
    late=True,
)
"""One queue uses more than it is guaranteed; the second ask needs the node."""


@pytest.mark.parametrize("family", [*FAMILIES, *FAMILIES_OF_RULES], ids=lambda family: family.name)
def test_preemption_keeps_its_promises_in_some_worlds_of_each_family(family: Family) -> None:
    """All promises hold in every state, and preemption ends from each."""
    worlds, found = prove(family, EVERY_OF_RULES if family in FAMILIES_OF_RULES else EVERY)

    assert [] == found.faults
    assert found.states >= worlds > 0


def test_a_world_is_explored_in_every_order() -> None:
    """The shortest orders come first; equal states are explored once."""
    found = explore(A_FULL_NODE, depth=2)

    assert [] == found.faults
    assert found.preemptions >= 1
    assert found.states > explore(A_FULL_NODE, depth=1).states > 1


def test_a_broken_promise_is_found_with_the_steps_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the node of a preemptor is not reserved again."""
    monkeypatch.setattr(attempt, "_lost_node", lambda _: None)
    ((world, steps, fault), *_) = explore(A_FULL_NODE, depth=2).faults

    assert A_FULL_NODE == world
    assert (Step("submit", "a1"), Step("withdraw", "a1")) == steps
    assert "P-reserved: a0 has not n0 reserved" == fault


def test_each_planted_fault_can_be_planted_and_names_a_family() -> None:
    """`make proofs` plants them; what they change stands once in its file."""
    families = {family.name for family in (*FAMILIES, *FAMILIES_OF_RULES)}

    for planted in PREEMPTION_FAULTS:
        assert planted_text(ROOT, planted.fault)
        assert planted.family in families


@pytest.mark.parametrize(
    ("size", "victims", "fault"),
    [
        (1, "v1", "P-guarantee: root.b falls from 3 to 1 of 2"),
        (1, "v0 v1", "P-needed: v0 could be spared"),
        (2, "v0", "P-entitled: a0 is above its guarantee"),
        (2, "v0", "P-needed: a0 has no room on node 0 all the same"),
    ],
)
def test_a_wrong_decision_breaks_a_promise(size: int, victims: str, fault: str) -> None:
    """The accounts know it from sums alone."""
    accounts = Accounts(A_FULL_NODE)
    accounts.running = {
        f"v{number}": Ran(f"v{number}", ran.leaf, ran.node, ran.size)
        for number, ran in enumerate(A_FULL_NODE.running)
    }
    ended = [accounts.running[key] for key in victims.split()]

    assert fault in accounts.faults_for_guarantee(Asked("a0", "root.a", (size,)), (0,), ended)
    assert [] == accounts.faults_for_guarantee(Asked("a0", "root.a", (1,)), (0,), [accounts.running["v0"]])


def _rules(queue: str, *properties: tuple[str, str]) -> Rules:
    paths = ("root.p", "root.p.a", "root.p.b", "root.c")
    return Rules([QueueIn(path, (0,), properties if path == queue else ()) for path in paths])


@pytest.mark.parametrize(
    ("queue", "name", "value", "victim", "fault"),
    [
        ("root.p", "priority.offset", "1", "root.c", None),
        ("root.p", "priority.offset", "-1", "root.c", "P-priority: v counts as 0, the ask as -1"),
        ("root.p", "priority.offset", "-1", "root.p.b", None),
        ("root.p.b", "priority.offset", "1", "root.p.b", "P-priority: v counts as 1, the ask as 0"),
        ("root.p", "preemption.policy", "fence", "root.c", "P-fence: v is outside of root.p"),
        ("root.p", "preemption.policy", "fence", "root.p.b", None),
        ("root.c", "preemption.policy", "disabled", "root.c", "P-fence: root.c has no victims"),
    ],
)
def test_properties_say_what_may_end_for_an_ask(
    queue: str, name: str, value: str, victim: str, fault: str | None
) -> None:
    """The ask is in `root.p.a`; an offset counts among the siblings of its queue alone."""
    assert fault == _rules(queue, (name, value)).forbidden("root.p.a", 0, Ran("v", victim, 0, (1,)))


def test_time_and_number_protect_what_runs() -> None:
    """The minimum run time is that of the widest queue around the victim; a budget counts all below it."""
    rules = _rules("root.p", ("preemption.min-runtime", "20s"), ("preemption.victims-max", "1/20s"))
    old, young = (Ran("v", "root.p.b", 0, (1,), since=since) for since in (80.0, 90.0))

    assert rules.protected("root.c", old, 100.0, for_guarantee=True) is None
    assert "P-runtime: v has run for 10 s of 20s" == rules.protected(
        "root.c", young, 100.0, for_guarantee=True
    )
    assert [] == list(rules.over_budget(["root.p.a"], 100.0))
    rules.note("root.p.b", 100.0)
    assert ["P-budget: root.p loses 1 after 1 of 1/20s"] == list(rules.over_budget(["root.p.a"], 110.0))
    assert [] == list(rules.over_budget(["root.p.a"], 120.0))
