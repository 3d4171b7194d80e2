"""Every decision by a setting of the configuration names each of its values.

A value that is added to an enumeration would otherwise be accepted, and then do what another one does: no
type checker finds an `if ... else`. So a `match` alone looks at the values, with `assert_never` at its end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from typing import Final

import pytest
from support.sources import ROOT, Nodes, modules_of, nodes_of, text_of

from licorne.model.configuration import policies, schema

ROOMS: Final = ("actors", "model", "proxy")
SETTINGS: Final = frozenset(
    name
    for module in (policies, schema)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Enum) and value is not Enum
)


def open_decisions(nodes: Nodes) -> Iterator[int]:
    """Yield the lines that decide by some value of a setting, and not by all of them."""
    for node in nodes.of(ast.Compare, ast.Match, ast.Dict):
        match node:
            case ast.Compare() if any(map(names_a_value, ast.walk(node))):
                yield node.lineno
            case ast.Match() if any(
                names_a_value(part) for case in node.cases for part in ast.walk(case.pattern)
            ):
                if "assert_never" not in ast.unparse(node.cases[-1]):
                    yield node.lineno
            case ast.Dict() if any(map(names_a_value, filter(None, node.keys))):
                yield node.lineno


def names_a_value(node: ast.AST) -> bool:
    """Return whether an expression is a value of a setting, or what it is called in the file."""
    if isinstance(node, ast.Attribute) and node.attr == "value":
        node = node.value
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in SETTINGS


@pytest.mark.parametrize("room", ROOMS)
def test_each_decision_by_a_setting_names_all_its_values(room: str) -> None:
    """What decides by `is` asks a property of the setting, which has the `match`."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules_of(room)
        if any(name in text_of(path) for name in SETTINGS)
        for line in open_decisions(nodes_of(path))
    ]

    assert found == []


def test_all_settings_are_looked_at() -> None:
    """Those of queues, of nodes and of preemption."""
    assert {"PreemptionPolicy", "VictimJobs", "Overrun"} <= SETTINGS
    assert len(SETTINGS) == 9


@pytest.mark.parametrize(
    "source",
    [
        "a if policy is PreemptionPolicy.FENCE else b",
        "policy is not schema_of(x) or policy != VictimJobs.PARTS",
        "text == VictimJobs.WHOLE.value",
        "policy in {PreemptionPolicy.FENCE, PreemptionPolicy.DISABLED}",
        "match policy:\n    case PreemptionPolicy.FENCE:\n        f()",
        "match policy:\n    case Overrun.END | Overrun.EXTEND:\n        f()\n    case _:\n        g()",
        "{PreemptionPolicy.FENCE: 1, PreemptionPolicy.DEFAULT: 2}[policy]",
    ],
)
def test_an_open_decision_is_found(source: str) -> None:
    """In each of the forms in which one was found or may be written."""
    assert list(open_decisions(Nodes(ast.parse(source)))) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "match policy:\n    case Overrun.END:\n        f()\n    case _:\n        assert_never(policy)",
        "policy: PreemptionPolicy = PreemptionPolicy.DEFAULT",
        "policy.is_fence",
        "{'default': PreemptionPolicy.DEFAULT}",
    ],
)
def test_what_names_all_values_is_not_found(source: str) -> None:
    """Nor what reads a value or has one as its default."""
    assert list(open_decisions(Nodes(ast.parse(source)))) == []
