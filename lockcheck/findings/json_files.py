"""Values of this package as JSON and back, with errors that name the place; and witnesses as files of it.

The file of a witness has a version; its schema is `witness.schema.json`. Nothing in it belongs to one
process, one run or one version of Python: no thread ids, no byte code, no counts of instructions. The field
`schedule` is for people; `replay` forces the schedule from `stops` and `order`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from reprlib import Repr
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

from .findings import Finding, Witness
from .terms import WITNESSES, Kind, LockUsageError, Rung

SAID_MAX: Final = 20_000
"""How many characters of an error are shown; more is a value that it repeats."""
SHOWN_MAX: Final = 60

_PARTS: Final = Repr()
_PARTS.maxstring = _PARTS.maxother = _PARTS.maxlong = SHOWN_MAX

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        LockUsageError: it cannot be read, or is not text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LockUsageError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise LockUsageError(
            f"{path}:{line}: byte 0x{error.object[error.start]:02x} is not UTF-8 text"
        ) from None


def said(error: Exception) -> str:
    """Return the text of an error, cut off; one of the system without its number."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return text if len(text) <= SAID_MAX else f"{text[: SAID_MAX // 2]} ... {text[-SAID_MAX // 2 :]}"


def open_document(text: str, where: str, form: str, version: int) -> dict[str, object]:
    """Return the fields of a JSON document that has a format and a version.

    Raises:
        LockUsageError: it is not such a document, or one of another version; the message begins with `where`.
    """
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise LockUsageError(f"{where}:{error.lineno}:{error.colno}: no JSON: {error.msg}") from None
    except RecursionError:
        raise LockUsageError(f"{where}: no JSON: it nests too deep") from None
    except ValueError:
        raise LockUsageError(f"{where}: no JSON: a number has thousands of digits") from None
    has: _Form = value_of(_Form, found, where)
    if (has.format, has.version) != (form, version):
        raise LockUsageError(
            f"{where}: {_cut(has.format)} of version {has.version} is not {form} of version {version}"
        )
    return cast("dict[str, object]", found)


@dataclass(frozen=True, slots=True)
class _Form:
    """What each document has."""

    format: str
    version: int


_NAMES: Final = {
    "Edge.class_edge": "nesting",
    "Edge.execution": "unit",
    "Ending.role": "end_of",
    "Ending.what": "signal",
    "Finding.points": "stops",
    "SchedulingPoint.execution": "unit",
    "Summary.class_edges": "nestings",
    "Witness.points": "stops",
}
"""The names of fields that have others in documents."""
_MAY_LACK: Final = frozenset(
    {"Ending.what", "Summary.acquisitions", "Summary.greenlets", "Summary.unwatched"}
)
"""Fields that a document need not have; they are left out where they are `None` or false."""
_INSIDE: Final = "place"
"""The field of a value of which the fields are among those of the value itself."""
_TEXTS: Final[Mapping[object, str]] = {
    str: "a string",
    int: "a whole number from 0 on",
    bool: "neither true nor false",
    tuple[str, ...]: "a list of strings",
    tuple[int, ...]: "a list of whole numbers from 0 on",
}
_types_of: Final = lru_cache(get_type_hints)


def values_of(thing: object) -> Any:
    """Return a value, made of the dataclasses of this package, as JSON values."""
    if isinstance(thing, Rung):
        return thing.name
    if isinstance(thing, Kind):
        return thing.value
    if isinstance(thing, tuple):
        return [values_of(one) for one in thing]
    if not is_dataclass(thing):
        return thing
    found: dict[str, Any] = {}
    for one in fields(thing):
        full, value = f"{type(thing).__name__}.{one.name}", getattr(thing, one.name)
        if one.name == _INSIDE:
            found |= values_of(value)
        elif (value is not None and value is not False) or full not in _MAY_LACK:
            found[_NAMES.get(full, one.name)] = values_of(value)
    return found


def value_of(kind: Any, found: object, where: str) -> Any:
    """Return the value of a type that JSON values stand for.

    Raises:
        LockUsageError: they stand for no such value; the message begins with `where`, the place.
    """
    if is_dataclass(kind):
        return _object_of(kind, found, where)
    if kind in {Rung, Kind}:
        return _choice({one.name if kind is Rung else one.value: one for one in kind}, found, where)
    if get_origin(kind) is Literal:
        return _choice({one: one for one in get_args(kind)}, found, where)
    if get_origin(kind) is tuple:
        if not isinstance(found, list):
            raise _wrong(where, found, "a list")
        of = get_args(kind)[0]
        if not is_dataclass(of) and not all(_is(of, one) for one in found):
            raise _wrong(where, found, _TEXTS[kind])
        return tuple(value_of(of, one, f"{where}[{at}]") for at, one in enumerate(found))
    if get_origin(kind) is UnionType:
        first, other = get_args(kind)
        if other is NoneType:
            return None if found is None else value_of(first, found, where)
        return value_of(other if isinstance(found, dict) and "end_of" in found else first, found, where)
    if not _is(kind, found):
        raise _wrong(where, found, _TEXTS[kind])
    return found


def _object_of(kind: Any, found: object, where: str) -> Any:
    if not isinstance(found, dict):
        raise LockUsageError(f"{where}: {shown(found)} is not an object")
    given: dict[str, object] = {}
    for one in fields(kind):
        full, of = f"{kind.__name__}.{one.name}", _types_of(kind)[one.name]
        name = _NAMES.get(full, one.name)
        if one.name == _INSIDE:
            given[one.name] = _object_of(of, found, where)
        elif name in found:
            given[one.name] = value_of(of, found[name], f"{where}: {name}")
        elif full not in _MAY_LACK:
            raise LockUsageError(f"{where}: {name} is missing")
    return kind(**given)


def _is(kind: type, found: object) -> bool:
    return type(found) is kind and (kind is not int or cast("int", found) >= 0)


def _choice(choices: Mapping[str, object], found: object, where: str) -> object:
    if value_of(str, found, where) not in choices:
        raise _wrong(where, found, f"one of {', '.join(choices)}")
    return choices[cast("str", found)]


def _wrong(where: str, found: object, expected: str) -> LockUsageError:
    return LockUsageError(f"{where}: expected {expected}, got {shown(found)}")


def shown(found: object) -> str:
    """Return a value as Python writes it; of a long or deep one a part."""
    return _cut(_PARTS.repr(found))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."


FOLDER: Final = Path(WITNESSES)
"""The default folder for replay files."""
FORMAT: Final = "licorne.lockcheck.witness"
VERSION: Final = 1
POINTS_MAX: Final = 64
"""A file that names more threads is refused: no deadlock that is searched for has that many."""


def to_json(witness: Witness) -> str:
    """Return a witness as a document; the same witness gives the same text."""
    schedule = [
        f"{witness.points[at].role} {'takes' if taken else 'waits for'} {lock} at {lock.place}"
        for at, lock, taken in witness.steps
    ]
    document = {"format": FORMAT, "version": VERSION, **values_of(witness), "schedule": schedule}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, where: str) -> Witness:
    """Return the witness of a document.

    Raises:
        LockUsageError: it is not such a document, or one of another version; the message begins with `where`.
    """
    witness: Witness = value_of(Witness, open_document(text, where, FORMAT, VERSION), where)
    count = len(witness.points)
    if witness.rung < Rung.R2:
        raise _wrong(f"{where}: rung", witness.rung.name, "one of R2, R4, R5")
    if witness.kind not in {Kind.CYCLE, Kind.DEADLOCK}:
        raise _wrong(f"{where}: kind", witness.kind.value, "one of cycle, deadlock")
    if not 2 <= count <= POINTS_MAX:
        raise _wrong(f"{where}: stops", count, f"a number of threads from 2 to {POINTS_MAX}")
    if sorted(witness.order) != list(range(count)):
        raise _wrong(f"{where}: order", list(witness.order), f"an order of the {count} threads")
    return witness


def read_witness(path: Path) -> Witness:
    """Return the witness of a file.

    Raises:
        LockUsageError: the file cannot be read, or is not a witness.
    """
    return from_json(read_text(path), str(path))


def write_witness(folder: Path, witness: Witness) -> Path:
    """Write a witness to a folder, which is made where it is missing; return the file.

    The name of the file is the fingerprint, so a confirmed witness replaces the one before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{witness.fingerprint}.json"
    part = folder / f"{witness.fingerprint}.{os.getpid()}.part"  # other processes may confirm the same
    part.write_text(to_json(witness), encoding="utf-8")
    part.replace(path)
    return path


def with_replay(finding: Finding, witness: Witness | None, folder: Path | None) -> Finding:
    """Return a finding with its replay file, or with the reason why none could be written.

    Args:
        finding: a deadlock in which threads are stuck; it has to be broken even if the file cannot be
            written.
        witness: how to reach it; without one no file is written.
        folder: the folder of the file; without one no file is written.
    """
    if witness is None or folder is None:
        return finding
    try:
        return replace(finding, replay=str(write_witness(folder, witness)))
    except (OSError, UnicodeError) as error:
        return replace(finding, why=(*finding.why, f"no replay file could be written: {error}"))
