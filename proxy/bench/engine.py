"""The engines that the bench can drive."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EngineKind"]


class EngineKind(StrEnum):
    """How the scheduler that is measured runs."""

    ACTORS = "actors"
    DIRECT = "direct"
    THREADS = "threads"
