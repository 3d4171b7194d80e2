"""Marks: what the methods of a class do to the object they belong to.

An entity (node, application, partition, cluster) is used from outside through marked methods alone. An
engine turns the marks into what it guards with: nothing (`direct`), a message to the owning actor
(`actors`), or a read or write lock (`threads`). Orchestration is unmarked code that calls marked methods.

A class names its marked methods in `MARKS`. A decorator at each method was rejected: a compiler could no
longer call the method without the decorator, and mypyc would not compile it as a method.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MARKS: Final = "MARKS"
"""The attribute of a class that has its marks."""


class Marks(NamedTuple):
    """The names of the marked methods that a class defines."""

    reads: tuple[str, ...] = ()
    """They only read their object."""
    writes: tuple[str, ...] = ()
    """They change it."""


def marked_methods(entity_class: type) -> dict[str, str]:
    """Return the marked methods of a class by name: `reads` or `writes`.

    A class has the marks of its bases; where it names a method of theirs, its own mark counts.

    Raises:
        TypeError: A class marks a name that is not a method of it.
    """
    found: dict[str, str] = {}
    for base in reversed(entity_class.__mro__):
        marks: Marks = vars(base).get(MARKS, _NONE)
        for mark, names in marks._asdict().items():
            for name in names:
                if not callable(vars(base).get(name)):
                    raise TypeError(f"{base.__qualname__} marks {name!r}, which is not a method of it")
                found[name] = mark
    return found


_NONE: Final = Marks()
