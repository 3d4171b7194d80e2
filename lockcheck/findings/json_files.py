"""JSON with types, read with errors that name the place; and witnesses as files of it.

The file of a witness has a version; its schema is `witness.schema.json`. Nothing in it belongs to one
process, one run or one version of Python: no thread ids, no byte code, no counts of instructions. The field
`schedule` is for people; `replay` forces the schedule from `stops` and `order`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from reprlib import Repr
from typing import Final, TypeAlias, TypeVar, final

from .findings import Ending, Finding, SchedulingPoint, SourcePlace, Witness, WitnessLock
from .terms import MODES, WITNESSES, Kind, LockUsageError, Rung

SAID_MAX: Final = 20_000
"""How many characters of an error are shown; more is a value that it repeats."""
SHOWN_MAX: Final = 60

_PARTS: Final = Repr()
_PARTS.maxstring = _PARTS.maxother = _PARTS.maxlong = SHOWN_MAX

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
Value = TypeVar("Value")


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


def _parse_object(text: str, where: str) -> Fields:
    """Parse a JSON object.

    Raises:
        LockUsageError: it is not one; the message begins with `where`, and so do those of its fields.
    """
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise LockUsageError(f"{where}:{error.lineno}:{error.colno}: no JSON: {error.msg}") from None
    except RecursionError:
        raise LockUsageError(f"{where}: no JSON: it nests too deep") from None
    except ValueError:
        raise LockUsageError(f"{where}: no JSON: a number has thousands of digits") from None
    return Fields(found, where)


def open_document(text: str, where: str, form: str, version: int) -> Fields:
    """Parse a document that has a format and a version.

    Raises:
        LockUsageError: it is not such a document, or one of another version; the message begins with `where`.
    """
    fields = _parse_object(text, where)
    found = fields.text("format"), fields.number("version")
    if found != (form, version):
        raise LockUsageError(
            f"{where}: {_cut(found[0])} of version {found[1]} is not {form} of version {version}"
        )
    return fields


@final
class Fields:
    """The fields of an object, each read as the type that it must have.

    Raises:
        LockUsageError: from each method: the field is missing or is something else.
    """

    def __init__(self, found: object, where: str) -> None:
        if not isinstance(found, dict):
            raise LockUsageError(f"{where}: {shown(found)} is not an object")
        self._found: dict[str, object] = found
        self.where = where

    def has(self, name: str) -> bool:
        """Return whether there is a field of this name."""
        return name in self._found

    def text(self, name: str) -> str:
        """Return a string."""
        found = self._get(name)
        if not isinstance(found, str):
            raise self.error(name, found, "a string")
        return found

    def text_or_none(self, name: str) -> str | None:
        """Return a string, or `None` if it is null."""
        return None if self._get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        """Return a number that is whole and not negative."""
        found = self._get(name)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise self.error(name, found, "a whole number from 0 on")
        return found

    def number_or_none(self, name: str) -> int | None:
        """Return a number that is whole and not negative, or `None` if it is null."""
        return None if self._get(name) is None else self.number(name)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return a list of numbers that are whole and not negative."""
        found = self._list(name)
        if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in found):
            raise self.error(name, found, "a list of whole numbers from 0 on")
        return tuple(one for one in found if isinstance(one, int))

    def flag(self, name: str) -> bool:
        """Return true or false."""
        found = self._get(name)
        if not isinstance(found, bool):
            raise self.error(name, found, "neither true nor false")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        found = self._list(name)
        if not all(isinstance(one, str) for one in found):
            raise self.error(name, found, "a list of strings")
        return tuple(str(one) for one in found)

    def one(self, name: str) -> Fields:
        """Return the fields of an object in this one."""
        return Fields(self._get(name), f"{self.where}: {name}")

    def each(self, name: str, read: Callable[[Fields], Value]) -> tuple[Value, ...]:
        """Return a list of objects, each read by a function."""
        return tuple(
            read(Fields(one, f"{self.where}: {name}[{at}]")) for at, one in enumerate(self._list(name))
        )

    def choice(self, name: str, choices: Mapping[str, Value]) -> Value:
        """Return the value that a name stands for."""
        found = self.text(name)
        if found not in choices:
            raise self.error(name, found, f"one of {', '.join(choices)}")
        return choices[found]

    def error(self, name: str, found: object, expected: str) -> LockUsageError:
        """Return the error of a field with another value than expected."""
        return LockUsageError(f"{self.where}: {name}: expected {expected}, got {shown(found)}")

    def _get(self, name: str) -> object:
        if name not in self._found:
            raise LockUsageError(f"{self.where}: {name} is missing")
        return self._found[name]

    def _list(self, name: str) -> list[object]:
        found = self._get(name)
        if not isinstance(found, list):
            raise self.error(name, found, "a list")
        return found


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

