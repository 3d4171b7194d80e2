"""Whose locks are adopted: those of the program, of everything, or of some modules."""

from __future__ import annotations

import os
import sysconfig
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Self, final

from ..findings.errors import LockUsageError

PROGRAM: Final = "program"
ALL: Final = "all"
NONE: Final = "none"
VARIABLE: Final = "LOCKCHECK_ADOPT"
"""The variable of the environment that has the default."""
HELP: Final = (
    "whose locks of `threading` are checked: program (all but those of the standard library, of which "
    "logging, concurrent.futures and queue count), all, none, or patterns of modules "
    f"({VARIABLE}, else {PROGRAM})"
)
"""What the options say that name a scope."""

_LIBRARY: Final = tuple({sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED: Final = tuple(
    {sysconfig.get_paths()[name] + os.sep for name in ("purelib", "platlib")}
    | {f"{path}{name}{os.sep}" for path in _LIBRARY for name in ("site-packages", "dist-packages")}
)
"""Folders inside of the standard library's with packages that are not of it."""


_OF_PROGRAM: Final = frozenset({"logging", "concurrent", "queue"})
"""Packages of the standard library whose locks programs meet with theirs: of handlers, pools and queues."""

_RUNNERS: Final = frozenset({"_pytest", "pytest", "pluggy", "xdist", "execnet"})
"""Packages that run the tests of a program, and are not of it."""


def is_of_library(file: str) -> bool:
    """Return whether a file of code belongs to the standard library."""
    if file.startswith("<frozen "):
        return True
    return file.startswith(_LIBRARY) and not file.startswith(_INSTALLED)


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """The modules whose locks are adopted.

    Args:
        text: `program`, which is everything but what runs tests and the standard library, of which `logging`,
            `concurrent.futures` and `queue` count; `all`; `none`; or patterns of names of modules, separated
            by commas, such as `shop.*,billing`.
    """

    text: str
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, text: str, where: str = "adopt") -> Self:
        """Return the scope that a text names.

        Raises:
            LockUsageError: the text is empty, or one of its patterns is; the message begins with `where`.
        """
        patterns = tuple(part.strip() for part in text.split(","))
        if not all(patterns):
            raise LockUsageError(
                f"{where}: {text!r} does not say whose locks are adopted: program, all, none, or patterns of "
                "modules"
            )
        return cls(text, patterns)

    @classmethod
    def of_environment(cls, given: str | None, where: str) -> Self:
        """Return the scope that was given, else that of the environment, else that of the program."""
        if given is not None:
            return cls.of(given, where)
        return cls.of(os.environ.get(VARIABLE) or PROGRAM, VARIABLE)

    def has(self, module: str, *, of_library: bool) -> bool:
        """Return whether locks are adopted that a module makes."""
        if self.text in {PROGRAM, ALL, NONE}:
            package = module.partition(".")[0]
            is_of_program = package not in _RUNNERS and (not of_library or package in _OF_PROGRAM)
            return self.text == ALL or (self.text == PROGRAM and is_of_program)
        return any(fnmatchcase(module, pattern) for pattern in self.patterns)
