"""Resolvers and clocks for tests: they count, wait and fail when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable

from licorne.proxy.core.resolvers.resolver import ResolverUnavailableError, StaticResolver


class StandingClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: int) -> None:
        self.now_ns += seconds * 1_000_000_000


class CountingResolver:
    """A resolver with a list that can change, that keeps the questions and can be out of order."""

    def __init__(self, groups: dict[str, tuple[str, ...]] | None = None) -> None:
        self.groups = groups or {}
        self.questions: list[str] = []
        self.is_down = False
        self.meanwhile: Callable[[], None] = lambda: None
        """Called once, inside the next question."""

    def groups_of(self, user: str) -> tuple[str, ...]:
        self.questions.append(user)
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()
        if self.is_down:
            raise ResolverUnavailableError("the directory is down")
        return StaticResolver(self.groups).groups_of(user)


class WaitingResolver:
    """A resolver that answers when it may: each user is in the group `dev`."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.asked = threading.Semaphore(0)
        """Released at each question."""
        self.questions: list[str] = []

    def groups_of(self, user: str) -> tuple[str, ...]:
        self.questions.append(user)
        self.asked.release()
        self.may_answer.wait()
        return ("dev",)
