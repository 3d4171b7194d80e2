"""Rules about placement rules; `§` marks where an error is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import below_root, errors_at_marks

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


@pytest.mark.parametrize("entry", ["", "b b", "!x", "99test", "a[b", "(", "*", "x{2}{3}", "(?=a)"])
@pytest.mark.parametrize(("kind", "key"), [("user", "users"), ("group", "groups")])
def test_a_single_filter_entry_is_a_name_or_an_expression(kind: str, key: str, entry: str) -> None:
    """Anything else matches no user; reported at the entry."""
    text = with_rules(f"{{name: user, filter: {{{key}: [§'{entry}']}}}}")

    (said,) = errors_at_marks(text)

    assert said.startswith(f"invalid rule filter {kind} list is not a proper list or regexp: {entry!r}")


@pytest.mark.parametrize(
    "rule",
    [
        # Any identifier may name a rule: whether there is such a rule is a warning.
        *(f"{{name: {name}}}" for name in ("user", "User", "PROVIDED", "Something", "_x")),
        # Filter types are known in any case; without a type a filter allows.
        *(
            f"{{name: user, filter: {{type: {kind}}}}}"
            for kind in ("''", "allow", "deny", "ALLOW", "Deny", "~")
        ),
        # Users may have signs that groups have not, and an expression at least one sign that no name has.
        *(
            f"{{name: user, filter: {{users: [{name}]}}}}"
            for name in ("a@b", "user@name@", "'username$$'", "'name*regexp'", "'system:serviceaccounts:a:b'")
        ),
        *(f"{{name: user, filter: {{users: ['{expression}']}}}}" for expression in ("dev[0-9]", "^$")),
        # Entries of longer lists are not checked: as in the recorded core, they are warnings.
        "{name: user, filter: {users: ['b b', '!x'], groups: []}}",
        # Fixed rules lead to queues that are there or made; one that does not begin with a fixed rule
        # cannot be checked.
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
        (
            "{name: user, create: true, parent: {name: tag, value: t, create: true, "
            "parent: {name: FixEd, value: zz, create: true}}}"
        ),
        "{name: user, parent: {name: tag, value: t, parent: {name: fixed, value: p}}, create: true}",
    ],
)
def test_a_rule_that_can_be_used_is_allowed(rule: str) -> None:
    """Names, filters and the queues that fixed rules name."""
    assert [] == errors_at_marks(with_rules(rule))


@pytest.mark.parametrize(
    ("rule", "chain", "path", "hint"),
    [
        ("{name: fixed, value: §zz}", "fixed", "root.zz", ""),
        ("{name: fixed, value: §root.p.y2}", "fixed", "root.p.y2", ""),
        ("{name: FIXED, value: §zz}", "FIXED", "root.zz", ""),
        ("{name: fixed, value: §Bigg}", "fixed", "root.Bigg", "; did you mean 'Big'?"),
        # Queues are looked up in lower case, as in the recorded core: those with capitals are not found.
        ("{name: fixed, value: §big}", "fixed", "root.big", "; did you mean 'Big'?"),
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


RULES: Final[dict[str, tuple[str, ...]]] = {
    "a rule without a name is reported": (
        with_rules("§{create: true}"),
        "invalid rule name '', a name must be a valid identifier",
    ),
    "other filter types are reported with the word that was meant, in parent rules too": (
        with_rules("{name: user, filter: {type: §alow}, parent: {name: user, filter: {type: §none}}}"),
        "invalid rule filter type alow, filter type must be either '', allow or deny; did you mean 'allow'?",
        "invalid rule filter type none, filter type must be either '', allow or deny",
    ),
    "an expression that cannot be read is reported with the reason": (
        with_rules("{name: user, filter: {users: [§'a[b']}}"),
        (
            "invalid rule filter user list is not a proper list or regexp: 'a[b': 'a[b' is not a regular "
            "expression: missing ]: [b"
        ),
    ),
    "a name that only a user can have is no group": (
        with_rules("{name: user, filter: {groups: [§a@b]}}"),
        "invalid rule filter group list is not a proper list or regexp: 'a@b'",
    ),
    **{
        f"a fixed rule to the parent {path} is refused: only leaves hold applications": (
            with_rules(f"{{name: fixed, value: §{value}}}"),
            f"placement rule no. #0 (fixed) references a queue ({path}) which is not a leaf",
        )
        for value, path in (("root", "root"), ("p", "root.p"))
    },
    **{
        f"no queue is made below the leaf {leaf} by {chain}": (
            with_rules(rule),
            (
                f"placement rule no. #0 ({chain}) references queues below (root.{path}) which cannot be "
                f"created because the last queue ({leaf}) in the hierarchy is a leaf"
            ),
        )
        for rule, chain, path, leaf in (
            ("{name: fixed, value: §a.new, create: true}", "fixed", "a.new", "a"),
            ("{name: user, create: true, parent: {name: fixed, value: §a}}", "fixed->user", "a", "a"),
            # A queue with children is taken for a leaf here unless it says `parent: true`.
            ("{name: user, create: true, parent: {name: fixed, value: §k}}", "fixed->user", "k", "k"),
        )
    },
    "only the outermost fixed rule may be qualified": (
        with_rules("{name: fixed, value: §root.p.x, parent: {name: fixed, value: p}}"),
        "illegal fully qualified 'fixed' rule with value root.p.x",
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_placement_rules_are_checked(case: str) -> None:
    """Names, filters and the queues that fixed rules name; rules are counted from 0."""
    text, *said = RULES[case]

    assert said == errors_at_marks(text)
