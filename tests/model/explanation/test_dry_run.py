"""Where new applications and asks would go, and that nothing is left of the question."""

from __future__ import annotations

from typing import Any

import pytest
from support.model.builders import START_NS, TEN, a_resource, an_application_submission, an_ask_submission
from support.model.harness import Harness, a_partition

from licorne.model.explanation import AskExplanation
from licorne.model.explanation.dry_run import DryRun, dry_run_application, dry_run_ask
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.messages import AllocationSubmission, ApplicationSubmission
from licorne.model.views.shown import shown_partition

CREATING = "placementrules: [{name: tag, value: namespace, create: true}, {name: provided, create: true}]"


def an_application_to_come(
    queue_name: str = "root.leaf", *, application_id: str = "new", **options: Any
) -> ApplicationSubmission:
    return an_application_submission(application_id, queue_name, **options)


def an_ask_to_come(application_id: str = "new", *, key: str = "ask", **options: Any) -> AllocationSubmission:
    return an_ask_submission(key, application_id, **options)


def new(
    harness: Harness, submission: ApplicationSubmission, ask: AllocationSubmission | None = None
) -> DryRun:
    """Try an application, and see that nothing has changed."""
    before = _shown(harness)
    run = harness.partition.read(dry_run_application, submission, ask)
    assert before == _shown(harness)
    harness.validate()
    return run


def more(harness: Harness, ask: AllocationSubmission) -> DryRun:
    """Try an ask of an application that is active, and see that nothing has changed."""
    before = _shown(harness)
    run = harness.partition.read(dry_run_ask, ask)
    assert before == _shown(harness)
    harness.validate()
    assert run is not None
    return run


def _shown(harness: Harness) -> tuple[object, ...]:
    partition, state = harness.partition, harness.state
    return (
        partition.read(shown_partition),
        len(harness.announcements),
        (state.changes, state.node_changes, state.nodes.gains, dict(state.nodes.closed)),
    )


def asked(run: DryRun) -> AskExplanation:
    """Return what is said of the ask."""
    assert run.ask is not None
    return run.ask


def outcomes(run: DryRun) -> list[tuple[str, str]]:
    return [(rule.rule, rule.why) for rule in run.rules]


# -------------------------------------------------------------------------------------- applications


def test_the_queue_of_a_new_application_is_named_with_the_rule_that_finds_it() -> None:
    """With the rules that found none before."""
    h = Harness(partition=CREATING)

    run = new(h, an_application_to_come())

    assert ("root.leaf", (), "") == (run.queue_path, run.creates, run.rejection)
    assert [
        ("tag", "the application has no tag namespace"),
        ("provided", "it leads to queue root.leaf"),
    ] == outcomes(run)
    assert run.rules[1].position is not None


def test_an_application_that_no_rule_places_gets_the_outcome_of_each() -> None:
    """As in the message for the manager, and more."""
    h = Harness()

    run = new(h, an_application_to_come("root.nowhere"))

    text = "failed to place application new: application rejected: no placement rule matched"
    assert (text, "") == (run.rejection, run.queue_path)
    assert ["provided", "recovery"] == [rule.rule for rule in run.rules]


def test_queues_that_would_be_made_are_named_and_not_made() -> None:
    """From the top down, with the limits of the template."""
    h = Harness(
        "- {name: p, parent: true, childtemplate: {resources: {max: {memory: 5}}}}", partition=CREATING
    )
    h.nodes("n1")

    run = new(h, an_application_to_come("root.p.a.b"), an_ask_to_come())

    assert ("root.p.a", "root.p.a.b") == run.creates
    assert [(RefusalReason.QUEUE_QUOTA, "root.p.a.b")] == [
        (blocker.reason, blocker.subject) for blocker in asked(run).blockers
    ]
    assert h.state.tree.find("root.p.a") is None


