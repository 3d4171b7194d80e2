"""A method call as a message, and the function of a class that it runs."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

AnyFunction: TypeAlias = Callable[..., Any]
"""Any method; the typed ways to use it are `PooledRef.call` and `send`."""


class Invocation(NamedTuple):
    """Run `method(actor, *args, **kwargs)`."""

    method: AnyFunction
    args: tuple[object, ...]
    kwargs: dict[str, object]
    entries: int = 0
    """How many entries are counted until a request is carried out, see `licorne.actors.runtime.inflow`."""


class MethodTable(dict[AnyFunction, AnyFunction]):
    """From a method to the one that a class has for it, without a look-up by name.

    Other functions stand for themselves. Never written after it was made.
    """

    def __missing__(self, function: AnyFunction) -> AnyFunction:
        return function


def method_table(owner: type) -> MethodTable:
    """Map every method that `owner` inherits or overrides to the one that its instances have."""
    table = MethodTable()
    for base in owner.__mro__:
        for name, function in vars(base).items():
            found = getattr(owner, name, None)
            if isinstance(function, FunctionType) and isinstance(found, FunctionType):
                table[function] = found
    return table
