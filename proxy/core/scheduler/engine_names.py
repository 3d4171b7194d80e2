"""The names of the engines that a scheduler can use; `engines` makes the engines."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ....model.errors import LicorneError

EngineName: TypeAlias = Literal["actors", "direct", "threads"]
ENGINES: Final[tuple[EngineName, ...]] = ("actors", "direct", "threads")


def engine_named(text: str) -> EngineName:
    """Return the engine of that name.

    Raises:
        LicorneError: It is unknown.
    """
    for name in ENGINES:
        if name == text:
            return name
    raise LicorneError(f"engine {text!r} is unknown, there are {', '.join(ENGINES)}")
