"""Warnings about placement rules, and rules no placement can be made of; `§` marks where one is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import below_root, warnings_at_marks, warnings_of

from licorne.model.configuration.names import QUEUE_NAME_RULE
from licorne.model.configuration.reader import load, unusable_rule_problems


def with_rule(rule: str) -> str:
    """Return a configuration with one rule."""
    return below_root("- {name: a, parent: true}", f"placementrules: [{rule}]")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "{name: §usr}",
            "unknown rule name specified usr, failing placement rule config; did you mean 'user'?",
        ),
        ("{name: §PrimaryGroup}", "unknown rule name specified PrimaryGroup, failing placement rule config"),
        ("{name: §Recovery}", "recovery rule cannot be part of the config, failing placement rule config"),
        (
            "{name: user, parent: {name: §group}}",
            "unknown rule name specified group, failing placement rule config",
        ),
        ("§{name: fixed, create: true}", "a fixed queue rule must have a queue name set"),
        ("§{name: tag}", "a tag queue rule must have a tag name set"),
        ("{name: fixed, create: true, value: §x y.b}", f"{QUEUE_NAME_RULE}: 'x y.b'"),
        (
            "{name: fixed, create: true, value: §root.a.b, parent: {name: user}}",
            "cannot have a fixed queue rule with qualified queue name and a parent rule: root.a.b",
        ),
    ],
)
def test_rules_that_cannot_be_used_are_remarked_on(rule: str, said: str) -> None:
    """One such rule makes all rules of the partition useless when a resource manager registers."""
    assert [f"{said}; the default rule is used instead"] == warnings_at_marks(with_rule(rule))


def test_rules_that_cannot_be_used_are_known_to_those_who_update() -> None:
    """An update with such rules is refused, so it can ask for them."""
    config = load(with_rule("{name: usr}"))

    (problem,) = unusable_rule_problems(config, source="conf.yaml")

    assert (
        "conf.yaml:8:27: partitions[0].placementrules[0].name: unknown rule name specified usr, "
        "failing placement rule config; did you mean 'user'?"
    ) == str(problem)


@pytest.mark.parametrize(
    "rule",
    [
        "{name: Provided, create: true}",
        "{name: user, parent: {name: tag, value: ns}}",
        "{name: FIXED, value: a.b, create: true}",
        "{name: user, filter: {type: deny, users: [bob, dan], groups: ['dev.*']}}",
        "{name: user, filter: {type: Allow}}",
    ],
)
def test_usable_rules_have_no_warnings(rule: str) -> None:
    """Names of rules are known in any case."""
    config = with_rule(rule)

    assert warnings_of(config) == []
    assert unusable_rule_problems(load(config)) == ()


RULES: Final[dict[str, tuple[str, ...]]] = {
    "only fixed and tag rules have a value": (
        with_rule("{name: User, value: §x}"),
        "value has no effect at a user rule",
    ),
    "a list of several filter entries has names only": (
        with_rule("{name: user, filter: {users: [bob, §'b.*'], groups: [§'!x', §'d v']}}"),
        "'b.*' is not a user name and has no effect in a list of several",
        "'!x' is not a group name and has no effect in a list of several",
        "'d v' is not a group name and has no effect in a list of several",
    ),
    "a filter type with a capital is taken for allow": (
        with_rule("{name: user, filter: {type: §Deny, users: [bob]}}"),
        "the filter type Deny is taken for allow: write 'deny' in lower case",
    ),
    "a filter that denies everyone is probably not meant": (
        with_rule("{name: user, filter: {type: §deny}}"),
        "a deny filter without users and groups denies everyone",
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_rules_without_the_effect_they_seem_to_have_are_reported(case: str) -> None:
    """They are allowed all the same."""
    text, *said = RULES[case]

    assert said == warnings_at_marks(text)