_RUNGS: Final = {rung.name: rung for rung in (Rung.R2, Rung.R4, Rung.R5)}
_KINDS: Final = {kind.value: kind for kind in (Kind.CYCLE, Kind.DEADLOCK)}


def to_json(witness: Witness) -> str:
    """Return a witness as a document; the same witness gives the same text."""
    return json.dumps(_document(witness), indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, where: str) -> Witness:
    """Return the witness of a document.

    Raises:
        LockUsageError: it is not such a document, or one of another version; the message begins with `where`.
    """
    fields = open_document(text, where, FORMAT, VERSION)
    points = fields.each("stops", read_point)
    order = fields.numbers("order")
    if not 2 <= len(points) <= POINTS_MAX:
        raise fields.error("stops", len(points), f"a number of threads from 2 to {POINTS_MAX}")
    if sorted(order) != list(range(len(points))):
        raise fields.error("order", list(order), f"an order of the {len(points)} threads")
    return Witness(
        fingerprint=fields.text("fingerprint"),
        rung=fields.choice("rung", _RUNGS),
        kind=fields.choice("kind", _KINDS),
        text=fields.text("text"),
        points=points,
        order=order,
        aside=fields.texts("aside"),
    )


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


def _document(witness: Witness) -> dict[str, JsonValue]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": witness.fingerprint,
        "rung": witness.rung.name,
        "kind": witness.kind.value,
        "text": witness.text,
        "stops": [json_of_point(point) for point in witness.points],
        "order": list(witness.order),
        "aside": list(witness.aside),
        "schedule": list(_schedule(witness)),
    }


def _schedule(witness: Witness) -> Iterable[JsonValue]:
    for at, lock, taken in witness.steps:
        yield f"{witness.points[at].role} {'takes' if taken else 'waits for'} {lock} at {lock.place}"


def json_of_point(point: SchedulingPoint) -> dict[str, JsonValue]:
    """Return a scheduling point as JSON values."""
    return {
        "unit": point.execution,
        "role": point.role,
        "held": [_lock(held) for held in point.held],
        "wanted": _ending(point.wanted) if isinstance(point.wanted, Ending) else _lock(point.wanted),
        "occurrence": point.occurrence,
        "late": point.late,
    }


def read_point(fields: Fields) -> SchedulingPoint:
    """Return the scheduling point of JSON values."""
    return SchedulingPoint(
        execution=fields.text("unit"),
        role=fields.text("role"),
        held=fields.each("held", _read_lock),
        wanted=_read_wanted(fields.one("wanted")),
        occurrence=fields.number_or_none("occurrence"),
        late=fields.flag("late"),
    )


def _lock(witness_lock: WitnessLock) -> dict[str, JsonValue]:
    return {
        "number": witness_lock.number,
        "lock": witness_lock.lock,
        "key": witness_lock.key,
        "mode": witness_lock.mode,
        **asdict(witness_lock.place),
    }


def _ending(ending: Ending) -> dict[str, JsonValue]:
    signal: dict[str, JsonValue] = {} if ending.what is None else {"signal": ending.what}
    return {"end_of": ending.role, **signal, **asdict(ending.place)}


def _read_wanted(fields: Fields) -> WitnessLock | Ending:
    if fields.has("end_of"):
        what = fields.text("signal") if fields.has("signal") else None
        return Ending(fields.text("end_of"), _read_place(fields), what)
    return _read_lock(fields)


def _read_lock(fields: Fields) -> WitnessLock:
    return WitnessLock(
        number=fields.number("number"),
        lock=fields.text("lock"),
        key=fields.text_or_none("key"),
        mode=fields.choice("mode", MODES),
        place=_read_place(fields),
    )


def _read_place(fields: Fields) -> SourcePlace:
    return SourcePlace(
        fields.text("file"), fields.text("function"), fields.text("source"), fields.number("line")
    )
