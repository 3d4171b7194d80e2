"""The reports of a dispatcher to its embedder: failures that no asker gets, and undelivered messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .reference import AnyRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception in an actor that was not the answer to an ask."""

    ref: AnyRef
    error: BaseException
    message: object
    """The message that was being handled; `None` in `on_start`, `on_stop` and `on_failure`."""
    survived: bool
    """Whether the actor goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message sent by `tell` that was not delivered, since its actor had stopped."""

    ref: AnyRef
    message: object


FailureHook: TypeAlias = Callable[[Failure], None]
DeadLetterHook: TypeAlias = Callable[[DeadLetter], None]