REJECTED = {
    # A leaf takes no queues.
    "whose queue cannot be made": (
        an_application_to_come("root.leaf.below"),
        "creation of queue root.leaf.below failed parent is already a leaf: root.leaf",
        ["tag", "provided"],
    ),
    "whose gang its queue cannot run": (
        an_application_to_come(placeholder_ask=TEN),
        "larger than max queue allocation",
        ["tag", "provided"],
    ),
    "whose id is taken": (an_application_to_come(application_id="app"), "application already existed", []),
}


@pytest.mark.parametrize(("submission", "words", "rules"), REJECTED.values(), ids=REJECTED)
def test_an_application_would_be_rejected(
    submission: ApplicationSubmission, words: str, rules: list[str]
) -> None:
    """In the words that the manager would read."""
    h = a_partition(queues="- {name: leaf, resources: {max: {memory: 5}}}", partition=CREATING)

    run = new(h, submission)

    assert words in run.rejection
    assert rules == [rule.rule for rule in run.rules]


def test_the_quotas_of_a_namespace_count_as_if_they_were_there() -> None:
    """In a queue that exists as well; the queue keeps its own."""
    h = Harness("- {name: p, parent: true}", partition=CREATING)
    h.nodes("n1")
    h.submit("old", "root.p.x")
    tags = {"namespace.resourcequota": '{"resources":{"memory":{"value":5}}}'}

    run = new(h, an_application_to_come("root.p.x", tags=tags), an_ask_to_come())

    (blocker,) = asked(run).blockers
    assert ("root.p.x", 5) == (blocker.subject, blocker.lacks[0].limit)
    assert h.queue("root.p.x").maximum is None


def test_a_forced_application_would_go_to_the_recovery_queue() -> None:
    """It would be made."""
    h = Harness()

    run = new(h, an_application_to_come("root.nowhere", tags={"application.create.force": "true"}))

    assert ("root.@recovery@", ("root.@recovery@",)) == (run.queue_path, run.creates)


def test_an_application_without_an_ask_gets_to_know_whether_it_might_start() -> None:
    """Also without anything to place."""
    h = a_partition("n1", capacity=a_resource(memory=100), queues="- {name: leaf, maxapplications: 1}")
    h.ask_and_run("a")

    (blocker,) = new(h, an_application_to_come()).blockers

    assert RefusalReason.QUEUE_APPLICATIONS is blocker.reason


# ---------------------------------------------------------------------------------------------- asks


def test_a_first_ask_gets_its_node_and_its_place() -> None:
    """Behind the application that waits already."""
    h = a_partition("n1", "n2")
    h.ask("a")

    run = new(h, an_application_to_come(), an_ask_to_come())

    assert "n1" == run.node_id
    assert run.place is not None
    assert (2, 2, ("app",)) == (run.place.number, run.place.of, run.place.ahead)


def test_the_node_is_the_one_that_the_ask_then_gets() -> None:
    """Of the nodes that are left."""
    h = a_partition("n1", "n2")
    h.ask_and_run("a")
    said = more(h, an_ask_to_come("app")).node_id

    h.ask_and_run("ask")

    assert said == h.placements["ask"] == "n2"


def test_an_ask_that_would_wait_gets_the_reason() -> None:
    """Everything at once, and no node."""
    h = Harness(
        "- {name: leaf, resources: {max: {memory: 15}}, limits: [{users: [bob], maxresources: {memory: 12}}]}"
    )
    h.nodes("n1", capacity=a_resource(memory=15))
    h.submit()
    h.ask_and_run("a")

    run = more(h, an_ask_to_come("app"))

    assert [
        RefusalReason.USER_QUOTA,
        RefusalReason.QUEUE_QUOTA,
        RefusalReason.QUEUE_QUOTA,
        RefusalReason.NO_NODE_FITS,
    ] == [blocker.reason for blocker in asked(run).blockers]
    assert "" == run.node_id


