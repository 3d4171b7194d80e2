"""The extra configuration: a flat map of texts that comes with each registration and update.

It replaces the map before it as a whole. Nothing in it can make a request fail: an unreadable value is
replaced by its default, with a warning. Keys of other parts of the installation (`service.`, `kubernetes.`,
`admissionController.`) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeVar

from .durations import DurationError, parse_duration_ns
from .names import did_you_mean, flag_of

_T = TypeVar("_T")

_NANOSECONDS: Final = 10**9
_UINT64_MAX: Final = 2**64 - 1
_UNSIGNED: Final = re.compile("[0-9]{1,40}")
_SIGNED: Final = re.compile("[-+]?[0-9]{1,40}")
_OUR_PREFIXES: Final = ("event.", "health.")
_LOG_PREFIX: Final = "log."
_LOG_SUFFIX: Final = ".level"


class LogLevel(IntEnum):
    """How serious a message must be to be logged; the numbers are part of the interface."""

    DEBUG = -1
    INFO = 0
    WARN = 1
    ERROR = 2
    DPANIC = 3
    PANIC = 4
    FATAL = 5


def _no_levels() -> Mapping[str, LogLevel]:
    return MappingProxyType({})


def _no_texts() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraConfig:
    """The settings beside the queues; `log_levels` is by logger, the empty name is all loggers.

    A health check interval of zero or less means that there are no periodic checks.
    """

    event_tracking_enabled: bool = True
    event_request_capacity: int = 1000
    event_ring_buffer_capacity: int = 100_000
    event_max_streams: int = 100
    event_max_streams_per_host: int = 15
    event_rest_response_size: int = 10_000
    health_check_interval_seconds: float = 30.0
    log_levels: Mapping[str, LogLevel] = field(default_factory=_no_levels)
    texts: Mapping[str, str] = field(default_factory=_no_texts, compare=False)
    """The map as it came, by key, with the keys of other programs; settings that mean the same are equal."""

    def level_of(self, logger: str) -> LogLevel:
        """Return the level of a logger: its own, that of the nearest logger above, or `INFO`."""
        name = logger
        while name:
            if name in self.log_levels:
                return self.log_levels[name]
            name = name.rpartition(".")[0]
        return self.log_levels.get("", LogLevel.INFO)


_DEFAULTS: Final = ExtraConfig()


class _Reader:
    """Reads the settings of one map and collects warnings."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.warnings: list[str] = []
        self._texts = texts
        self._known: list[str] = []

    def flag(self, key: str, *, default: bool) -> bool:
        return self._value(key, flag_of, default)

    def count(self, key: str, default: int) -> int:
        return self._value(key, _count, default)

    def size(self, key: str, default: int) -> int:
        """Read a number of which zero means the default."""
        return self.count(key, default) or default

    def seconds(self, key: str, default: float) -> float:
        return self._value(key, _seconds, default)

    def _value(self, key: str, read: Callable[[str], _T | None], default: _T) -> _T:
        self._known.append(key)
        if key not in self._texts:
            return default
        value = read(self._texts[key])
        if value is None:
            self.warnings.append(f"{key}: {self._texts[key]!r} cannot be read, {default} is used")
            return default
        return value

    def levels(self) -> dict[str, LogLevel]:
        found: dict[str, LogLevel] = {}
        for key, text in self._texts.items():
            logger = _logger(key)
            if logger is None:
                continue
            level = _level(text)
            if level is None or " " in key or ".." in key:
                self.warnings.append(f"{key}: {text!r} sets no level of a logger and is ignored")
            else:
                found[logger] = level
        return found

    def unknown_keys(self) -> None:
        for key in self._texts:
            if key.startswith(_OUR_PREFIXES) and key not in self._known:
                self.warnings.append(f"{key}: unknown setting{did_you_mean(key, self._known)}")


def parse_extra_config(texts: Mapping[str, str]) -> tuple[ExtraConfig, tuple[str, ...]]:
    """Read the extra configuration.

    Returns:
        The settings, and a warning for each that cannot be read or has an unknown name.
    """
    reader = _Reader(texts)
    settings = ExtraConfig(
        event_tracking_enabled=reader.flag("event.trackingEnabled", default=_DEFAULTS.event_tracking_enabled),
        event_request_capacity=reader.size("event.requestCapacity", _DEFAULTS.event_request_capacity),
        event_ring_buffer_capacity=reader.size(
            "event.ringBufferCapacity", _DEFAULTS.event_ring_buffer_capacity
        ),
        event_max_streams=reader.count("event.maxStreams", _DEFAULTS.event_max_streams),
        event_max_streams_per_host=reader.count(
            "event.maxStreamsPerHost", _DEFAULTS.event_max_streams_per_host
        ),
        event_rest_response_size=reader.size("event.RESTResponseSize", _DEFAULTS.event_rest_response_size),
        health_check_interval_seconds=reader.seconds(
            "health.checkInterval", _DEFAULTS.health_check_interval_seconds
        ),
        log_levels=MappingProxyType(reader.levels()),
        texts=MappingProxyType(dict(sorted(texts.items()))),
    )
    reader.unknown_keys()
    return settings, tuple(reader.warnings)


def _count(text: str) -> int | None:
    number = int(text) if _UNSIGNED.fullmatch(text) else None
    return number if number is not None and number <= _UINT64_MAX else None


def _seconds(text: str) -> float | None:
    try:
        return parse_duration_ns(text) / _NANOSECONDS
    except DurationError:
        return None


def _logger(key: str) -> str | None:
    """Return the logger whose level a key sets, the empty name for all, `None` for other keys."""
    if not key.startswith(_LOG_PREFIX) or not key.endswith(_LOG_SUFFIX):
        return None
    return key[len(_LOG_PREFIX) : -len(_LOG_SUFFIX)] if key != _LOG_PREFIX + _LOG_SUFFIX[1:] else ""


def _level(text: str) -> LogLevel | None:
    """Read the name of a level, or its number; a number beyond the range means the nearest level."""
    if not text:
        return LogLevel.INFO
    if text.upper() in LogLevel.__members__:
        return LogLevel[text.upper()]
    if not _SIGNED.fullmatch(text):
        return None
    return LogLevel(min(max(int(text), LogLevel.DEBUG), LogLevel.FATAL))
