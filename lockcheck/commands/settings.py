"""The settings of a project: what `[tool.lockcheck]` of its `pyproject.toml` says.

    [tool.lockcheck]
    fail_on = "R2,RB"

    [tool.lockcheck.blocking]
    archive = ["file"]
    "*" = ["sleep"]

Rules for blocking calls say which kinds are allowed while a lock of a class is held; `*` is any class or
kind. Those of the command line are added to those of the project. Locks of other libraries: `describing.py`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..findings.errors import LockUsageError
from ..findings.evidence import DEFAULT_FAIL_ON, Rung, failing_of
from ..findings.json_values import read_text, shown
from .describing import descriptions

BlockingRules = dict[str, frozenset[str]]
"""The kinds of blocking calls that are allowed while a lock is held, by its class."""

FILE: Final = "pyproject.toml"
_KEYS: Final = ("blocking", "describe", "fail_on")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What a project says of lockcheck."""

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
        LockUsageError: the file is no TOML, or a setting is not what it must be.
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
        raise LockUsageError(f"{where}: {shown(table)} is no table")
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise LockUsageError(f"{where}: {unknown[0]!r} is no setting; there are {', '.join(_KEYS)}")
    rules, failing = table.get("blocking", {}), table.get("fail_on", "R2")
    if not isinstance(rules, dict):
        raise LockUsageError(f"{where}.blocking: {shown(rules)} is no table of classes with kinds")
    return ProjectSettings(
        {name: _kinds(kinds, f"{where}.blocking.{name}") for name, kinds in rules.items()},
        _failing(failing, f"{where}.fail_on"),
        descriptions(table.get("describe", []), f"{where}.describe"),
    )


def _kinds(kinds: object, where: str) -> frozenset[str]:
    if not isinstance(kinds, list) or not all(isinstance(kind, str) and kind for kind in kinds):
        raise LockUsageError(f'{where}: {shown(kinds)} is no list of kinds such as ["sleep"]')
    return frozenset(kinds)


def _failing(text: object, where: str) -> frozenset[Rung]:
    if not isinstance(text, str):
        raise LockUsageError(f"{where}: {shown(text)} is no text such as R2,RB")
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
        LockUsageError: one of them is no rule.
    """
    rules: BlockingRules = {}
    for text in texts:
        name, _, kinds = text.partition("=")
        found = frozenset(kind.strip() for kind in kinds.split(",") if kind.strip())
        if not name.strip() or not found:
            raise LockUsageError(f"{where}: {text!r} is no rule such as archive=file,sleep")
        rules = _with_rules(rules, {name.strip(): found})
    return rules


def _with_rules(rules: Mapping[str, frozenset[str]], more: Mapping[str, frozenset[str]]) -> BlockingRules:
    """Return rules with more of them."""
    return {
        name: rules.get(name, frozenset()) | more.get(name, frozenset())
        for name in dict.fromkeys([*rules, *more])
    }
