"""Read a transcript: the record of what resource managers said, as a simulation plays it.

The format is JSON Lines; each line is an object with one key, the verb. Lines that start with `#` and blank
lines are skipped. `advance` moves the time at which everything below it happens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from google.protobuf import json_format

from ...model.configuration.durations import DurationError, parse_duration_ns
from ...model.configuration.words import did_you_mean
from ..si import si_pb2 as si
from .input_errors import InputError
from .input_files import read_text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NOTHING_DENIED", "DeniedPlacements", "Step", "StepBody", "Transcript", "read_transcript"]

_MESSAGES: Final = {
    "register": si.RegisterResourceManagerRequest,
    "configuration": si.UpdateConfigurationRequest,
    "node": si.NodeRequest,
    "application": si.ApplicationRequest,
    "allocation": si.AllocationRequest,
}
_VERBS: Final = (*_MESSAGES, "schedule", "advance", "confirm", "predicates", "snapshot")


@dataclass(frozen=True, slots=True)
class DeniedPlacements:
    """What the predicate callback refuses: pairs of allocation key and node, or everything."""

    pairs: frozenset[tuple[str, str]]
    everything: bool


NOTHING_DENIED: Final = DeniedPlacements(frozenset(), everything=False)

_Message: TypeAlias = (
    si.RegisterResourceManagerRequest
    | si.UpdateConfigurationRequest
    | si.NodeRequest
    | si.ApplicationRequest
    | si.AllocationRequest
)
StepBody: TypeAlias = _Message | DeniedPlacements | bool | None


@dataclass(frozen=True, slots=True)
class Step:
    """One line that does something.

    The body is a message, the refused placements, for `confirm` whether releases are confirmed
    automatically, and for `schedule` nothing.
    """

    line: int
    at_ns: int
    verb: str
    body: StepBody


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole transcript; `end_ns` is the time after its last line."""

    name: str
    steps: tuple[Step, ...]
    end_ns: int


def read_transcript(path: Path) -> Transcript:
    """Read a transcript.

    Raises:
        InputError: The file cannot be read, or a line is no JSON, has no known verb or a wrong body.
    """
    steps: list[Step] = []
    now_ns = 0
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        verb, body = _verb_and_body(path, line, text)
        if verb == "advance":
            now_ns += _duration_ns(path, line, body)
        elif verb != "snapshot":
            steps.append(Step(line, now_ns, verb, _body(path, line, verb, body)))
    if not steps:
        raise InputError(path, "there is no message in the file")
    return Transcript(path.name, tuple(steps), now_ns)


def _verb_and_body(path: Path, line: int, text: str) -> tuple[str, object]:
    """Return the verb of a line and what stands behind it."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(path, f"no JSON: {error.msg}", line=line, column=error.colno) from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no JSON: {error}", line=line) from error
    if not isinstance(value, dict) or len(value) != 1:
        raise InputError(path, f"an object with one key is wanted here, not {text[:60]!r}", line=line)
    verb, body = next(iter(value.items()))
    if verb not in _VERBS:
        raise InputError(path, f"unknown verb {verb!r}{did_you_mean(verb, _VERBS)}", line=line)
    return verb, body


def _duration_ns(path: Path, line: int, body: object) -> int:
    """Return how far a line moves the time."""
    try:
        duration_ns = parse_duration_ns(str(body))
    except DurationError as error:
        raise InputError(path, f"advance: {error}", line=line) from error
    if duration_ns < 0:
        raise InputError(path, f"advance: {body!r} goes back in time", line=line)
    return duration_ns


def _body(path: Path, line: int, verb: str, body: object) -> StepBody:
    """Return what a line says, checked."""
    if verb == "schedule":
        if body != "all" and (type(body) is not int or body < 0):
            raise InputError(path, f"schedule: {body!r} is neither a number nor 'all'", line=line)
        return None
    if verb == "confirm":
        if body not in {"auto", "manual"}:
            raise InputError(path, f"confirm: {body!r} is neither 'auto' nor 'manual'", line=line)
        return body == "auto"
    if not isinstance(body, dict):
        raise InputError(path, f"{verb}: an object is wanted here, not {str(body)[:60]!r}", line=line)
    if verb == "predicates":
        return _denied_placements(path, line, body)
    message: _Message = _MESSAGES[verb]()
    try:
        json_format.ParseDict(body, message)
    except (json_format.ParseError, RecursionError) as error:
        raise InputError(path, f"{verb}: {error}", line=line) from error
    return message


def _denied_placements(path: Path, line: int, body: dict[str, object]) -> DeniedPlacements:
    """Return the refused placements of a line."""
    deny, everything = body.get("deny", []), body.get("denyAll", False)
    if not isinstance(deny, list) or not isinstance(everything, bool) or set(body) - {"deny", "denyAll"}:
        raise InputError(path, f"predicates: {str(body)[:60]!r} is no table of refusals", line=line)
    pairs = set()
    for entry in deny:
        keys = {"allocationKey", "nodeID"}
        if (
            not isinstance(entry, dict)
            or set(entry) != keys
            or not all(type(v) is str for v in entry.values())
        ):
            raise InputError(path, f"predicates: {str(entry)[:60]!r} is no refusal", line=line)
        pairs.add((entry["allocationKey"], entry["nodeID"]))
    return DeniedPlacements(frozenset(pairs), everything)
