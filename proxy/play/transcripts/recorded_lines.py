"""The parts of a line of a recording besides the request: time, partition, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from ....model.applications.effects import TimerKind
from ....model.errors import LicorneError
from ....model.policies.policies import PolicyFacts
from ....model.state.host import (
    ApplicationTimer,
    Expiry,
    Inspection,
    QueueCleaning,
    QuotaCheck,
    RetryAsks,
    TimerAction,
)
from ....model.state.partition_state import BrokenKind
from ....model.values.documents import Document, Json
from ....model.values.messages import LookedUp, LookUpFailure
from ....model.values.states import ManagerState
from ...core.recording.partition_turns import STEPS
from ...core.recording.policy_answers import read_policies, read_turn
from ...core.recording.recording import FORMAT_VERSION
from ...core.recording.turn_documents import AskedLater, TakenAnswer, read_answer, read_how_asked, read_taken

T = TypeVar("T")

RECORDED_KEYS: Final = frozenset(
    {"answers", "at", "failed", "groups", "halted", "older", "only"}
    | {"partition", "partitions", "policies", "predicates", "taken"}
)
"""The keys that a line with a time may have besides its verb. Without others `predicates` is a verb."""
RECORDED_VERBS: Final = ("timer", "step", "quarantine", "retire", "answer", "manager", "outcome")
"""The verbs that only lines with a time may have."""

_TIMERS: Final[dict[str, TimerAction]] = {
    type(action).__name__: action
    for action in (QueueCleaning(), RetryAsks(), Inspection(), QuotaCheck(), Expiry())
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The parts of a line besides its verb."""

    at_ns: int
    partition: int | None = None
    answers: tuple[str | int | None, ...] = ()
    taken: tuple[TakenAnswer, ...] = ()
    is_halted: bool = False
    is_older: bool = False
    has_failed: bool = False
    asked: AskedLater | bool = False
    """How the new partitions of the change ask predicates."""
    groups: Mapping[str, LookedUp] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    policies: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    """The answers of policies, by policy and method."""

    def number(self) -> int:
        """Return the number of the partition.

        Raises:
            LicorneError: The line does not name a partition.
        """
        if self.partition is None:
            raise LicorneError("a line with `at` and this verb needs a `partition`")
        return self.partition


