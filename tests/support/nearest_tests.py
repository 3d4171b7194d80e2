"""The test files that import what changed: `python -m support.nearest_tests [path ...]`.

The nearest come first: those that import a changed module themselves, then those that import a module that
imports one, and so on. Without paths the change is what git shows since the last commit. What a test reaches
otherwise, by a command line or by a page that a program reads, is not known here.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from support.sources import ROOMS, ROOT, parsed

TEST_ROOTS: Final = (Path("tests"), Path("tests/bench"), Path("tests/lockcheck/corpus"))
"""The folders from which tests import, as `pythonpath` in pyproject.toml lists them."""


class _Statements(NamedTuple):
    """The imports of a module."""

    run: list[ast.Import | ast.ImportFrom]
    for_types: list[ast.Import | ast.ImportFrom]
    """Those below `if TYPE_CHECKING`."""


def imports_of_all(root: Path) -> dict[Path, set[Path]]:
    """Return the modules of a checkout, each with those that it imports when it runs; paths below the root.

    A name that a package only passes on stands for the module that has it. A test imports each
    `conftest.py` above it.
    """
    paths = [Path("__init__.py"), *(path for folder in (*ROOMS, "tests") for path in _below(root, folder))]
    statements = {path: _statements(parsed((root / path).read_text(encoding="utf-8"))) for path in paths}
    names = {name: path for path in paths for name in _names(path)}
    found = {path: set(_imports(path, statements, names)) for path in paths}
    for path in paths:
        if path.name.startswith("test_"):
            found[path] |= {each / "conftest.py" for each in path.parents} & statements.keys()
    return found


def _below(root: Path, folder: str) -> list[Path]:
    return sorted(path.relative_to(root) for path in (root / folder).rglob("*.py"))


def _statements(tree: ast.Module) -> _Statements:
    found = _Statements([], [])
    nodes: list[tuple[ast.AST, bool]] = [(tree, False)]
    for node, below_types in nodes:
        is_for_types = below_types
        match node:
            case ast.Import() | ast.ImportFrom():
                (found.for_types if is_for_types else found.run).append(node)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                is_for_types = True
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            nodes += [(each, is_for_types) for each in getattr(node, field, ())]
    return found


def _names(path: Path) -> Iterator[str]:
    """Yield the names by which a module is imported."""
    inside = [path.relative_to(root) for root in TEST_ROOTS if path.is_relative_to(root)]
    for place in inside or [Path("licorne") / path]:
        yield ".".join(place.with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path, statements: Mapping[Path, _Statements], names: Mapping[str, Path]) -> Iterator[Path]:
    for node in statements[path].run:
        match node:
            case ast.Import(names=imported):
                yield from (names[each.name] for each in imported if each.name in names)
            case ast.ImportFrom(names=imported):
                owner = _owner(node, path)
                for each in imported:
                    yield from _places(owner, each.name, statements, names)


def _owner(node: ast.ImportFrom, path: Path) -> str:
    """Return the full name of the module or package from which a module imports."""
    if not node.level:
        return node.module or ""
    package = next(_names(path.parents[node.level - 1] / "__init__.py"))
    return f"{package}.{node.module}" if node.module else package


def _places(
    owner: str, name: str, statements: Mapping[Path, _Statements], names: Mapping[str, Path]
) -> Iterator[Path]:
    """Yield the module that has a name, and the packages that pass it on."""
    if (module := names.get(f"{owner}.{name}")) is not None:
        yield module
    elif (module := names.get(owner)) is not None:
        yield module
        if module.name == "__init__.py":
            for node in (*statements[module].run, *statements[module].for_types):
                if isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}:
                    yield from _places(_owner(node, module), name, statements, names)


def nearest_tests(changed: Iterable[Path], imports: Mapping[Path, set[Path]]) -> list[Path]:
    """Return the test files that import changed modules, the nearest first, those that changed before all."""
    importers: dict[Path, list[Path]] = {}
    for path, imported in imports.items():
        for each in imported:
            importers.setdefault(each, []).append(path)
    reached = dict.fromkeys(path for path in changed if path in imports)
    nearest = list(reached)
    while nearest:
        nearest = sorted({each for path in nearest for each in importers.get(path, ())} - reached.keys())
        reached.update(dict.fromkeys(nearest))
    return [path for path in reached if path.name.startswith("test_")]


def changed_paths() -> list[Path]:
    """Return the paths that differ from the last commit, new files among them."""
    command = ["git", "status", "--porcelain", "--no-renames", "--untracked-files=all"]
    lines = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()  # noqa: S603 - only asks
    return [Path(line[3:]) for line in lines]


if __name__ == "__main__":
    change = [Path(path) for path in sys.argv[1:]] or changed_paths()
    sys.stdout.writelines(f"{path}\n" for path in nearest_tests(change, imports_of_all(ROOT)))
