"""Which regular expressions the product has: none that a text of a stranger can hold the interpreter with.

Python's matcher backtracks, and lets no other thread run meanwhile. So expressions of configurations are
those of RE2 (`licorne.model.configuration.names`), and our own are literals without exponential time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from re import _constants, _parser  # what an expression is made of
from typing import Any, Final, NamedTuple

import pytest
from support.sources import ROOMS, ROOT, Nodes, modules_of, nodes_of

METHODS: Final = frozenset(
    {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
)

MADE_WHEN_RUNNING: Final = {
    "lockcheck/adoption/naming.py": "names of modules of the program that is checked, by its own settings",
    "model/identifiers.py": "two classes of characters, one of which has a name",
    "proxy/fuzz/reference/plan.py": "a filter of a simulated cluster, which are our own",
    "proxy/views/rest/application.py": "the path of a route of ours, as Starlette has compiled it",
    "proxy/views/rest/responses.py": "likewise",
    "proxy/play/simulation/record.py": "an escaped name between two conditions of one character",
}
"""Modules with an expression that is not a literal, and what it is made of."""

REPEATS_OF_REPEATS: Final = {
    "lockcheck/findings/findings.py": "each round begins with a sign that is not a digit",
    "lockcheck/locks/factories.py": "each round ends with a dot, which a name has not",
    "lockcheck/order/text.py": "each round begins with a hyphen, which a name has not",
    "proxy/core/resolvers/ldap.py": "a round ends with a plus sign that is not escaped, or begins with a dot",
    "proxy/play/simulation/workloads/swf.py": "each round begins with a colon, which a property has not",
}
"""Modules with a literal that repeats a repeat, and why a text has one division into rounds alone."""


class Found(NamedTuple):
    """A use of `re` in the product."""

    file: str
    expression: str | bytes | None
    """`None`: it is not a literal."""
    flags: int


def _literal(node: ast.expr) -> str | bytes | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str | bytes) else None


def _flags(call: ast.Call) -> int:
    texts = (ast.unparse(argument) for argument in [*call.args[1:], *(word.value for word in call.keywords)])
    names = [name for text in texts for name in re.findall(r"\bre\.([A-Z]+)\b", text)]
    return sum(int(getattr(re, name)) for name in names)


def uses(nodes: Nodes, file: str = "module.py") -> Iterator[Found]:
    """Yield each call of a function of `re` in a module."""
    for node in nodes.of(ast.Call, ast.ImportFrom):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)) if name in METHODS:
                yield Found(file, _literal(node.args[0]), _flags(node))
            case ast.ImportFrom(module="re") | ast.ImportFrom(module="fnmatch"):
                yield Found(file, None, 0)
            case _:
                pass


@cache
def in_the_product() -> list[Found]:
    """Return all uses in the product."""
    files = [path for room in ROOMS for path in modules_of(room)]
    return [found for path in files for found in uses(nodes_of(path), path.relative_to(ROOT).as_posix())]


def has_repeat_of_repeat(tree: Any, *, inside: bool = False) -> bool:
    """Return whether an expression repeats, without a bound, what repeats something without a bound.

    A possessive repeat gives nothing back, so that there is one way to match it.
    """
    for operation, argument in tree:
        repeats = operation in {_constants.MAX_REPEAT, _constants.MIN_REPEAT} and argument[1] > 100
        if repeats and inside:
            return True
        below = argument if isinstance(argument, tuple | list) else ()
        for part in below:
            branches = part if isinstance(part, list) else [part]
            for branch in branches:
                if isinstance(branch, _parser.SubPattern) and has_repeat_of_repeat(
                    branch, inside=inside or repeats
                ):
                    return True
    return False


def test_expressions_that_are_no_literals_are_those_of_the_list() -> None:
    """What comes from a configuration or from a stranger is compiled by `compile_pattern`."""
    assert MADE_WHEN_RUNNING.keys() == {found.file for found in in_the_product() if found.expression is None}


@pytest.mark.parametrize(
    "source", ["re.search(text, name)", "re.compile(f'{a}+')", "from fnmatch import fnmatch"]
)
def test_the_guard_sees_what_is_no_literal(source: str) -> None:
    assert [None] == [found.expression for found in uses(Nodes(ast.parse(source)))]


def test_a_repeat_of_a_repeat_is_one_of_the_list() -> None:
    """Of others nobody has shown that they take no exponential time."""
    literals = [found for found in in_the_product() if found.expression is not None]

    files = {
        found.file for found in literals if has_repeat_of_repeat(_parser.parse(found.expression, found.flags))
    }
    assert REPEATS_OF_REPEATS.keys() == files


@pytest.mark.parametrize(
    ("text", "expected"), [("(a+b)*", True), ("(?:a|(b*))+", True), ("a+b*", False), ("(a++b)*", False)]
)
def test_the_guard_sees_a_repeat_of_a_repeat(text: str, expected: bool) -> None:  # noqa: FBT001
    assert expected is has_repeat_of_repeat(_parser.parse(text))
