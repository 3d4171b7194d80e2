"""Explanations of whole applications: their places, their past, the preemptions they took part in."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_resource
from support.model.explained import explained
from support.model.harness import Harness, a_partition
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.applications.effects import ApplicationState
from licorne.model.explanation.explain import explain
from licorne.model.explanation.values import AHEAD_MAX
from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.model.state.preemption_log import PreemptionCause
from licorne.model.values.allocation import RefusalReason
from licorne.model.views.shown import shown_partition

THREE_DAYS = 3 * 24 * 3600


def test_an_unknown_application_has_no_explanation() -> None:
    """Nor has one that the manager has taken away."""
    h = a_partition()
    h.withdraw()

    assert h.partition.read(explain, "app") is None
    assert h.partition.read(explain, "never", only_key="ask") is None


def test_an_application_is_explained_with_its_user_and_state() -> None:
    """Nothing stands in the way of one that asks for nothing."""
    h = a_partition()

    explanation = explained(h)

    assert (ApplicationState.NEW, "bob", "root.leaf") == (
        explanation.state,
        explanation.user.name,
        explanation.queue_path,
    )
    assert ((), (), ()) == (explanation.blockers, explanation.places, explanation.asks)


# -------------------------------------------------------------------------------------------- places


def test_an_application_has_its_place_in_its_queue_and_the_queue_among_its_siblings() -> None:
    """From the leaf up, each with those that go before."""
    h = Harness(
        """
        - name: team
          queues: [{name: leaf}, {name: empty}]
        - name: urgent
          properties: {priority.offset: '10'}
        """
    )
    h.submit("boss", "root.urgent")
    h.submit("old", "root.team.leaf")
    h.submit("app", "root.team.leaf")
    h.ask("a", application_id="boss")
    h.ask("b", application_id="old", created_at_seconds=1)
    h.ask("c")

    leaf, among_leaves, among_teams = explained(h).places

    assert ("app", "root.team.leaf", 2, 2, ("old",)) == (
        leaf.subject,
        leaf.among,
        leaf.number,
        leaf.of,
        leaf.ahead,
    )
    assert ("root.team.leaf", "root.team", 1, 1, ()) == (
        among_leaves.subject,
        among_leaves.among,
        among_leaves.number,
        among_leaves.of,
        among_leaves.ahead,
    )
    assert ("root.team", 2, ("root.urgent",)) == (among_teams.subject, among_teams.number, among_teams.ahead)


def test_the_rule_of_the_order_is_explained_with_its_setting() -> None:
    """In words; without a setting it has no place."""
    h = Harness(
        "- {name: leaf, properties: {application.sort.policy: fair, application.sort.priority: disabled}}"
    )
    h.submit()
    h.ask("ask")

    leaf, among = explained(h).places

    assert "the smaller share of the queue's guarantee first, then the higher priority" == leaf.order
    assert leaf.position is not None
    assert leaf.position.path.endswith("properties.application.sort.policy")
    assert "the higher priority first, then the smaller share of the guarantee" == among.order
    assert among.position is None


def test_the_order_of_queues_by_their_past_is_explained_with_its_figures() -> None:
    """With the sibling that goes before, and the setting."""
    h = Harness(
        """
        - {name: leaf, properties: {fair.weight: '2'}}
        - {name: other, resources: {guaranteed: {memory: 9}}}
        """,
        root="properties: {fair.half-life: 10s}",
    )
    h.submit()
    h.submit("neighbour", "root.other")
    h.nodes("node")
    h.ask_and_run("large", resource=a_resource(memory=8))
    h.advance(10)
    h.ask("next", resource=a_resource(memory=8))
    h.ask("theirs", application_id="neighbour", resource=a_resource(memory=8))

    place = explained(h).places[1]

    assert ("root.leaf", 2, ("root.other",)) == (place.subject, place.number, place.ahead)
    assert (
        "the higher priority first, then below the guarantee, then the smaller mean use above it by weight, "
        "half-life 10s: root.leaf used on average memory 4, weight 2: 0.2000 of root; "
        "root.other is below its guarantee"
    ) == place.order
    assert place.position is not None
    assert place.position.path.endswith("properties.fair.half-life")


def test_the_place_of_an_application_shows_what_its_user_has_used() -> None:
    """With the user who goes before, and the setting."""
    h = Harness(
        """
        - name: leaf
          properties: {application.sort.policy: users, fair.half-life: 10s}
          limits: [{limit: heavy, users: [bob], weight: 2}]
        """
    )
    h.nodes("node")
    h.submit()
    h.submit("neighbour", user="ada")
    h.ask_and_run("large", resource=a_resource(memory=8))
    h.advance(10)
    h.ask("next", resource=a_resource(memory=8))
    h.ask("theirs", application_id="neighbour", resource=a_resource(memory=8))

    place = explained(h).places[0]
    assert ("app", 2, ("neighbour",)) == (place.subject, place.number, place.ahead)
    assert (
        "the higher priority first, then the user with the smaller mean use by weight, half-life 10s, then "
        "the earlier submission: bob used on average memory 4, weight 2: 0.2000 of root.leaf; "
        "ada used on average nothing, weight 1: 0.0000 of root.leaf"
    ) == place.order
    assert place.position is not None
    assert place.position.path.endswith("properties.application.sort.policy")


QUEUES_IN_TURN = """
- name: leaf
- name: other
"""
USERS_IN_TURN = """
- name: leaf
  properties: {application.sort.policy: users}
