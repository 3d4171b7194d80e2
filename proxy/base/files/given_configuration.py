"""A queue configuration as a program gives it: a text, the path of a file, or a mapping."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from ....model.configuration.reader import DEFAULT_SOURCE, Report, inspect, load
from ....model.errors import RequestError
from .input_files import read_text

GivenConfiguration: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"
"""YAML text, a path such as `pathlib.Path` of a file with it, or the mapping that such a text is read as."""

_FILE_NAMES: Final = (".yaml", ".yml", ".json")
_DEPTH_MAX: Final = 100


def configuration_text(given: GivenConfiguration) -> str:
    """Return the YAML text of a configuration; a file is read now, and not again when it changes.

    Raises:
        LicorneError: A file cannot be read, or is refused; a mapping has what YAML has not; or it is neither
            of the three.
    """
    match given:
        case str():
            if given.endswith(_FILE_NAMES) and "\n" not in given and ":" not in given.removeprefix("C:"):
                raise RequestError(
                    f"configuration={given!r:.200} is the name of a file: give pathlib.Path({given!r:.200}), "
                    "or the text that is in it"
                )
            return given
        case os.PathLike():
            text = read_text(Path(given))
            load(text, source=str(given))  # Its errors name the file; those of a registration cannot.
            return text
        case Mapping():
            return _dumped(given)
        case _:
            raise RequestError(
                f"configuration: expected YAML text, a path or a mapping, "
                f"got {type(given).__name__} {given!r:.200}"
            )


def inspect_configuration(
    given: GivenConfiguration, source: str | None = None, *, node_types: Collection[str] | None = None
) -> Report:
    """Report everything about a configuration, as `licorne validate` does.

    Args:
        given: The configuration.
        source: Its name in messages; the path of a file unless it is given.
        node_types: The resource types that nodes have, if that is known; they are not spelling errors.

    Raises:
        LicorneError: As for `configuration_text`.
    """
    if source is None:
        source = os.fspath(given) if isinstance(given, os.PathLike) else DEFAULT_SOURCE
    text = read_text(Path(given)) if isinstance(given, os.PathLike) else configuration_text(given)
    return inspect(text, source, node_types=node_types)


def _dumped(given: Mapping[str, object]) -> str:
    """Return a mapping as YAML text; the errors of the configuration are in the lines of that text."""
    import yaml  # noqa: PLC0415 - it takes 20 ms, and most programs give a text

    text: str = yaml.safe_dump(_plain(given, "configuration", 0), sort_keys=False, allow_unicode=True)
    return text


def _plain(value: object, place: str, depth: int) -> object:
    """Return a copy of a value that consists of what YAML has, so that nothing in it is an alias.

    Raises:
        RequestError: Something in it is of another type, or it is nested too deeply.
    """
    if depth > _DEPTH_MAX:
        raise RequestError(f"{place:.200}: nested more than {_DEPTH_MAX} deep")
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)
        case Mapping():
            return {
                _plain(key, place, depth + 1): _plain(entry, f"{place}.{key}", depth + 1)
                for key, entry in value.items()
            }
        case list() | tuple():
            return [_plain(entry, f"{place}[{number}]", depth + 1) for number, entry in enumerate(value)]
        case _:
            raise RequestError(
                f"{place:.200}: expected a text, a number, a list or a mapping, "
                f"got {type(value).__name__} {value!r:.100}"
            )
