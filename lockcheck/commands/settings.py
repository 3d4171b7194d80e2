"""The settings of a project in its `pyproject.toml`: `[tool.lockcheck]`, and the locks that it describes.

    [tool.lockcheck]
    fail_on = "R2,RB"

    [tool.lockcheck.blocking]
    archive = ["file"]
    "*" = ["sleep"]

Rules for blocking calls allow kinds while a lock of a class is held; `*` is any class or
kind. Those of the command line are added to those of the project. Locks of other libraries: `settings.py`.

[[tool.lockcheck.describe]]
class = "fasteners.ReaderWriterLock"
read = ["read_lock", ["acquire_read_lock", "release_read_lock"]]
write = ["write_lock", ["acquire_write_lock", "release_write_lock"]]
reentrant = true
"""

from __future__ import annotations

import argparse
import importlib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..adoption.described import describe
from ..adoption.installation import Adoption
from ..adoption.naming import VARIABLE, Scope
from ..findings import foreign
from ..findings.json_files import read_text, shown
from ..findings.terms import ADOPTED_HELP, DEFAULT_FAIL_ON, LockUsageError, Rung, failing_of

BlockingRules = dict[str, frozenset[str]]
"""The kinds of blocking calls that are allowed while a lock is held, by its class."""
FILE: Final = "pyproject.toml"
_KEYS: Final = ("blocking", "describe", "fail_on")
_DESCRIBED_KEYS: Final = ("class", "acquire", "release", "read", "write", "reentrant", "policy")
_POLICIES: Final = ("writer", "reader")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of a project for lockcheck."""

    blocking: Mapping[str, frozenset[str]] = field(default_factory=dict)
    fail_on: frozenset[Rung] = DEFAULT_FAIL_ON
    descriptions: tuple[Mapping[str, Any], ...] = ()

    def with_given(self, rules: Iterable[str], fail_on: str | None, where: str) -> ProjectSettings:
        """Return the settings with rules in addition, and other rungs that fail, if there are any.

        Args:
            rules: rules for blocking calls, such as `archive=file,sleep`.
            fail_on: names of rungs; if empty, those of the project.
            where: what the rules were given to, for the error.

        Raises:
            LockUsageError: a rule or a rung is unknown.
        """
        return ProjectSettings(
            _with_rules(self.blocking, blocking_rules(rules, where)),
            failing_of(fail_on) if fail_on else self.fail_on,
            self.descriptions,
        )


def project_settings(folder: Path) -> ProjectSettings:
    """Return the settings of the project of a folder: those of the nearest `pyproject.toml` above or in it.

    Raises:
        LockUsageError: the file is not TOML, or a setting has a wrong value.
    """
    path = next((one / FILE for one in (folder, *folder.parents) if (one / FILE).is_file()), None)
    if path is None:
        return ProjectSettings()
    try:
        document: dict[str, object] = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise LockUsageError(f"{path}: no TOML: {error}") from None
    tools = document.get("tool", {})
    table = tools.get("lockcheck", {}) if isinstance(tools, dict) else {}
    where = f"{path}: tool.lockcheck"
    if not isinstance(table, dict):
        raise LockUsageError(f"{where}: {shown(table)} is not a table")
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise LockUsageError(f"{where}: {unknown[0]!r} is not a setting; the settings are {', '.join(_KEYS)}")
    rules, failing = table.get("blocking", {}), table.get("fail_on", "R2")
    if not isinstance(rules, dict):
        raise LockUsageError(f"{where}.blocking: {shown(rules)} is not a table of classes with kinds")
    return ProjectSettings(
        {name: _kinds(kinds, f"{where}.blocking.{name}") for name, kinds in rules.items()},
        _failing(failing, f"{where}.fail_on"),
        descriptions(table.get("describe", []), f"{where}.describe"),
    )


def _kinds(kinds: object, where: str) -> frozenset[str]:
    if not isinstance(kinds, list) or not all(isinstance(kind, str) and kind for kind in kinds):
        raise LockUsageError(f'{where}: {shown(kinds)} is not a list of kinds such as ["sleep"]')
    return frozenset(kinds)


def _failing(text: object, where: str) -> frozenset[Rung]:
    if not isinstance(text, str):
        raise LockUsageError(f"{where}: {shown(text)} is not a text such as R2,RB")
    try:
        return failing_of(text)
    except LockUsageError as error:
        raise LockUsageError(f"{where}: {error}") from None


def blocking_rules(texts: Iterable[str], where: str) -> BlockingRules:
    """Return the rules of texts such as `archive=file,sleep`.

    Args:
        texts: a rule each.
        where: what they were given to, for the error.

    Raises:
        LockUsageError: one of them is not a rule.
    """
    rules: BlockingRules = {}
    for text in texts:
        name, _, kinds = text.partition("=")
        found = frozenset(kind.strip() for kind in kinds.split(",") if kind.strip())
        if not name.strip() or not found:
            raise LockUsageError(f"{where}: {text!r} is not a rule such as archive=file,sleep")
        rules = _with_rules(rules, {name.strip(): found})
    return rules


def _with_rules(rules: Mapping[str, frozenset[str]], more: Mapping[str, frozenset[str]]) -> BlockingRules:
    """Return rules with more of them."""
    return {
        name: rules.get(name, frozenset()) | more.get(name, frozenset())
        for name in dict.fromkeys([*rules, *more])
    }


def add_adopt_option(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--adopt", metavar="WHOSE", help=ADOPTED_HELP)


@contextmanager
def adopting(options: argparse.Namespace) -> Iterator[None]:
    """Adopt locks by the options or the environment while the body runs, in processes that it starts too.

    The locks of other libraries that the project describes are checked meanwhile, in this process.

    Raises:
        LockUsageError: they name nothing, or a description is wrong.
    """
    scope = Scope.of_environment(getattr(options, "adopt", None), "--adopt")
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = scope.text
    try:
        with Adoption(scope, awaits_session=True), described(project_settings(Path.cwd()).descriptions):
            yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def descriptions(tables: object, where: str) -> tuple[Mapping[str, Any], ...]:
    """Return the arguments of `describe` from tables, with `class` and `where`; nothing is imported.

    Args:
        tables: what the project has.
        where: what they are in, for the error.

    Raises:
        LockUsageError: they are not tables, or a value is wrong.
    """
    if not isinstance(tables, list):
        raise LockUsageError(f"{where}: {shown(tables)} is not a list of tables")
    return tuple(_description(table, f"{where}[{number}]") for number, table in enumerate(tables))


def _description(table: object, where: str) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise LockUsageError(f"{where}: {shown(table)} is not a table")
    unknown = sorted(table.keys() - set(_DESCRIBED_KEYS))
    if unknown:
        raise LockUsageError(
            f"{where}: {unknown[0]!r} is not a setting; the settings are {', '.join(_DESCRIBED_KEYS)}"
        )
    lock_class = table.get("class")
    if not isinstance(lock_class, str) or "." not in lock_class:
        raise LockUsageError(
            f"{where}.class: {shown(lock_class)} is not a class such as package.module.Class"
        )
    for key in ("acquire", "release"):
        if key in table and not isinstance(table[key], str):
            raise LockUsageError(f"{where}.{key}: {shown(table[key])} is not a name of a method")
    if not isinstance(table.get("reentrant", False), bool):
        raise LockUsageError(f"{where}.reentrant: {shown(table['reentrant'])} is neither true nor false")
    if table.get("policy", "writer") not in _POLICIES:
        raise LockUsageError(f"{where}.policy: {shown(table['policy'])} is neither writer nor reader")
    ways = {key: _ways(table[key], f"{where}.{key}") for key in ("read", "write") if key in table}
    return {**table, **ways, "where": where}


def _ways(value: object, where: str) -> list[str | tuple[str, str]]:
    ways: list[str | tuple[str, str]] = []
    for way in value if isinstance(value, list) else [value]:
        if isinstance(way, str):
            ways.append(way)
        elif isinstance(way, list) and [str, str] == [type(name) for name in way]:
            ways.append((way[0], way[1]))
        else:
            raise LockUsageError(f"{where}: {shown(way)} is neither a method nor a pair of methods")
    return ways


def described(found: Iterable[Mapping[str, Any]]) -> ExitStack:
    """Describe classes, which imports their modules, until the result is closed.

    Raises:
        LockUsageError: the class or one of its methods does not exist; nothing is described then.
    """
    with ExitStack() as opened:
        for given in found:
            arguments = {key: value for key, value in given.items() if key not in {"class", "where"}}
            try:
                opened.enter_context(describe(_class(given["class"]), **arguments))
            except LockUsageError as error:
                raise LockUsageError(f"{given['where']}: {error}") from None
        return opened.pop_all()


def _class(text: str) -> type:
    module, _, name = text.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # noqa: BLE001 - a module may fail in any way
        raise LockUsageError(f"{text}: {module} cannot be imported: {foreign.shown(error, str)}") from None
    if not isinstance(found, type):
        raise LockUsageError(f"{text} is not a class")
    return found