- name: other
"""


@pytest.mark.parametrize(
    ("queues", "queue", "number"),
    [(QUEUES_IN_TURN, "root.other", 1), (USERS_IN_TURN, "root.leaf", 0)],
    ids=["queues", "users"],
)
def test_the_place_by_the_past_says_when_two_are_level(queues: str, queue: str, number: int) -> None:
    """One has a mean of 4 that decays, the other begins to use 8: they are level in 5.8 s."""
    h = Harness(queues, root="properties: {fair.half-life: 10s}")
    h.nodes("node")
    h.submit()
    h.submit("neighbour", queue, user="ada")
    h.ask_and_run("first", resource=a_resource(memory=8))
    h.advance(10)
    h.release("first")
    h.ask_and_run("second", application_id="neighbour", resource=a_resource(memory=8))
    h.ask("next", resource=a_resource(memory=8))
    h.ask("theirs", application_id="neighbour", resource=a_resource(memory=8))

    def order(application_id: str) -> str:
        return explained(h, application_id).places[number].order

    assert order("app").endswith("; level in 5s if nothing changes")
    assert order("neighbour").endswith("; level in 5s if nothing changes")
    h.advance(6)
    assert "level in" not in order("app")
    assert "level in" not in order("neighbour")


def test_only_the_first_of_those_ahead_are_named() -> None:
    """A queue may be long."""
    h = Harness()
    for number in range(AHEAD_MAX + 3):
        h.submit(f"a{number}")
        h.ask(f"k{number}", application_id=f"a{number}")

    place = explained(h, f"a{AHEAD_MAX + 2}").places[0]

    assert AHEAD_MAX + 3 == place.number == place.of
    assert AHEAD_MAX == len(place.ahead)


# ---------------------------------------------------------------------------------------------- past


def test_a_rejected_application_is_explained_with_what_every_rule_said() -> None:
    """And where the rules stand."""
    h = Harness(
        partition="""
        placementrules:
        - {name: tag, value: namespace}
        - {name: provided}
        """
    )
    h.submit(queue_name="root.nowhere")

    explanation = explained(h)

    assert ApplicationState.REJECTED is explanation.state
    assert "failed to place application app: application rejected: no placement rule matched" == (
        explanation.rejection
    )
    assert [
        ("tag", "the application has no tag namespace", "partitions[0].placementrules[0]"),
        (
            "provided",
            "queue root.nowhere does not exist, and the rule may not create it",
            "partitions[0].placementrules[1]",
        ),
        ("recovery", "the application is not forced", ""),
    ] == [(rule.rule, rule.why, rule.position.path if rule.position else "") for rule in explanation.rules]


def test_an_application_that_is_active_goes_before_a_rejected_one_of_the_same_id() -> None:
    """The explanation is about what goes on."""
    h = Harness()
    h.submit(queue_name="root.nowhere")
    h.submit()

    assert (ApplicationState.NEW, "") == (explained(h).state, explained(h).rejection)


def test_an_application_that_has_ended_is_explained_until_it_expires() -> None:
    """With the state, why, and since when; then one of the same id that was rejected later is."""
    h = a_partition("n1")
    h.ask_and_run("ask")
    h.release("ask")
    h.advance(30)

    explanation = explained(h)

    assert (ApplicationState.COMPLETED, "completeApplication") == (explanation.state, explanation.state_text)
    assert "root.leaf" == explanation.queue_path
    assert h.clock.now_ns() == explanation.finished_at_ns == explanation.state_since_ns
    h.submit(queue_name="root.nowhere")
    assert ApplicationState.REJECTED is explained(h).state
    h.advance(THREE_DAYS)
    assert h.partition.read(explain, "app") is None


def test_an_application_that_has_failed_is_explained_with_what_it_began_to_fail_for() -> None:
    """Between Failing and Failed the manager confirms what ended: that is no reason."""
    h = a_partition("n1", timeout_seconds=60)
    h.ask_and_run("ask", limit_seconds=0)
    h.advance(60)
    failing = explained(h)
    h.confirm()
    failed = explained(h)

    assert [ApplicationState.FAILING, ApplicationState.FAILED] == [failing.state, failed.state]
    assert "ExecutionTimeout" == failing.state_text == failed.state_text


def test_a_gang_that_failed_is_explained_with_the_reason() -> None:
    """A hard one whose placeholders timed out."""
    h = a_partition("n1", placeholder_ask=a_resource(memory=20), style="Hard", timeout_seconds=5)
    h.ask_and_run("ph1", "ph2", task_group_name="g", placeholder=True)
    h.advance(5)

    assert (ApplicationState.FAILING, "ResourceReservationTimeout") == (
        explained(h).state,
        explained(h).state_text,
    )


# --------------------------------------------------------------------------------------- preemptions


def a_preemption(queues: str = TWO_QUEUES) -> Scene:
    """An ask that preempts one of the three that fill the only node, if guarantees allow it."""
    scene = Scene(queues)
    scene.nodes("n1", capacity=a_resource(memory=30))
    scene.runs("b1", "b2", "b3")
    scene.asks("a1")
    scene.advance(10)
    scene.cycle()
    return scene


def test_a_preemption_is_part_of_the_explanation_of_its_ask() -> None:
    """Whose guarantee, on which node, whom, and why that one."""
    explanation = explained(a_preemption(), "root.a")

    (record,) = explanation.preemptions
    assert ("root.a", "a1") == (record.application_id, record.allocation_key)
    assert (PreemptionCause.GUARANTEE, "root.a", "n1") == (record.cause, record.queue_path, record.node_id)
    assert [("b3", "root.b")] == [(victim.allocation_key, victim.queue_path) for victim in record.victims]
    assert all(victim.reason for victim in record.victims)
    assert () == explanation.preemptions_of("a1")
    assert 0 == explanation.loops


def test_what_a_guarantee_forbids_is_explained_with_what_is_left_of_it() -> None:
    """The note of the cycle names neither a type nor an amount."""
    scene = a_preemption(TWO_QUEUES.replace("memory: 20", "memory: 100"))

    (ask,) = explained(scene, "root.a").asks

    refused = NoPreemption.GUARANTEE.text
    expected = f"{refused}; now no other queue uses more than its guarantee"
    assert [expected] == [noted.text for noted in ask.noted if noted.text.startswith(refused)]


def test_a_preemption_is_part_of_the_explanation_of_its_victim() -> None:
    """Neither of the others of its application nor of other applications."""
    scene = a_preemption()
    scene.submit("other", "root.a")
    explanation = explained(scene, "root.b")

    (record,) = explanation.preemptions_of("b3")
    assert ("root.a", "a1") == (record.application_id, record.allocation_key)
    assert () == explanation.preemptions_of("b1")
    assert () == explained(scene, "other").preemptions


def test_an_explanation_does_not_change_the_state() -> None:
    """Neither what is shown nor what holds."""
    scene = a_preemption()
    scene.ask("more", application_id="root.b", resource=TEN)
    before = (scene.partition.read(shown_partition), scene.state.changes)

    for name in ("root.a", "root.b"):
        explained(scene, name)

    assert before == (
        scene.partition.read(shown_partition),
        scene.state.changes,
    )
    scene.validate()


def test_a_whole_gang_names_the_room_that_is_short_even_while_a_queue_refuses_it() -> None:
    """Each member alone has room on the node."""
    h = Harness("- {name: leaf, properties: {gang.placing: whole}, resources: {max: {memory: 100}}}")
    h.nodes("n1", capacity=a_resource(memory=5))
    h.submit(placeholder_ask=a_resource(memory=8))
    h.ask("g1", "g2", resource=a_resource(memory=4), placeholder=True, task_group_name="g")
    h.run_until_idle()

    quota, room = explained(h).blockers

    assert (RefusalReason.QUEUE_QUOTA, "root") == (quota.reason, quota.subject)
    assert (RefusalReason.GANG_ROOM, "g: room for 1 of 2") == (room.reason, room.detail)
