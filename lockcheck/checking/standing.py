"""What a unit holds and wants where it is stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ..holding.chains import held_nodes
from .graph import Held

if TYPE_CHECKING:
    from ..holding.chains import Grip, Unit
    from ..holding.stacks import RawStack

__all__ = ["Standing", "standing_of"]


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """What a unit holds and waits for where it is stuck."""

    unit: str
    held: tuple[Held, ...]
    """Outermost first."""
    wanted: Grip | None
    """Nothing where it waits for the end of a thread."""
    awaits: str
    """What it waits for, in words."""
    stack: RawStack
    times: int | None
    """How often it had come there, where that was counted."""


def standing_of(unit: Unit, wanted: Grip | None, times: int | None = None) -> Standing:
    """Return what a unit holds and waits for now."""
    held = [Held(node.grip, node.stack, fresh=False) for node in held_nodes(unit.node) if node.grip]
    return Standing(
        unit=unit.name,
        held=tuple(reversed(held)),
        wanted=wanted,
        awaits=unit.wait.describe() if unit.wait is not None else str(wanted),
        stack=unit.stack,
        times=times,
    )