@dataclass(frozen=True, slots=True)
class Header:
    """The body of `recording`, the first line of each file."""

    file: int
    """The number of the file; the first one is 1."""
    reservations: bool
    """Whether the scheduler reserved nodes."""
    is_anonymous: bool = False
    """Whether names are pseudonyms."""
    policies: Mapping[str, PolicyFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuarantineLine:
    """The body of `quarantine`."""

    kind: BrokenKind
    name: str
    reason: str


class ManagerLine(NamedTuple):
    """The body of `manager`."""

    rm_id: str
    state: ManagerState
    """Paused or Stopped."""
    reason: str


def read_recorded(document: Document) -> Recorded:
    """Read the parts of a line besides its verb.

    Raises:
        LicorneError: A value is of the wrong kind; the text names it.
    """
    numbers = _of(document, "partitions", dict, default={})
    return Recorded(
        at_ns=_number(document["at"], "at"),
        partition=_number(document["partition"], "partition") if "partition" in document else None,
        answers=_each(document, "answers", read_answer),
        taken=_each(document, "taken", read_taken),
        is_halted=_of(document, "halted", bool, default=False),
        is_older=_of(document, "older", bool, default=False),
        has_failed="failed" in document,
        asked=_read(read_how_asked, document.get("predicates", False), "predicates"),
        groups={
            user: _groups(user, found) for user, found in _of(document, "groups", dict, default={}).items()
        },
        partitions={name: _number(number, f"partitions[{name}]") for name, number in numbers.items()},
        policies=read_turn(document),
    )


def read_header(body: Json) -> Header:
    """Read the body of `recording`.

    Raises:
        LicorneError: A value is of the wrong kind, or the format is unknown.
    """
    if not isinstance(body, dict):
        raise LicorneError(f"expected an object, not {body!r}")
    if body.get("version") != FORMAT_VERSION:
        raise LicorneError(f"version {body.get('version')!r}: this program reads {FORMAT_VERSION}")
    return Header(
        _number(body.get("file"), "file"),
        _of(body, "reservations", bool, default=True),
        _of(body, "anonymous", bool, default=False),
        read_policies(body),
    )


def read_recorded_verb(verb: str, body: Json) -> object:
    """Read the body of a verb that only lines with a time have.

    Raises:
        LicorneError: The body is of the wrong kind; the text names it.
    """
    match verb:
        case "timer":
            return _read_timer(body)
        case "step":
            if body not in STEPS:
                raise LicorneError(f"{body!r} is not one of {', '.join(STEPS)}")
            return body
        case "quarantine":
            return _read_quarantine(body)
        case "manager":
            return _read_manager(body)
        case "retire":
            if body is not True:
                raise LicorneError(f"not true: {body!r}")
            return body
        case "outcome" if isinstance(body, dict):
            return body
        case _:
            if not isinstance(body, dict) or not isinstance(body.get("rmID"), str):
                raise LicorneError(f"expected an object with the rmID of a resource manager, not {body!r}")
            return body


def _read_timer(body: Json) -> TimerAction:
    if isinstance(body, str) and body in _TIMERS:
        return _TIMERS[body]
    if not isinstance(body, dict) or set(body) != {"applicationID", "serial", "kind", "generation"}:
        raise LicorneError(f"no timer: {body!r}; there are {', '.join(_TIMERS)}, and those of applications")
    kinds = {kind.value: kind for kind in TimerKind}
    if body["kind"] not in kinds:
        raise LicorneError(f"kind: {body['kind']!r} is not one of {', '.join(kinds)}")
    return ApplicationTimer(
        application_id=str(body["applicationID"]),
        serial=_number(body["serial"], "serial"),
        kind=kinds[str(body["kind"])],
        generation=_number(body["generation"], "generation"),
    )


def _read_quarantine(body: Json) -> QuarantineLine:
    kinds = {kind.value: kind for kind in BrokenKind}
    if not isinstance(body, dict) or set(body) != {"kind", "name", "reason"} or body["kind"] not in kinds:
        raise LicorneError(f"expected a kind ({', '.join(kinds)}), a name and a reason: {body!r}")
    return QuarantineLine(kinds[str(body["kind"])], str(body["name"]), str(body["reason"]))


def _read_manager(body: Json) -> ManagerLine:
    states = {state.value: state for state in (ManagerState.PAUSED, ManagerState.STOPPED)}
    match body:
        case {"rmID": str() as rm_id, "state": str() as state, "reason": str() as reason, **more}:
            if state in states and not more:
                return ManagerLine(rm_id, states[state], reason)
    raise LicorneError(f"expected an rmID, a state ({', '.join(states)}) and a reason: {body!r}")


def _groups(user: str, found: Json) -> LookedUp:
    if isinstance(found, list):
        return tuple(map(str, found))
    if isinstance(found, dict) and set(found) == {"failed"}:
        return LookUpFailure(str(found["failed"]))
    raise LicorneError(f"groups[{user}]: expected a list, or why the look-up `failed`, not {found!r}")


def _each(document: Document, key: str, read: Callable[[Json], T]) -> tuple[T, ...]:
    return tuple(_read(read, entry, key) for entry in _of(document, key, list, default=[]))


def _read(read: Callable[[Json], T], value: Json, key: str) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise LicorneError(f"{key}: {error}") from error


def _number(value: Json, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise LicorneError(f"{place}: expected a whole number, not {value!r}")
    return value


def _of(document: Document, key: str, kind: type[T], *, default: T) -> T:
    value = document.get(key, default)
    if not isinstance(value, kind):
        raise LicorneError(f"{key}: expected {kind.__name__}, not {value!r}")
    return value
