"""The modules of the project, read and parsed once for all tests of a run."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeVar, cast

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("actors", "lockcheck", "model", "proxy")
"""The folders of the product."""


_Node = TypeVar("_Node", bound=ast.AST)


@cache
def modules_of(room: str) -> Sequence[Path]:
    """Return the paths of the modules of a folder of the checkout, sorted, without generated messages."""
    return [path for path in sorted((ROOT / room).rglob("*.py")) if not path.name.endswith("_pb2.py")]


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


class Nodes:
    """The nodes of a tree by their class."""

    def __init__(self, tree: ast.AST) -> None:
        self._by_class: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in ast.walk(tree):
            self._by_class[type(node)].append(node)

    def of(self, *kinds: type[_Node]) -> Iterator[_Node]:
        """Yield the nodes of these classes, class by class, each in the order of `ast.walk`."""
        for kind in kinds:
            yield from cast("list[_Node]", self._by_class.get(kind, ()))


@cache
def nodes_of(path: Path) -> Nodes:
    """Return the nodes of a module.

    They live until the end of the run, and are a million. So they are excluded from garbage collection, which
    some tests ask for.
    """
    nodes = Nodes(parsed(text_of(path)))
    gc.freeze()
    return nodes


def parsed(source: str) -> ast.Module:
    """Return the tree of a source, in a third of the time: garbage collection would visit each half of it."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()
