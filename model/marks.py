"""The marks `@reads` and `@writes`: what a method does to the object it belongs to.

An entity (node, application, partition, cluster) is used from outside through marked methods alone. An
engine turns the marks into what it guards with: nothing (`direct`), a message to the owning actor
(`actors`), or a read or write lock (`threads`). The marks cost nothing: they set an attribute once, when
the class is made. Orchestration is unmarked code that calls marked methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MARK", "marked_methods", "reads", "writes"]

MARK: Final = "__licorne_mark__"
Method = TypeVar("Method", bound="Callable[..., object]")


def reads(method: Method) -> Method:
    """Mark a method that only reads its object."""
    setattr(method, MARK, "reads")
    return method


def writes(method: Method) -> Method:
    """Mark a method that changes its object."""
    setattr(method, MARK, "writes")
    return method


def marked_methods(entity_class: type) -> dict[str, str]:
    """Return the marked methods of a class by name, in order of definition: `reads` or `writes`."""
    found: dict[str, str] = {}
    for base in reversed(entity_class.__mro__):
        for name, member in vars(base).items():
            mark = getattr(member, MARK, None)
            if mark is not None:
                found[name] = mark
    return found
