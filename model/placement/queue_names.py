"""The names of queues, as far as placement makes them."""

from __future__ import annotations

from typing import Final

from ..configuration.names import is_queue_name

ROOT: Final = "root"
DEFAULT_QUEUE: Final = "root.default"
RECOVERY_QUEUE: Final = "root.@recovery@"


def is_qualified(name: str) -> bool:
    """Return whether a name is a full path, and not the name of a queue below some parent.

    The case counts: `ROOT.a` is no path.
    """
    return name.startswith(f"{ROOT}.")


def without_dots(name: str) -> str:
    """Return the name of one queue for a text: dots separate queues, so they are spelled out."""
    return name.replace(".", "_dot_")


def has_valid_parts(path: str) -> bool:
    """Return whether each queue on a path, or a single name, has a name that a queue can have."""
    return all(is_queue_name(part) for part in path.split("."))
