"""The settings of each RM of one scheduler that are not in its queues, and the logs that follow them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from .....actors.services.log import Log
from .....model.configuration.extra import ExtraConfig, LogLevel
from .....model.configuration.problems import Problem

_DEFAULTS: Final = ExtraConfig()


@final
class ExtraConfigurations:
    """The settings of the resource managers of one scheduler from `extraConfig`.

    Only the thread that registers replaces settings; any thread may read, and log.
    """

    def __init__(self) -> None:
        self._by_rm: Mapping[str, ExtraConfig] = {}
        self._levels: dict[tuple[str, str], LogLevel] = {}
        """The levels of loggers that were looked up, by logger and RM; emptied with every change."""

    def of(self, rm_id: str) -> ExtraConfig:
        """Return the settings of an RM; the defaults for one that is not registered."""
        return self._by_rm.get(rm_id, _DEFAULTS)

    def health_check_seconds(self) -> float:
        """Return the shortest interval between health checks that an RM sets; 0 if none sets one."""
        intervals = [settings.health_check_interval_seconds for settings in self._by_rm.values()]
        return min((seconds for seconds in intervals if seconds > 0), default=0)

    def most_detailed(self) -> LogLevel:
        """Return the most detailed level that an RM sets for all loggers."""
        return min((settings.level_of("") for settings in self._by_rm.values()), default=LogLevel.INFO)

    def replace(self, rm_id: str, settings: ExtraConfig) -> None:
        """Replace all settings of an RM."""
        self._by_rm = {**self._by_rm, rm_id: settings}
        self._levels = {}

    def forget(self, rm_id: str) -> None:
        """Forget the settings of an RM."""
        self._by_rm = {name: settings for name, settings in self._by_rm.items() if name != rm_id}
        self._levels = {}

    def warn(self, rm_id: str, queues: tuple[Problem, ...], warnings: tuple[str, ...]) -> None:
        """Log warnings about the queues and settings of an RM; not under a lock: a sink may do anything."""
        log = self.log("core.config", rm_id)
        for problem in queues:
            log.warning("configuration of RM {!r}: {}", rm_id, problem)  # noqa: PLE1205 - loguru's braces
        for warning in warnings:
            log.warning("extra configuration of RM {!r}: {}", rm_id, warning)  # noqa: PLE1205 - loguru's braces

    def log(self, name: str, rm_id: str = "") -> Log:
        """Return a log at the level that one RM sets for its name.

        A log without an RM is for what all RMs share: it has the most detailed level that one of them sets.
        """

        def is_logged(level: LogLevel) -> bool:
            return level >= self._level(name, rm_id)

        return Log(is_logged, logger=name) if not rm_id else Log(is_logged, logger=name, rm_id=rm_id)

    def _level(self, name: str, rm_id: str) -> LogLevel:
        levels = self._levels
        level = levels.get((name, rm_id))
        if level is None:
            heard = [self.of(rm_id)] if rm_id else self._by_rm.values()
            level = min((settings.level_of(name) for settings in heard), default=LogLevel.INFO)
            levels[name, rm_id] = level
        return level
