"""The placement rules one by one."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.placement_fakes import FakeQueues, a_request

from licorne.model.configuration.names import QUEUE_NAME_RULE
from licorne.model.configuration.problems import Position
from licorne.model.configuration.rules.placement import RULE_NAMES
from licorne.model.configuration.schema import FilterConfig, RuleConfig
from licorne.model.errors import LicorneError
from licorne.model.placement import PlacementRequest
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
from licorne.model.values.messages import User
from licorne.proxy.core.documents.queues import rule_document

QUEUES = FakeQueues(paths=("root.a", "root.p.x"), parents=("root.p", "root.dev"))


def provided(*, create: bool = True, parent: RuleConfig | None = None) -> RuleConfig:
    return RuleConfig(name="provided", create=create, parent=parent)


def fixed(value: str, *, create: bool = False, parent: RuleConfig | None = None) -> RuleConfig:
    return RuleConfig(name="fixed", value=value, create=create, parent=parent)


def user(*, create: bool = True, parent: RuleConfig | None = None) -> RuleConfig:
    return RuleConfig(name="user", create=create, parent=parent)


def tag(value: str, *, create: bool = True) -> RuleConfig:
    return RuleConfig(name="tag", value=value, create=create)


def tagged(**tags: str) -> PlacementRequest:
    return a_request(tags=tags)


def test_the_check_of_configurations_knows_each_rule() -> None:
    """One that it does not know could not be configured by a reload."""
    assert RULE_NAMES == tuple(BUILDERS)


NO_QUEUE_NAMED: Final = NoMatch("the application names no queue")
NO_TAG: Final = NoMatch("the application has no tag t")
MISSING: Final = "queue root.none does not exist, and the rule may not create it"
DENY: Final = RuleConfig(name="provided", create=True, filter=FilterConfig(type="deny"))


FOUND: Final = {
    # The provided queue.
    "a provided path is taken as it is": (provided(), a_request("root.p.y"), Found("root.p.y")),
    "a provided name is below the root": (provided(create=False), a_request("a"), Found("root.a")),
    "dots in a provided name are spelled out": (provided(), a_request("a.b"), Found("root.a_dot_b")),
    "a path begins with root in lower case": (provided(), a_request("ROOT.A"), Found("root.ROOT_dot_A")),
    "the root alone is no path, as recorded": (provided(), a_request("root"), Found("root.root")),
    "an application without a queue has no match": (provided(), a_request(), NO_QUEUE_NAMED),
    **{
        f"no queue can be called {name[:10]}": (provided(), a_request(name), RuleRefusal(QUEUE_NAME_RULE))
        for name in ("root.", "root..a", "root.a b", "a$", "x" * 65, "root." + "x" * 65)
    },
    "a path skips the parent rule": (provided(parent=fixed("p")), a_request("root.z"), Found("root.z")),
    "a name is put below the parent": (provided(parent=fixed("p")), a_request("z"), Found("root.p.z")),
    "without create the queue must exist": (provided(create=False), a_request("root.none"), NoMatch(MISSING)),
    "case does not matter to whether it exists": (
        provided(create=False),
        a_request("root.P.X"),
        Found("root.P.X"),
    ),
    # The queue of the user.
    **{
        f"user {name} has a queue": (user(), a_request(user=User(name)), Found(f"root.{queue}"))
        for name, queue in (("bob", "bob"), ("al.ice", "al_dot_ice"), ("root.x", "root_dot_x"))
    },
    "no queue can be called machine$": (
        user(),
        a_request(user=User("machine$")),
        RuleRefusal(QUEUE_NAME_RULE),
    ),
    # A fixed queue.
    "dots in a fixed value separate queues": (fixed("p.x"), a_request(), Found("root.p.x")),
    **{
        f"a fixed value is lower case: {value}": (fixed(value), a_request(), Found("root.p.x"))
        for value in ("root.p.x", "ROOT.P.X", "P.X")
    },
    "only the root itself starts a full path": (
        fixed("rootfoo", create=True),
        a_request(),
        Found("root.rootfoo"),
    ),
    "the root itself is a full path": (fixed("root"), a_request(), Found("root")),
    "a fixed value is below its parent": (fixed("x", parent=fixed("p")), a_request(), Found("root.p.x")),
    # The queue that a tag names.
    "a tag may name a queue": (tag("namespace"), tagged(namespace="de.v"), Found("root.de_dot_v")),
    "a tag may be a path": (tag("namespace"), tagged(namespace="root.p.x"), Found("root.p.x")),
    "case of tag names does not count": (tag("NameSpace"), tagged(NAMESPACE="dev"), Found("root.dev")),
    "without the tag there is no match": (tag("t"), tagged(), NO_TAG),
    "an empty tag has no match": (tag("t"), tagged(t=""), NO_TAG),
    # Parents and filters.
    "a chain of rules makes a path from the outermost to the rule itself": (
        user(parent=RuleConfig(name="tag", value="t", create=True, parent=fixed("p"))),
        tagged(t="team"),
        Found("root.p.team.bob"),
    ),
    "a parent that is a leaf is a failure, with the recorded words": (
        user(parent=tag("t")),
        tagged(t="a"),
        RuleRefusal("parent rule returned a leaf queue: root.a"),
    ),
    "a parent without match is no match": (
        user(parent=tag("t")),
        tagged(),
        NoMatch("parent rule tag: the application has no tag t"),
    ),
    "a parent that fails is a failure": (user(parent=tag("t")), tagged(t="a$"), RuleRefusal(QUEUE_NAME_RULE)),
    "a rule that may create its queue does not make its parent rule create one": (
        user(parent=tag("t", create=False)),
        tagged(t="none"),
        NoMatch(f"parent rule tag: {MISSING}"),
    ),
    "the filter is tried before the name is checked": (
        DENY,
        a_request("a$"),
        NoMatch("the filter does not let user bob through"),
    ),
    "a missing queue name is noticed before the filter is tried": (DENY, a_request(), NO_QUEUE_NAMED),
}


@pytest.mark.parametrize(("rule", "application", "expected"), FOUND.values(), ids=FOUND)
def test_a_rule_finds_a_queue_or_says_why_it_does_not(
    rule: RuleConfig, application: PlacementRequest, expected: Outcome
) -> None:
    """A failure ends the placement; without a match the next rule is tried."""
    assert expected == build_rule(rule).place(application, QUEUES)


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
