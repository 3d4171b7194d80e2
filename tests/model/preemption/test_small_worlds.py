"""Preemption in small worlds, in every order of what may happen; `make proofs` explores all of them."""

from __future__ import annotations

import pytest
from support.proofs.accounts import Accounts, Asked, Ran
from support.proofs.explorer import Step, explore
from support.proofs.run import prove
from support.proofs.worlds import FAMILIES, AskIn, Family, QueueIn, RunningIn, World

from licorne.model.preemption.guarantee import attempt

EVERY = 307
A_FULL_NODE = World(
    queues=(QueueIn("root.a", (1,)), QueueIn("root.b", (2,))),
    nodes=((3,),),
    running=(RunningIn("root.b", 0, (1,)), RunningIn("root.b", 0, (2,))),
    asks=(AskIn("root.a", (1,)), AskIn("root.a", (1,), node=0)),
    late=True,
)
"""One queue uses more than it is guaranteed; the second ask needs the node."""


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_preemption_keeps_its_promises_in_some_worlds_of_each_family(family: Family) -> None:
    """All promises hold in every state, and preemption ends from each."""
    worlds, found = prove(family, EVERY)

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
        f"v{number}": Ran(f"v{number}", *ran) for number, ran in enumerate(A_FULL_NODE.running)
    }
    ended = [accounts.running[key] for key in victims.split()]

    assert fault in accounts.faults_for_guarantee(Asked("a0", "root.a", (size,)), 0, ended)
    assert [] == accounts.faults_for_guarantee(Asked("a0", "root.a", (1,)), 0, [accounts.running["v0"]])
