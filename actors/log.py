"""What Licorne says of itself: through loguru, at levels that each scheduler has for itself.

loguru has one logger for the whole process. Its sinks, and whether it hears of `licorne` at all, are for the
program to say. A scheduler sets no level there, since that would be everybody's: it looks at its own levels
before it hands a message on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from loguru import logger

from ..model.configuration.extra import LogLevel

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Log"]


def _everything(_: LogLevel) -> bool:
    return True


@final
class Log:
    """Where one part of a scheduler says what happens. Texts and values are as in loguru.

    Args:
        is_logged: whether messages of a level are handed on; all are unless said otherwise.
        **bound: what every record carries in its `extra`.
    """

    __slots__ = ("_is_logged", "_logger")

    def __init__(self, is_logged: Callable[[LogLevel], bool] = _everything, **bound: object) -> None:
        self._is_logged = is_logged
        self._logger = logger.bind(**bound)

    def bind(self, **bound: object) -> Log:
        """Return the same log whose records carry more."""
        log = Log(self._is_logged)
        log._logger = self._logger.bind(**bound)
        return log

    def debug(self, text: str, *values: object) -> None:
        """Say what helps to find a fault."""
        if self._is_logged(LogLevel.DEBUG):
            self._logger.opt(depth=1).debug(text, *values)

    def info(self, text: str, *values: object, error: BaseException | None = None) -> None:
        """Say what is worth to know."""
        if self._is_logged(LogLevel.INFO):
            self._logger.opt(depth=1, exception=error).info(text, *values)

    def warning(self, text: str, *values: object) -> None:
        """Say what is probably not meant."""
        if self._is_logged(LogLevel.WARN):
            self._logger.opt(depth=1).warning(text, *values)

    def error(self, text: str, *values: object, error: BaseException | None = None) -> None:
        """Say what went wrong."""
        if self._is_logged(LogLevel.ERROR):
            self._logger.opt(depth=1, exception=error).error(text, *values)

    def exception(self, text: str, *values: object) -> None:
        """Say what went wrong, with the exception that is being handled."""
        if self._is_logged(LogLevel.ERROR):
            self._logger.opt(depth=1, exception=True).error(text, *values)
