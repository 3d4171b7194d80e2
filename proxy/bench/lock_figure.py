"""One figure of what checking locks costs, with what is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["LockFigure"]


@final
@dataclass(frozen=True, slots=True)
class LockFigure:
    """One figure."""

    subject: str
    value: float
    unit: str
    wanted_max: float | None = None
    wanted_min: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the value is as wanted; always where nothing is wanted."""
        return (self.wanted_max is None or self.value <= self.wanted_max) and (
            self.wanted_min is None or self.value >= self.wanted_min
        )

    @property
    def wanted(self) -> str:
        """What is wanted, in words."""
        if self.wanted_max is not None:
            return f"≤ {self.wanted_max:,g}"
        return f"≥ {self.wanted_min:,g}" if self.wanted_min is not None else ""
