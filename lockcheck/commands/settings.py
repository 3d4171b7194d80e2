"""The settings of a project in its `pyproject.toml`: `[tool.lockcheck]`.

    [tool.lockcheck]
    fail_on = "R2,RB"

    [tool.lockcheck.blocking]
    archive = ["file"]
    "*" = ["sleep"]

Rules for blocking calls allow kinds while a lock of a class is held; `*` is any class or
kind. Those of the command line are added to those of the project.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..adoption.installation import Adoption
from ..adoption.naming import VARIABLE, Scope
from ..findings.json_files import read_text, shown
from ..findings.terms import ADOPTED_HELP, DEFAULT_FAIL_ON, LockUsageError, Rung, failing_of

BlockingRules = dict[str, frozenset[str]]
"""The kinds of blocking calls that are allowed while a lock is held, by its class."""
FILE: Final = "pyproject.toml"
_KEYS: Final = ("blocking", "fail_on")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of a project for lockcheck."""

    blocking: Mapping[str, frozenset[str]] = field(default_factory=dict)
    fail_on: frozenset[Rung] = DEFAULT_FAIL_ON

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

    Raises:
        LockUsageError: they name nothing.
    """
    scope = Scope.of_environment(getattr(options, "adopt", None), "--adopt")
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = scope.text
    try:
        with Adoption(scope, awaits_session=True):
            yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
