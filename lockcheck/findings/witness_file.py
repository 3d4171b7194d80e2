"""Witnesses as files: JSON with a version, the schema of which is `witness.schema.json`.

Nothing in it belongs to one process, one run or one version of Python: no thread ids, no byte code, no
counts of instructions. The field `schedule` is for people; `replay` forces the schedule from `stops` and
`order`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from .evidence import MODES, Kind, Rung
from .findings import Ending, Finding, SchedulingPoint, SourcePlace, Witness, WitnessLock
from .json_values import Fields, JsonValue, open_document, read_text

FOLDER: Final = Path("lockcheck-witnesses")
"""The default folder for replay files."""
FORMAT: Final = "licorne.lockcheck.witness"
VERSION: Final = 1
POINTS_MAX: Final = 64
"""A file that names more threads is refused: no deadlock that is searched for has so many."""

_RUNGS: Final = {rung.name: rung for rung in (Rung.R2, Rung.R3, Rung.R4, Rung.R5)}
_KINDS: Final = {kind.value: kind for kind in (Kind.CYCLE, Kind.DEADLOCK)}


def to_json(witness: Witness) -> str:
    """Return a witness as a document; the same witness gives the same text."""
    return json.dumps(_document(witness), indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, where: str) -> Witness:
    """Return the witness of a document.

    Raises:
        LockUsageError: it is no such document, or one of another version; the message begins with `where`.
    """
    fields = open_document(text, where, FORMAT, VERSION)
    points = fields.each("stops", read_point)
    order = fields.numbers("order")
    if not 2 <= len(points) <= POINTS_MAX:
        raise fields.error("stops", len(points), f"no number of threads from 2 to {POINTS_MAX}")
    if sorted(order) != list(range(len(points))):
        raise fields.error("order", list(order), f"no order of the {len(points)} threads")
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
        LockUsageError: the file cannot be read, or is no witness.
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
        witness: how to reach it; if there is none, no file is written.
        folder: where the file is written to; if there is none, no file is written.
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
