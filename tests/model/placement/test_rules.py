"""The placement rules one by one."""

from __future__ import annotations

import pytest
from support.model.placement_fakes import FakeQueues, a_request

from licorne.model.configuration.names import QUEUE_NAME_RULE
from licorne.model.configuration.positions import Position
from licorne.model.configuration.rules.placement_warnings import RULE_NAMES
from licorne.model.configuration.schema import FilterConfig, RuleConfig
from licorne.model.errors import LicorneError
from licorne.model.placement.rules import (
    BUILDERS,
    RECOVERY_RULE,
    Found,
    NoMatch,
    Outcome,
    PlacementRulesError,
    RuleRefusal,
    build_rule,
)
from licorne.model.values.users import User
from licorne.proxy.documents.rules import rule_document

QUEUES = FakeQueues(paths=("root.a", "root.p.x"), parents=("root.p", "root.dev"))


def provided(*, create: bool = True, parent: RuleConfig | None = None) -> RuleConfig:
    return RuleConfig(name="provided", create=create, parent=parent)


def fixed(value: str, *, create: bool = False, parent: RuleConfig | None = None) -> RuleConfig:
    return RuleConfig(name="fixed", value=value, create=create, parent=parent)


def user(*, create: bool = True, parent: RuleConfig | None = None) -> RuleConfig:
    return RuleConfig(name="user", create=create, parent=parent)


def tag(value: str, *, create: bool = True) -> RuleConfig:
    return RuleConfig(name="tag", value=value, create=create)


def outcome(config: RuleConfig, queue_name: str = "", **tags: str) -> Outcome:
    """Return what a rule says about an application of bob."""
    return build_rule(config).place(a_request(queue_name, tags=tags), QUEUES)


def test_the_check_of_configurations_knows_each_rule() -> None:
    """One that it does not know could not be configured by a reload."""
    assert RULE_NAMES == tuple(BUILDERS)


# ------------------------------------------------------------------------------------------- provided


def test_a_provided_path_is_taken_as_it_is() -> None:
    """A name that starts at the root is a path."""
    assert Found("root.p.y") == outcome(provided(), "root.p.y")


def test_a_provided_name_is_below_the_root() -> None:
    """A name of one queue is that of a child of the root."""
    assert Found("root.a") == outcome(provided(create=False), "a")


def test_dots_in_a_provided_name_are_spelled_out() -> None:
    """A name that is no path names one queue, dots or not; case counts in telling the two apart."""
    assert Found("root.a_dot_b") == outcome(provided(), "a.b")
    assert Found("root.ROOT_dot_A") == outcome(provided(), "ROOT.A")


def test_the_root_alone_is_no_path() -> None:
    """The name `root` is that of a queue below the root, as recorded."""
    assert Found("root.root") == outcome(provided(), "root")


def test_without_a_provided_queue_there_is_no_match() -> None:
    """An application that names no queue is none of this rule's."""
    assert NoMatch("the application names no queue") == outcome(provided())


@pytest.mark.parametrize("name", ["root.", "root..a", "root.a b", "a$", "x" * 65, "root." + "x" * 65])
def test_a_provided_name_that_no_queue_can_have_is_a_failure(name: str) -> None:
    """A bad name ends the placement: later rules are not tried."""
    assert RuleRefusal(QUEUE_NAME_RULE) == outcome(provided(), name)


def test_a_path_skips_the_parent_rule() -> None:
    """A provided path is not put below the parent, a provided name is."""
    rule = provided(parent=fixed("p"))

    assert Found("root.z") == outcome(rule, "root.z")
    assert Found("root.p.z") == outcome(rule, "z")


def test_without_create_the_queue_must_exist() -> None:
    """A missing queue is no match; whether it exists does not depend on the case."""
    rule = provided(create=False)

    missing = NoMatch("queue root.none does not exist, and the rule may not create it")
    assert (missing, Found("root.P.X")) == (outcome(rule, "root.none"), outcome(rule, "root.P.X"))


# ----------------------------------------------------------------------------------------------- user


def test_the_user_rule_takes_the_name_of_the_user() -> None:
    """Each user has a queue; dots in the name are spelled out, even if it looks like a path."""
    rule = build_rule(user())

    names = ("bob", "al.ice", "root.x")
    assert [Found(f"root.{name}") for name in ("bob", "al_dot_ice", "root_dot_x")] == [
        rule.place(a_request(user=User(name)), QUEUES) for name in names
    ]


def test_a_user_name_that_no_queue_can_have_is_a_failure() -> None:
    """A machine account has a dollar sign, and no queue can."""
    request = a_request(user=User("machine$"))

    assert RuleRefusal(QUEUE_NAME_RULE) == build_rule(user()).place(request, QUEUES)


# ---------------------------------------------------------------------------------------------- fixed


def test_a_fixed_value_is_a_path_below_the_root() -> None:
    """Dots in a fixed value separate queues."""
    assert Found("root.p.x") == outcome(fixed("p.x"))


@pytest.mark.parametrize("value", ["root.p.x", "ROOT.P.X", "P.X"])
def test_a_fixed_value_is_lower_case(value: str) -> None:
    """The spelling of a fixed value does not count, nor whether it starts at the root."""
    assert Found("root.p.x") == outcome(fixed(value))


def test_only_the_root_itself_starts_a_full_path() -> None:
    """A value that merely begins with the letters is the name of a queue."""
    assert Found("root.rootfoo") == outcome(fixed("rootfoo", create=True))
    assert Found("root") == outcome(fixed("root"))


