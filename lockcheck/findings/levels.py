"""The level of checking, which a lock's constructor sets, else the session, else the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from .errors import LockUsageError

_TRUE: Final = frozenset({"1", "t", "true"})
_TIMEOUT_SECONDS_DEFAULT: Final = 60.0


class Level(IntEnum):
    """How much is checked."""

    OFF = 0  # the plain types; nothing of this package runs
    ORDER = 1  # declared order, recursion, releases, leaks, real deadlocks
    FULL = 2  # and the learned graph, blocking calls, iterations, stacks
    RECORD = 3  # and every event can be written to a trace
    CONFIRM = 4  # and threads can be paused before they want a lock


def level_of(text: Level | str) -> Level:
    """Return the level of a name: `off`, `order`, `full`, `record` or `confirm`, in any case."""
    if isinstance(text, Level):
        return text
    try:
        return Level[text.strip().upper()]
    except KeyError:
        raise LockUsageError(
            f"{text!r} is no level of checking: off, order, full, record or confirm"
        ) from None


@dataclass(frozen=True, slots=True)
class Environment:
    """The settings of the environment: ours (`LOCKCHECK`), and the variables of the recorded Go core."""

    level: Level
    timeout_seconds: float | None
    """A longer wait for a lock is reported; `None` if there is no limit."""
    exits: bool
    """Whether the process ends, with code 1, at the first finding that fails."""
    order_disabled: bool
    """Whether orders, recursion and cycles are not checked: only real deadlocks and stalls are."""
    max_hold_seconds: float | None = None
    """A lock that is held longer is reported; `None` if there is no limit."""

    @staticmethod
    def read(variables: Mapping[str, str] = os.environ) -> Environment:
        """Read the variables.

        As in the Go core, `DEADLOCK_TIMEOUT_SECONDS` is 60 if it is missing or no number.

        Raises:
            LockUsageError: `LOCKCHECK` names no level, or `LOCKCHECK_MAX_HOLD` no number of seconds.
        """
        detection = _is_true(variables, "DEADLOCK_DETECTION_ENABLED")
        named = variables.get("LOCKCHECK", "")
        level = level_of(named) if named else (Level.FULL if detection else Level.OFF)
        return Environment(
            level=level,
            timeout_seconds=_seconds(variables.get("DEADLOCK_TIMEOUT_SECONDS", "")) if detection else None,
            exits=detection and _is_true(variables, "DEADLOCK_EXIT"),
            order_disabled=detection and _is_true(variables, "DEADLOCK_DISABLE_LOCK_ORDER"),
            max_hold_seconds=max_hold_of(variables.get("LOCKCHECK_MAX_HOLD", "")),
        )


def max_hold_of(text: str | None) -> float | None:
    """Return how many seconds a lock may be held, from a text; `None` if it is empty.

    Raises:
        LockUsageError: it is no positive number.
    """
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise LockUsageError(f"{text!r} is no number of seconds that a lock may be held")
    return seconds


def _is_true(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").strip().lower() in _TRUE


def _seconds(text: str) -> float:
    return float(text) if text.strip().isdecimal() and int(text) > 0 else _TIMEOUT_SECONDS_DEFAULT
