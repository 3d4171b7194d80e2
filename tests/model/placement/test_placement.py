"""Where applications go."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.placement_fakes import FakeQueues, a_request

from licorne.model.configuration.names import QUEUE_NAME_RULE
from licorne.model.configuration.schema import FilterConfig, RuleConfig
from licorne.model.placement import (
    PlacementRefusal,
    PlacementRequest,
    PlacementRules,
    PlacementRulesError,
    QueueChoice,
    RuleOutcome,
)
from licorne.model.values.messages import User
from licorne.proxy.core.documents.queues import rule_document

NO_MATCH = "application rejected: no placement rule matched"
NOT_FORCED = RuleOutcome("recovery", 1, "the application is not forced")
PROVIDED = RuleConfig(name="provided", create=True)
FIXED_A = RuleConfig(name="fixed", value="a")
NOT_BELOW_P = "user bob may not submit to root.p, below which root.p.y would be created"


def queues(
    *,
    extra: tuple[str, ...] = (),
    draining: tuple[str, ...] = (),
    denied: tuple[str, ...] = (),
) -> FakeQueues:
    return FakeQueues(("root.a", "root.p.x", *extra), draining=draining, denied=denied)


def placed(
    *rules: RuleConfig, request: PlacementRequest, among: FakeQueues | None = None
) -> QueueChoice | PlacementRefusal:
    return PlacementRules(rules).place(request, queues() if among is None else among)


# ------------------------------------------------------------------------------ without configuration


@pytest.mark.parametrize(
    ("queue_name", "path"),
    [("root.a", "root.a"), ("a", "root.a"), ("root.p.x", "root.p.x"), ("root.P.X", "root.p.x")],
)
def test_without_rules_an_existing_leaf_can_be_named(queue_name: str, path: str) -> None:
    """The default rule takes the provided queue, whatever the case: placement/no-rules as recorded."""
    assert QueueChoice(path) == placed(request=a_request(queue_name))


@pytest.mark.parametrize("queue_name", ["ROOT.A", "root.p", "p.x", "root.none", "", "root", "root.a.b"])
def test_without_rules_no_other_queue_can_be_named(queue_name: str) -> None:
    """What is missing or is no leaf is refused, in the recorded words."""
    refusal = placed(request=a_request(queue_name))

    assert isinstance(refusal, PlacementRefusal)
    assert refusal.reason == NO_MATCH


# ------------------------------------------------------------------------------------ rules in order


PLACED: Final = {
    "the first rule that finds a place decides": (
        (PROVIDED, FIXED_A),
        a_request("root.p.x"),
        queues(),
        QueueChoice("root.p.x"),
    ),
    "a rule without match leaves it to the next": (
        (PROVIDED, FIXED_A),
        a_request(),
        queues(),
        QueueChoice("root.a"),
    ),
    "a rule that fails refuses the application, and no further rule is tried": (
        (PROVIDED, FIXED_A),
        a_request("root."),
        queues(),
        PlacementRefusal(QUEUE_NAME_RULE, (RuleOutcome("provided", 0, QUEUE_NAME_RULE),)),
    ),
    "a refusal lists every rule that was tried with its number and its reason": (
        (PROVIDED, RuleConfig(name="user", filter=FilterConfig(type="deny"))),
        a_request("root.p"),
        queues(),
        PlacementRefusal(
            NO_MATCH,
            (
                RuleOutcome("provided", 0, "queue root.p is not a leaf"),
                RuleOutcome("user", 1, "the filter does not let user bob through"),
                RuleOutcome("recovery", 2, "the application is not forced"),
            ),
        ),
    ),
    "a queue that the user may not submit to is passed over": (
        (PROVIDED, FIXED_A),
        a_request("root.p.x"),
        queues(denied=("root.p.x",)),
        QueueChoice("root.a"),
    ),
    "a draining queue takes no new applications": (
        (),
        a_request("root.a"),
        queues(draining=("root.a",)),
        PlacementRefusal(NO_MATCH, (RuleOutcome("provided", 0, "queue root.a is draining"), NOT_FORCED)),
    ),
    "no queue is created where the user may not submit": (
        (PROVIDED,),
        a_request("root.p.y"),
        queues(denied=("root.p",)),
        PlacementRefusal(NO_MATCH, (RuleOutcome("provided", 0, NOT_BELOW_P), NOT_FORCED)),
    ),
    "whether the deepest existing queue can have children is not asked here, as recorded": (
        (PROVIDED,),
        a_request("root.a.b"),
        queues(),
        QueueChoice("root.a.b"),
    ),
    "a fixed value that begins like the root is below it; the recorded core crashes here": (
        (RuleConfig(name="fixed", value="rootfoo", create=True),),
        a_request(),
        queues(),
        QueueChoice("root.rootfoo"),
    ),
    "when no rule finds a place, the default queue is taken if it exists": (
        (),
        a_request("none"),
        queues(extra=("root.default",)),
        QueueChoice("root.default"),
    ),
    "forced applications go to the recovery queue before the default queue, and need no right": (
        (),
        a_request("none", forced=True),
        queues(extra=("root.default",), denied=("root", "root.default")),
        QueueChoice("root.@recovery@"),
    ),
    "forced applications go to the recovery queue where a rule fails": (
        (RuleConfig(name="tag", value="t", create=True),),
        a_request("root.a", forced=True, tags={"t": "a$"}),
        queues(),
        QueueChoice("root.@recovery@"),
    ),
    "and where the rule's queue cannot be created": (
        (RuleConfig(name="provided", create=True),),
        a_request("root.a.below", forced=True),
        queues(),
        QueueChoice("root.@recovery@"),
    ),
    "forced applications go by the rules first": (
        (),
        a_request("root.a", forced=True),
        queues(),
        QueueChoice("root.a"),
    ),
    # Naming the recovery queue has no effect, whether it exists or not; the recorded core creates it.
    **{
        f"{name} is for forced applications only": (
            (PROVIDED,),
            a_request(name),
            queues(),
            PlacementRefusal(
                NO_MATCH,
                (
                    RuleOutcome("provided", 0, f"queue {name.lower()} is for forced applications only"),
                    NOT_FORCED,
                ),
            ),
        )
        for name in ("root.@recovery@", "root.@Recovery@", "root.@recovery@.x")
    },
}


@pytest.mark.parametrize(("rules", "application", "among", "expected"), PLACED.values(), ids=PLACED)
def test_rules_are_tried_in_order(
    rules: tuple[RuleConfig, ...],
    application: PlacementRequest,
    among: FakeQueues,
    expected: QueueChoice | PlacementRefusal,
) -> None:
    """The first that finds an open queue decides; the default queue and the recovery queue are the last."""
    assert expected == placed(*rules, request=application, among=among)


def test_filters_lead_to_different_queues() -> None:
    """Whom the filter does not let through goes on to the next rule: placement/filter-allow as recorded."""
    only = FilterConfig(type="allow", users=("bob", "carol"), groups=("dev", "ops"))
    rules = RuleConfig(name="fixed", value="p.x", filter=only), FIXED_A
    users = User("bob", ("x",)), User("dan", ("x",)), User("dan", ("x", "ops")), User("bobby", ("devs",))

    assert [QueueChoice(f"root.{path}") for path in ("p.x", "a", "p.x", "a")] == [
        placed(*rules, request=a_request(user=user)) for user in users
    ]


def test_a_queue_may_be_created_below_the_deepest_that_exists() -> None:
    """The right to submit is looked up in the deepest existing queue, and nowhere else."""
    among = queues()

    assert QueueChoice("root.p.y.z") == placed(PROVIDED, request=a_request("root.p.y.Z"), among=among)
    assert [("root.p", "bob")] == among.asked


def test_the_default_queue_is_open_to_who_may_submit() -> None:
    """The last resort has its access list like others, and is named among what was tried."""
    among = queues(extra=("root.default",), denied=("root.default",))

    refusal = placed(request=a_request("none"), among=among)

    assert isinstance(refusal, PlacementRefusal)
    why = "user bob may not submit to queue root.default"
    assert RuleOutcome("default queue", 2, why) == refusal.tried[-1]


# -------------------------------------------------------------------------------- the list of rules


def test_a_rule_that_makes_no_sense_refuses_the_whole_list() -> None:
    """Nothing is built of a list with an unknown rule."""
    with pytest.raises(PlacementRulesError, match="unknown rule name specified nosuch"):
        PlacementRules((FIXED_A, RuleConfig(name="nosuch")))


def test_the_documents_end_with_the_recovery_rule() -> None:
    """Without configuration there are two rules."""
    assert [
        {"name": "provided", "parameters": {"create": "false"}},
        {"name": "recovery", "parameters": {"queue": "root.@recovery@"}},
    ] == [rule_document(rule) for rule in PlacementRules(()).all()]


NAMES = st.text(alphabet="aprxRO.@_$ ", max_size=12)
RULES = st.recursive(
    st.builds(RuleConfig, name=st.sampled_from(["provided", "user"]), create=st.booleans())
    | st.builds(RuleConfig, name=st.just("tag"), value=st.just("t"), create=st.booleans())
    | st.builds(RuleConfig, name=st.just("fixed"), value=st.sampled_from(["a", "p", "p.x", "new"])),
    lambda parents: st.builds(
        RuleConfig, name=st.sampled_from(["provided", "user"]), create=st.booleans(), parent=parents
    ),
    max_leaves=3,
)


@settings(max_examples=80)
@given(st.lists(RULES, max_size=3), NAMES, NAMES, st.booleans())
def test_every_placement_is_a_leaf_or_can_be_created(
    rules: list[RuleConfig],
    queue_name: str,
    tag: str,
    forced: bool,  # noqa: FBT001 - drawn
) -> None:
    """A place is an open leaf, or new and below the root; no rule refuses a forced application."""
    among = queues(extra=("root.default",), draining=("root.p.x",))

    result = placed(*rules, request=a_request(queue_name, tags={"T": tag}, forced=forced), among=among)

    if isinstance(result, PlacementRefusal):
        assert not forced
        assert result.tried
    else:
        facts = among.find(result.queue_path)
        assert result.queue_path.startswith("root.")
        assert result.queue_path == result.queue_path.lower()
        assert facts is None or (facts.is_leaf and not facts.is_draining)