def test_an_ask_for_one_node_gets_that_node() -> None:
    """Or what it lacks."""
    h = a_partition("n1", "n2")

    assert "n2" == more(h, an_ask_to_come("app", required_node="n2")).node_id
    assert "" == more(h, an_ask_to_come("app", required_node="n3")).node_id


def test_the_first_ask_of_an_application_may_be_one_application_too_many() -> None:
    """It is new, and the ask would let it start."""
    h = Harness("- {name: leaf, maxapplications: 1}")
    h.nodes("n1", capacity=a_resource(memory=100))
    h.submit("one")
    h.ask_and_run("a", application_id="one")
    h.submit()

    assert [RefusalReason.QUEUE_APPLICATIONS] == [
        blocker.reason for blocker in more(h, an_ask_to_come("app")).blockers
    ]


def test_a_member_of_a_gang_would_wait_for_a_placeholder() -> None:
    """One is left for it."""
    h = a_partition("n1", placeholder_ask=TEN)
    h.ask_and_run("ph", task_group_name="g", placeholder=True)

    run = more(h, an_ask_to_come("app", task_group_name="g"))

    assert [RefusalReason.WAITS_FOR_PLACEHOLDER] == [blocker.reason for blocker in asked(run).blockers]


@pytest.mark.parametrize(("priority", "place"), [(5, 1), (0, 1), (-1, 4), (-5, 4)])
def test_an_ask_gets_its_place_among_the_others(priority: int, place: int) -> None:
    """By priority; of equal age behind the last of all, and before the first of any other."""
    h = a_partition()
    h.ask("a", "b")
    h.ask("c", priority=-1)

    run = more(h, an_ask_to_come("app", priority=priority))

    said = asked(run).place
    assert said is not None
    h.ask("ask", priority=priority)
    keys = [record.ask.allocation_key for record in h.application().asks.waiting()]
    assert keys.index("ask") + 1 == said.number == place


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (an_ask_to_come("app", resource=a_resource()), "allocation contains no resources"),
        (an_ask_to_come("app", key="a"), "application app has a already"),
        (an_ask_to_come("app", placeholder=True), "placeholder ask has no task group name"),
    ],
)
def test_an_ask_that_would_be_rejected_gets_the_reason(ask: AllocationSubmission, why: str) -> None:
    """In the words that the manager would read."""
    h = a_partition()
    h.ask("a")

    assert why == more(h, ask).rejection


def test_an_ask_that_would_be_rejected_leaves_its_new_application_without_a_node() -> None:
    """The application itself would be taken."""
    h = Harness()
    h.nodes("n1")

    run = new(h, an_application_to_come(), an_ask_to_come(resource=a_resource()))

    assert ("root.leaf", "allocation contains no resources", "") == (
        run.queue_path,
        run.rejection,
        run.node_id,
    )


def test_an_ask_of_an_application_that_is_not_active_has_no_answer() -> None:
    """No node would take it."""
    assert Harness().partition.read(dry_run_ask, an_ask_to_come("nobody")) is None


def test_a_dry_run_is_about_its_moment() -> None:
    """It says which."""
    assert START_NS == new(Harness(), an_application_to_come()).time_ns


def test_a_walltime_that_a_queue_does_not_take_is_found_without_submitting() -> None:
    """Of a new application, of its ask, and of an ask of one that is active; the line is named."""
    harness = a_partition("one", queues="- {name: leaf, properties: {runtime.max: 1h}}")
    tags = {"walltime": "2h"}
    runs = [
        new(harness, an_application_to_come(tags=tags)),
        new(harness, an_application_to_come(), an_ask_to_come(tags=tags)),
        more(harness, an_ask_to_come("app", tags=tags)),
    ]

    whose = ("application new", "ask ask of application new", "ask ask of application app")
    place = "runtime.max 1h0m0s of queue root.leaf (line 8 of the configuration)"
    assert [f"the walltime 2h0m0s of {one} is longer than {place}" for one in whose] == [
        run.rejection for run in runs
    ]