def test_a_fixed_value_is_put_below_its_parent() -> None:
    """The parent rule gives the queue above."""
    assert Found("root.p.x") == outcome(fixed("x", parent=fixed("p")))


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (fixed(""), "a fixed queue rule must have a queue name set"),
        (fixed("a.b c"), f"{QUEUE_NAME_RULE}: 'a.b c'"),
        (
            fixed("root.p", parent=fixed("a")),
            (
                "cannot have a fixed queue rule with qualified queue getName and a parent rule: "
                "'root.p' below fixed"
            ),
        ),
        (tag(""), "a tag queue rule must have a tag name set"),
        (RuleConfig(name="Nosuch"), "unknown rule name specified Nosuch, failing placement rule config"),
        (
            RuleConfig(name="Recovery"),
            "recovery rule cannot be part of the config, failing placement rule config",
        ),
        (
            user(parent=RuleConfig(name="nosuch")),
            "unknown rule name specified nosuch, failing placement rule config",
        ),
    ],
)
def test_rules_that_make_no_sense_are_refused(rule: RuleConfig, reason: str) -> None:
    """The words of the refusal name the value."""
    with pytest.raises(PlacementRulesError) as error:
        build_rule(rule)

    assert reason == error.value.reason


def test_a_refused_rule_names_its_place_in_the_file() -> None:
    """The author of the rule can find it."""
    rule = RuleConfig(name="nosuch", position=Position(12, 7))

    with pytest.raises(LicorneError, match=r"\(placement rule at 12:7\)$"):
        build_rule(rule)


# ------------------------------------------------------------------------------------------------ tag


def test_a_tag_is_treated_like_a_provided_queue() -> None:
    """The value of the tag is a path or the name of a queue."""
    rule = tag("namespace")

    assert Found("root.de_dot_v") == outcome(rule, namespace="de.v")
    assert Found("root.p.x") == outcome(rule, namespace="root.p.x")


def test_the_case_of_tag_names_does_not_count() -> None:
    """Neither in the configuration nor in the application."""
    assert Found("root.dev") == outcome(tag("NameSpace"), NAMESPACE="dev")


def test_without_the_tag_there_is_no_match() -> None:
    """A missing tag and an empty one are the same."""
    none = NoMatch("the application has no tag namespace")

    assert (none, none) == (outcome(tag("namespace")), outcome(tag("namespace"), namespace=""))


# --------------------------------------------------------------------------------- parents and filters


def test_parents_may_have_parents() -> None:
    """A chain of rules makes a path from the outermost to the rule itself."""
    rule = user(parent=RuleConfig(name="tag", value="t", create=True, parent=fixed("p")))

    assert Found("root.p.team.bob") == outcome(rule, t="team")


def test_a_parent_that_is_a_leaf_is_a_failure() -> None:
    """Applications hold the place; the words are the recorded ones."""
    assert RuleRefusal("parent rule returned a leaf queue: root.a") == outcome(user(parent=tag("t")), t="a")


def test_a_parent_without_match_is_no_match() -> None:
    """A rule without parent queue has nothing to propose, and says which parent it was."""
    assert NoMatch("parent rule tag: the application has no tag t") == outcome(user(parent=tag("t")))


def test_a_parent_that_fails_is_a_failure() -> None:
    """A bad name of a parent ends the placement."""
    assert RuleRefusal(QUEUE_NAME_RULE) == outcome(user(parent=tag("t")), t="a$")


def test_the_parent_has_its_own_create() -> None:
    """A rule that may create its queue does not make its parent rule create one."""
    rule = user(parent=tag("t", create=False))

    why = "parent rule tag: queue root.none does not exist, and the rule may not create it"
    assert NoMatch(why) == outcome(rule, t="none")


def test_the_filter_comes_before_the_name() -> None:
    """Who is filtered out does not fail by a bad name."""
    rule = RuleConfig(name="provided", create=True, filter=FilterConfig(type="deny"))

    assert NoMatch("the filter does not let user bob through") == outcome(rule, "a$")


def test_a_missing_queue_name_comes_before_the_filter() -> None:
    """An application that the rule is not about does not get as far as the filter."""
    rule = RuleConfig(name="provided", create=True, filter=FilterConfig(type="deny"))

    assert NoMatch("the application names no queue") == outcome(rule)


# ------------------------------------------------------------------------------------------- recovery


def test_the_recovery_rule_is_for_forced_applications() -> None:
    """Forced applications have the recovery queue, others no match."""
    forced = RECOVERY_RULE.place(a_request(forced=True), QUEUES)

    assert Found("root.@recovery@") == forced
    assert NoMatch("the application is not forced") == RECOVERY_RULE.place(a_request(), QUEUES)


# ------------------------------------------------------------------------------------------ documents


def test_the_document_of_a_rule_has_filter_and_parent() -> None:
    """The document is that of the REST interface."""
    config = RuleConfig(
        name="Tag",
        value="Namespace",
        create=True,
        filter=FilterConfig(type="deny", users=("^bad.*",)),
        parent=fixed("root.B"),
    )

    assert {
        "name": "tag",
        "parameters": {"create": "true", "tagName": "namespace"},
        "filter": {"type": "deny", "userExp": "^bad.*"},
        "parentRule": {
            "name": "fixed",
            "parameters": {"create": "false", "queue": "root.b", "qualified": "true"},
        },
    } == rule_document(build_rule(config))
