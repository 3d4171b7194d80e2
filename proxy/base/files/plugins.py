"""Classes of other packages that a command line names: policies, and launchers of workers.

A policy is named by its module, `NAME=module:Class(argument=value)`, or by the package that declares it as an
entry point; a launcher by its entry point.
"""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import Final

from ....model.errors import LicorneError

POLICIES: Final = "licorne.policies"
"""The group of the entry points of a package that has policies."""
LAUNCHERS: Final = "licorne.launchers"
"""The group of the entry points of a package that has launchers for `licorne door`."""

_FORM: Final = "NAME=module:Class, or NAME=module:Class(argument=value)"

Factories = Mapping[str, Callable[[], object]]


def given_policies(options: Sequence[str], package: str = "") -> Factories:
    """Return the policies that a command was given, by name.

    Args:
        options: Each `NAME=module:Class`, with arguments by keyword in parentheses if it has any. A module
            is looked for in the current folder first.
        package: An installed distribution, all of whose entry points of `licorne.policies` are given.

    Raises:
        LicorneError: One has another form, is given twice, or cannot be imported.
    """
    found: dict[str, Callable[[], object]] = {}
    rows = [_row_of(option) for option in options]
    rows += [(name, where, {}) for name, where in _entry_points(package)]
    folder = str(Path.cwd())
    if rows and folder not in sys.path:
        sys.path.insert(0, folder)
    for name, where, arguments in rows:
        if name in found:
            raise LicorneError(f"--policy {name}: given twice")
        policy = _imported(where, "--policy")
        found[name] = partial(policy, **arguments) if arguments else policy
    return found


def installed_launcher(name: str, built_in: Sequence[str]) -> Callable[..., object]:
    """Return what an installed package declares as a launcher of this name.

    Args:
        name: The name of an entry point of `licorne.launchers`.
        built_in: The names of the other launchers, for the error.

    Raises:
        LicorneError: No package has a launcher of this name, or two have one; or it cannot be imported.
    """
    points = entry_points(group=LAUNCHERS)
    places = sorted({point.value for point in points.select(name=name)})
    if not places:
        known = ", ".join([*built_in, *sorted(points.names)])
        raise LicorneError(f"--launcher: expected one of {known}, got {name!r}")
    if len(places) > 1:
        raise LicorneError(f"--launcher {name!r}: expected one package with it, got {' and '.join(places)}")
    return _imported(places[0], f"--launcher {name!r}:")


def _row_of(option: str) -> tuple[str, str, dict[str, object]]:
    name, _, call = option.partition("=")
    where, has_arguments, _ = call.partition("(")
    module, _, attribute = where.partition(":")
    if not (name and module and attribute) or (has_arguments and not call.endswith(")")):
        raise LicorneError(f"--policy {option!r:.200}: expected {_FORM}")
    return name, where, _arguments_of(option, call)


def _arguments_of(option: str, call: str) -> dict[str, object]:
    _, opens, rest = call.partition("(")
    if not opens:
        return {}
    try:
        parsed = ast.parse(f"f({rest}", mode="eval").body
        keywords = parsed.keywords if isinstance(parsed, ast.Call) and not parsed.args else []
        arguments = {str(each.arg): ast.literal_eval(each.value) for each in keywords if each.arg}
    except (SyntaxError, ValueError) as error:
        raise LicorneError(f"--policy {option!r:.200}: expected {_FORM}: {error}") from error
    if not arguments:
        raise LicorneError(f"--policy {option!r:.200}: expected {_FORM}")
    return arguments


def _entry_points(package: str) -> list[tuple[str, str]]:
    if not package:
        return []
    try:
        points = distribution(package).entry_points.select(group=POLICIES)
    except PackageNotFoundError as error:
        raise LicorneError(f"--policy-package {package!r}: no such distribution is installed") from error
    if not points:
        raise LicorneError(f"--policy-package {package!r}: it has no entry points {POLICIES!r}")
    return [(point.name, point.value) for point in points]


def _imported(where: str, option: str) -> Callable[..., object]:
    """Return what `module:Class` names; `option` begins an error."""
    name, _, attribute = where.partition(":")
    try:
        found: object = import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise LicorneError(f"{option} {where}: {_where_it_failed(error)}") from error
    if not callable(found):
        raise LicorneError(f"{option} {where}: expected a class or a function, got {found!r:.100}")
    return found


def _where_it_failed(error: Exception) -> str:
    """Return the last line of a traceback, with the file and the line where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, SyntaxError):
        return f"{text} ({error.filename}:{error.lineno})"
    is_outside = "importlib" in last.filename or last.filename == __file__
    return text if is_outside else f"{text} ({last.filename}:{last.lineno})"
