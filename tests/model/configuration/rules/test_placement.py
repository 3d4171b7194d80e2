"""Rules about placement rules; `§` marks where an error is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import below_root, errors_at_marks, errors_of

QUEUES = """
- {name: a}
- {name: p, parent: true, queues: [{name: x}]}
- {name: k, queues: [{name: y}]}
- {name: Big}
"""


def with_rules(*rules: str) -> str:
    """Return a configuration with leaves a, p.x, k.y and Big, and these rules."""
    return below_root(QUEUES, "placementrules:\n" + "\n".join(f"- {rule}" for rule in rules))


@pytest.mark.parametrize("name", ["9x", "a-b", "a b", "fixed.x", "é"])
def test_the_name_of_a_rule_is_an_identifier(name: str) -> None:
    """Reported at the name, in parent rules too."""
    text = with_rules(f"{{name: §{name}}}", f"{{name: user, parent: {{name: §{name}}}}}")

    assert [f"invalid rule name {name!r}, a name must be a valid identifier"] * 2 == errors_at_marks(text)


def test_a_rule_has_a_name() -> None:
    """Reported at the rule."""
    assert ["invalid rule name '', a name must be a valid identifier"] == errors_at_marks(
        with_rules("§{create: true}")
    )


@pytest.mark.parametrize("name", ["user", "User", "PROVIDED", "Something", "_x"])
def test_rules_may_have_any_identifier_for_a_name(name: str) -> None:
    """Whether there is such a rule is a warning."""
    assert errors_of(with_rules(f"{{name: {name}}}")) == []


def test_a_filter_allows_or_denies() -> None:
    """Reported with the word that was meant, in parent rules too."""
    text = with_rules("{name: user, filter: {type: §alow}, parent: {name: user, filter: {type: §none}}}")

    assert [
        "invalid rule filter type alow, filter type must be either '', allow or deny; did you mean 'allow'?",
        "invalid rule filter type none, filter type must be either '', allow or deny",
    ] == errors_at_marks(text)


@pytest.mark.parametrize("kind", ["''", "allow", "deny", "ALLOW", "Deny", "~"])
def test_filter_types_are_known_in_any_case(kind: str) -> None:
    """Without a type a filter allows."""
    assert errors_of(with_rules(f"{{name: user, filter: {{type: {kind}}}}}")) == []


@pytest.mark.parametrize("entry", ["", "b b", "!x", "99test", "a[b", "(", "*", "x{2}{3}", "(?=a)"])
@pytest.mark.parametrize(("kind", "key"), [("user", "users"), ("group", "groups")])
def test_a_single_filter_entry_is_a_name_or_an_expression(kind: str, key: str, entry: str) -> None:
    """Anything else matches no user; reported at the entry."""
    text = with_rules(f"{{name: user, filter: {{{key}: [§'{entry}']}}}}")

    (said,) = errors_at_marks(text)

    assert said.startswith(f"invalid rule filter {kind} list is not a proper list or regexp: {entry!r}")


def test_an_expression_that_cannot_be_read_says_why() -> None:
    """The reason is at the end of the message."""
    (said,) = errors_at_marks(with_rules("{name: user, filter: {users: [§'a[b']}}"))

    assert said.endswith("'a[b' is no regular expression: a bracket is not closed")


def test_a_group_is_no_user() -> None:
    """Users may have signs that groups have not."""
    assert errors_of(with_rules("{name: user, filter: {users: [a@b]}}")) == []
    assert len(errors_at_marks(with_rules("{name: user, filter: {groups: [§a@b]}}"))) == 1


@pytest.mark.parametrize(
    "users",
    [
        "[user@name@]",
        "['username$$']",
        "['name*regexp']",
        "['system:serviceaccounts:a:b']",
        "['dev[0-9]']",
        "['^$']",
    ],
)
def test_names_and_expressions_are_allowed_alone(users: str) -> None:
    """An expression has at least one sign that no name has."""
    assert errors_of(with_rules(f"{{name: user, filter: {{users: {users}}}}}")) == []


def test_entries_of_longer_lists_are_not_checked() -> None:
    """The recorded core passes over what is no name; it is a warning here."""
    assert errors_of(with_rules("{name: user, filter: {users: ['b b', '!x'], groups: []}}")) == []


@pytest.mark.parametrize(
    "rule",
    [
        "{name: fixed, value: a}",
        "{name: fixed, value: root.p.x}",
        "{name: fixed, value: P.X}",
        "{name: fixed, value: k}",
        "{name: fixed, value: zz, create: true}",
        "{name: fixed, value: p.new.deep, create: true}",
        "{name: fixed, value: k.new, create: true}",
        "{name: fixed, value: x, parent: {name: fixed, value: p}}",
        "{name: user, create: true, parent: {name: fixed, value: p}}",
        "{name: user, create: true, parent: {name: fixed, value: zz}}",
        "{name: user, create: true, parent: {name: fixed, value: root}}",
        "{name: fixed, value: zz, parent: {name: user}}",
        "{name: user, parent: {name: tag, value: t, parent: {name: fixed, value: p}}, create: true}",
    ],
)
def test_fixed_rules_to_queues_that_are_there_or_made_are_allowed(rule: str) -> None:
    """A rule that does not begin with a fixed one cannot be checked."""
    assert errors_of(with_rules(rule)) == []


@pytest.mark.parametrize(
    ("rule", "chain", "path", "hint"),
    [
        ("{name: fixed, value: §zz}", "fixed", "root.zz", ""),
        ("{name: fixed, value: §root.p.y2}", "fixed", "root.p.y2", ""),
        ("{name: FIXED, value: §zz}", "FIXED", "root.zz", ""),
        ("{name: fixed, value: §Bigg}", "fixed", "root.Bigg", "; did you mean 'Big'?"),
        ("{name: fixed, value: §ROOT.P.X}", "fixed", "root.ROOT.P.X", ""),
        ("{name: fixed, value: §rootfoo}", "fixed", "rootfoo", ""),
        ("{name: user, parent: {name: fixed, value: §zz}}", "fixed->user", "root.zz", ""),
        ("{name: fixed, value: §zz, parent: {name: fixed, value: p}}", "fixed->fixed", "root.p.zz", ""),
    ],
)
def test_a_fixed_rule_does_not_lead_to_a_queue_that_is_not_there(
    rule: str, chain: str, path: str, hint: str
) -> None:
    """Unless the rule makes it; rules are counted from 0."""
    text = with_rules("{name: provided}", rule)

    assert [
        f"placement rule no. #1 ({chain}) references non-existing queues ({path}) and create is 'false'{hint}"
    ] == errors_at_marks(text)


def test_queues_are_looked_up_in_lower_case_by_their_exact_spelling() -> None:
    """A queue with capitals in the file is not found, as in the recorded core."""
    (said,) = errors_at_marks(with_rules("{name: fixed, value: §big}"))

    assert "references non-existing queues (root.big)" in said


@pytest.mark.parametrize("value", ["root", "p"])
def test_a_fixed_rule_does_not_end_at_a_parent(value: str) -> None:
    """Only leaves hold applications; `parent: true` tells, as in the recorded core."""
    path = value if value == "root" else f"root.{value}"

    assert [
        f"placement rule no. #0 (fixed) references a queue ({path}) which is not a leaf"
    ] == errors_at_marks(with_rules(f"{{name: fixed, value: §{value}}}"))


@pytest.mark.parametrize(
    ("rule", "chain", "path", "leaf"),
    [
        ("{name: fixed, value: §a.new, create: true}", "fixed", "root.a.new", "a"),
        ("{name: user, create: true, parent: {name: fixed, value: §a}}", "fixed->user", "root.a", "a"),
        ("{name: user, create: true, parent: {name: fixed, value: §k}}", "fixed->user", "root.k", "k"),
    ],
)
def test_no_queue_is_made_below_a_leaf(rule: str, chain: str, path: str, leaf: str) -> None:
    """Whatever the create flag; a queue with children counts as a leaf here unless it says `parent: true`."""
    assert [
        (
            f"placement rule no. #0 ({chain}) references queues below ({path}) which cannot be created "
            f"because the last queue ({leaf}) in the hierarchy is a leaf"
        )
    ] == errors_at_marks(with_rules(rule))


def test_only_the_outermost_fixed_rule_is_qualified() -> None:
    """The others are below it."""
    text = with_rules("{name: fixed, value: §root.p.x, parent: {name: fixed, value: p}}")

    assert ["illegal fully qualified 'fixed' rule with value root.p.x"] == errors_at_marks(text)
