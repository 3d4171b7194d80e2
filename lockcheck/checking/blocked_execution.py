"""Blocked executions: what each holds and wants where it is stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..holding.chains import Acquisition, Execution, held_nodes
from ..holding.stacks import RawStack
from .graph import HeldLock


@final
@dataclass(frozen=True, slots=True)
class BlockedExecution:
    """An execution that is stuck, with what it holds and waits for."""

    execution: str
    held: tuple[HeldLock, ...]
    """Outermost first."""
    wanted: Acquisition | None
    """`None` if it waits for the end of a thread."""
    wait_text: str
    """What it waits for, in words."""
    signal: str | None
    """What ends its wait, in words, if that is neither the release of a lock nor the end of a thread."""
    stack: RawStack
    times: int | None
    """How often it had come there, if that was counted."""


def blocked_execution(
    execution: Execution, wanted: Acquisition | None, times: int | None = None
) -> BlockedExecution:
    """Return what an execution holds and waits for now."""
    held = [
        HeldLock(node.acquisition, node.stack, fresh=False)
        for node in held_nodes(execution.node)
        if node.acquisition
    ]
    return BlockedExecution(
        execution=execution.name,
        held=tuple(reversed(held)),
        wanted=wanted,
        wait_text=execution.wait.describe() if execution.wait is not None else str(wanted),
        signal=execution.wait.signal if execution.wait is not None else None,
        stack=execution.stack,
        times=times,
    )
