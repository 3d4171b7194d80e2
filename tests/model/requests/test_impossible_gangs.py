"""Gangs that are placed whole and can never be: rejected with the reason, or given up when time is over."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from support.model.builders import a_resource, memory
from support.model.harness import Harness

from licorne.model.applications.effects import ApplicationState
from licorne.model.values.messages import AllocationsReleased, RejectionCode, TerminationType

MAXIMUM = "- {name: leaf, resources: {max: {memory: 5}}, properties: {gang.placing: whole}}"
USER = "- {name: leaf, limits: [{limit: l, users: [ada], maxresources: {memory: 5}}]}"
ABOVE = """
- name: above
  limits: [{limit: l, groups: [ada], users: ['*'], maxresources: {memory: 5}}]
  queues: [{name: leaf}]
"""
OF_MAXIMUM = "more than the maximum map[memory:5] of queue root.leaf"
OF_USER = "more than the limit map[memory:5] of user ada in queue root.leaf"
OF_ABOVE = "more than the limit map[memory:5] of user ada in queue root.above"
WHOLE = {"gangPlacing": "whole"}


class Case(NamedTuple):
    """Queues, the path of the leaf, and why a gang of three times two is too large for it."""

    queues: str
    path: str
    why: str


CASES = {
    "the maximum of a queue": Case(MAXIMUM, "root.leaf", OF_MAXIMUM),
    "the limit of a user": Case(USER, "root.leaf", OF_USER),
    "a limit above": Case(ABOVE, "root.above.leaf", OF_ABOVE),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_ask_with_which_a_gang_can_never_be_placed_is_rejected(case: Case, *, at_once: bool) -> None:
    """The others wait: a smaller ask may still complete the gang, and then it is placed."""
    h = Harness(case.queues)
    h.nodes("n1", capacity=a_resource(memory=100))
    h.submit("a", case.path, tags={"gangSize": "3"}, user="ada")
    batches = [("a1", "a2", "a3")] if at_once else [("a1",), ("a2",), ("a3",)]
    rejected = [
        rejection for batch in batches for rejection in h.ask(*batch, application_id="a", resource=memory(2))
    ]
    h.run_until_idle()
    before = sorted(h.placements)
    h.ask_and_run("a4", application_id="a", resource=memory(1))

    text = f"the gang of application a needs map[memory:6] at once, {case.why}"
    assert [("a3", text, RejectionCode.OVER_MAXIMUM)] == [
        (each.allocation_key, each.reason, each.code) for each in rejected
    ]
    assert ([], ["a1", "a2", "a4"]) == (before, sorted(h.placements))


def test_asks_beyond_the_size_of_a_gang_are_not_of_it() -> None:
    """They wait for room like any other."""
    h = Harness(MAXIMUM)
    h.nodes("n1", capacity=a_resource(memory=100))
    h.submit("a", tags={"gangSize": "2"})

    assert () == h.ask("a1", "a2", "a3", application_id="a", resource=memory(2))
    h.run_until_idle()
    assert ["a1", "a2"] == sorted(h.placements)


@pytest.mark.parametrize("case", [CASES["the limit of a user"], CASES["a limit above"]])
def test_an_application_that_announces_more_than_a_limit_is_rejected(case: Case) -> None:
    """If it is to be placed whole: step by step some of it may run, and the rest times out."""
    h = Harness(case.queues)
    rejected = h.submit("a", case.path, tags=WHOLE, placeholder_ask=a_resource(memory=6), user="ada")
    stepwise = h.submit("b", case.path, placeholder_ask=a_resource(memory=6), user="ada")
    fits = h.submit("c", case.path, tags=WHOLE, placeholder_ask=a_resource(memory=5), user="ada")
    forced = {**WHOLE, "application.create.force": "true"}
    recovered = h.submit("d", case.path, tags=forced, placeholder_ask=a_resource(memory=6), user="ada")

    assert rejected is not None
    assert f"the gang of application a needs map[memory:6] at once, {case.why}" == rejected.reason
    assert (None, None, None) == (stepwise, fits, recovered)


def test_no_gang_is_rejected_because_of_the_nodes_or_of_what_others_use() -> None:
    """Nodes may come, and others end."""
    h = Harness(USER)
    h.nodes("n1", capacity=a_resource(memory=5))
    h.submit("other", user="ada")
    h.ask_and_run("o1", application_id="other", resource=memory(5))
    h.submit("a", tags={"gangSize": "2"}, user="ada")
    assert () == h.ask("a1", "a2", application_id="a", resource=memory(2))

    assert h.submit("b", tags=WHOLE, placeholder_ask=a_resource(memory=50), user="bob") is None


@pytest.mark.parametrize(
    ("style", "state"), [("Soft", ApplicationState.ACCEPTED), ("Hard", ApplicationState.FAILED)]
)
def test_a_gang_whose_placeholders_do_not_all_come_is_given_up(style: str, state: ApplicationState) -> None:
    """When its placeholders would time out: each ask ends with the reason, and a soft one may ask again."""
    h = Harness("- {name: leaf, properties: {gang.placing: whole}}")
    h.nodes("n1", capacity=a_resource(memory=100))
    announced = a_resource(memory=6)
    h.submit("a", placeholder_ask=announced, style=style, timeout_seconds=60)
    for key in ("a1", "a2"):
        h.ask(key, application_id="a", resource=memory(2), placeholder=True, task_group_name="w")
    h.ask("m1", application_id="a", resource=memory(2), task_group_name="w")
    h.run_until_idle()
    h.advance(seconds=59)
    before = list(h.releases)
    h.advance(seconds=2)

    ended = [
        each for heard in h.announcements if isinstance(heard, AllocationsReleased) for each in heard.releases
    ]
    assert [] == before
    assert [(key, TerminationType.TIMEOUT) for key in ("a1", "a2", "m1")] == h.releases
    assert {"releasing ask on placeholder timeout: not all announced placeholders were asked for"} == {
        each.message for each in ended
    }
    assert state.value == h.states("a")[-1]


def test_a_gang_that_is_complete_waits_for_room_without_an_end() -> None:
    """Its placeholders time out when they are placed and not used."""
    h = Harness("- {name: leaf, properties: {gang.placing: whole}}")
    h.submit("a", placeholder_ask=a_resource(memory=4), timeout_seconds=60)
    h.ask("a1", "a2", application_id="a", resource=memory(2), placeholder=True, task_group_name="w")
    h.run_until_idle()
    h.advance(seconds=600)
    h.nodes("n1", capacity=a_resource(memory=100))
    h.run_until_idle()

    assert (["a1", "a2"], []) == (sorted(h.placements), h.releases)
