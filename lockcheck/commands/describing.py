"""The locks of other libraries that a project describes in `pyproject.toml`, for a program as it is.

[[tool.lockcheck.describe]]
class = "fasteners.ReaderWriterLock"
read = ["read_lock", ["acquire_read_lock", "release_read_lock"]]
write = ["write_lock", ["acquire_write_lock", "release_write_lock"]]
reentrant = true
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from ..adoption.described import describe
from ..findings import foreign
from ..findings.errors import LockUsageError
from ..findings.json_values import shown

_KEYS: Final = ("class", "acquire", "release", "read", "write", "reentrant", "policy")
_POLICIES: Final = ("writer", "reader")


def descriptions(tables: object, where: str) -> tuple[Mapping[str, Any], ...]:
    """Return the arguments of `describe` that tables say, with `class` and `where`; nothing is imported.

    Args:
        tables: what the project has.
        where: what they are in, for the error.

    Raises:
        LockUsageError: they are no tables, or a value is not what it must be.
    """
    if not isinstance(tables, list):
        raise LockUsageError(f"{where}: {shown(tables)} is no list of tables")
    return tuple(_description(table, f"{where}[{number}]") for number, table in enumerate(tables))


def _description(table: object, where: str) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise LockUsageError(f"{where}: {shown(table)} is no table")
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise LockUsageError(f"{where}: {unknown[0]!r} is no setting; there are {', '.join(_KEYS)}")
    lock_class = table.get("class")
    if not isinstance(lock_class, str) or "." not in lock_class:
        raise LockUsageError(f"{where}.class: {shown(lock_class)} is no class such as package.module.Class")
    for key in ("acquire", "release"):
        if key in table and not isinstance(table[key], str):
            raise LockUsageError(f"{where}.{key}: {shown(table[key])} is no name of a method")
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
        LockUsageError: there is no such class, or it has no such methods; none is described then.
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
        raise LockUsageError(f"{text} is no class")
    return found
