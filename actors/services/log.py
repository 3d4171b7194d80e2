"""The log of Licorne: through loguru, at levels that each scheduler has for itself.

loguru has one logger for the whole process. The program sets its sinks, and enables `licorne`, which is not
logged otherwise. A scheduler sets no level there, since that would change all schedulers: it checks its own
levels before it hands a message to loguru.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from loguru import logger

from ...model.configuration.extra import LogLevel

if not any(name.startswith("licorne.") for name, _ in logger._core.activation_list):  # type: ignore[attr-defined]  # noqa: SLF001 - loguru tells it nowhere else
    logger.disable("licorne")  # Unless the program has decided before.


def _everything(_: LogLevel) -> bool:
    return True


@final
class Log:
    """The log of one part of a scheduler. Texts and values are as in loguru.

    Args:
        is_logged: whether messages of a level are handed to loguru; by default all are.
        **bound: the values that every record has in its `extra`.
    """

    __slots__ = ("_is_logged", "_logger")

    def __init__(self, is_logged: Callable[[LogLevel], bool] = _everything, **bound: object) -> None:
        self._is_logged = is_logged
        self._logger = logger.bind(**bound) if bound else logger

    def bind(self, **bound: object) -> Log:
        """Return the same log with more values in its records."""
        log = Log(self._is_logged)
        log._logger = self._logger.bind(**bound)
        return log

    def debug(self, text: str, *values: object) -> None:
        """Log what helps to find a fault."""
        if self._is_logged(LogLevel.DEBUG):
            self._logger.opt(depth=1).debug(text, *values)

    def info(self, text: str, *values: object, error: BaseException | None = None) -> None:
        """Log what is worth knowing."""
        if self._is_logged(LogLevel.INFO):
            self._logger.opt(depth=1, exception=error).info(text, *values)

    def warning(self, text: str, *values: object) -> None:
        """Log what is probably a mistake."""
        if self._is_logged(LogLevel.WARN):
            self._logger.opt(depth=1).warning(text, *values)

    def error(self, text: str, *values: object, error: BaseException | None = None) -> None:
        """Log what went wrong."""
        if self._is_logged(LogLevel.ERROR):
            self._logger.opt(depth=1, exception=error).error(text, *values)

    def exception(self, text: str, *values: object) -> None:
        """Log what went wrong, with the exception that is being handled."""
        if self._is_logged(LogLevel.ERROR):
            self._logger.opt(depth=1, exception=True).error(text, *values)
