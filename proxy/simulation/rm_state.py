"""The state of a simulated resource manager: its applications and their work."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..si import si_pb2 as si
    from .accounts import Account
    from .workloads.workload import SimulatedApplication, SimulatedTask

__all__ = ["ApplicationPhase", "SubmittedApplication", "Work"]


class ApplicationPhase(Enum):
    """The phase of an application, as its resource manager sees it."""

    SUBMITTED = auto()
    """The scheduler has not answered yet: nothing may be asked for."""
    WAITING_FOR_GANG = auto()
    """A gang whose placeholders are not all placed: its tasks are held back."""
    OPEN = auto()
    """Everything is asked for as it becomes due."""
    ENDED = auto()
    """Rejected or failed: nothing more is asked for."""


@dataclass(slots=True)
class SubmittedApplication:
    """One application and its account; `held` are the keys of the tasks that are held back.

    `reason` is why it is over.
    """

    application: SimulatedApplication
    account: Account
    phase: ApplicationPhase = ApplicationPhase.SUBMITTED
    held: list[str] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work: what it is, and how often it was asked for again."""

    base_key: str
    task: SimulatedTask
    message: si.Resource
    task_group: str
    repetition: int = 0

    def key(self) -> str:
        """Return the allocation key of this repetition."""
        return f"{self.base_key}-r{self.repetition}" if self.repetition else self.base_key
