"""Resource managers that listen, and what makes one wait: for tests of a scheduler that runs by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from support.waiting import WAIT_SECONDS

from licorne import ResourceManager
from licorne.proxy.si import si_pb2 as si

_MOMENT_SECONDS: Final = 0.002
"""How long a wait takes at most."""


class Listener(ResourceManager):
    """Keeps its callbacks as short texts, and lets a test wait for them.

    Attributes:
        heard: the texts, in order.
        threads: which threads have called.
        react: called on the callback's thread with each text, after it was noted.
    """

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.threads: set[threading.Thread] = set()
        self.react: Callable[[str], None] = lambda _: None
        self._changed = threading.Condition()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._hear([f"placed {entry.allocationKey}" for entry in response.new])
        self._hear(
            [
                f"released {entry.allocationKey} {si.TerminationType.Name(entry.terminationType)}"
                for entry in response.released
            ]
        )
        self._hear(
            [f"rejected {entry.allocationKey}: {entry.reason}" for entry in response.rejectedAllocations]
        )

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._hear([f"accepted {entry.applicationID}" for entry in response.accepted])
        self._hear([f"rejected {entry.applicationID}: {entry.reason}" for entry in response.rejected])
        self._hear([f"{entry.applicationID} is {entry.state}" for entry in response.updated])

    def update_node(self, response: si.NodeResponse) -> None:
        self._hear([f"accepted {entry.nodeID}" for entry in response.accepted])
        self._hear([f"rejected {entry.nodeID}: {entry.reason}" for entry in response.rejected])

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self._hear([f"waiting {request.allocationKey}"])

    def _hear(self, texts: Sequence[str]) -> None:
        for text in texts:
            with self._changed:
                self.heard.append(text)
                self.threads.add(threading.current_thread())
                self._changed.notify_all()
            self.react(text)

    def wait_for(self, *texts: str) -> None:
        """Wait until it has all of these texts."""
        told = self._hears(lambda: set(texts) <= set(self.heard))
        assert told, f"never told {sorted(set(texts) - set(self.heard))}, but {self.heard[-20:]}"

    def wait_for_count(self, start: str, count: int) -> None:
        """Wait until it has so many texts that start so."""
        told = self._hears(lambda: len(self.all(start)) >= count)
        assert told, f"told {len(self.all(start))} of {count} times {start!r}"

    def _hears(self, enough: Callable[[], bool]) -> bool:
        with self._changed:
            return self._changed.wait_for(enough, WAIT_SECONDS)

    def all(self, start: str) -> list[str]:
        """Return what follows this start in all texts that have it, in order."""
        return [text.removeprefix(start) for text in self.heard if text.startswith(start)]


class PredicateListener(Listener):
    """A listener that is asked before anything is placed or reserved; it agrees to all."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        self._hear([f"asked to {'place' if args.allocate else 'reserve for'} {args.allocationKey}"])


class MeetingPredicateListener(PredicateListener):
    """A judge that agrees to all, and gives other threads a moment to ask as well before it answers.

    Attributes:
        most: how many questions it has had at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self._inside = 0
        self._meeting = threading.Condition()

    def predicates(self, args: si.PredicatesArgs) -> None:
        super().predicates(args)
        with self._meeting:
            self._inside += 1
            self.most = max(self.most, self._inside)
            self._meeting.notify_all()
            self._meeting.wait_for(lambda: self._inside > 1, _MOMENT_SECONDS)
            self._inside -= 1


class Gate:
    """Lets a callback wait inside until the test opens it."""

    def __init__(self, start: str = "") -> None:
        self.reached = threading.Event()
        self._start = start
        self._open = threading.Event()

    def hold(self, text: str) -> None:
        """Wait, if the text starts as the gate says."""
        if text.startswith(self._start):
            self.reached.set()
            assert self._open.wait(WAIT_SECONDS), "the gate was never opened"

    def open(self) -> None:
        self._open.set()


def once(text: str, action: Callable[[], object]) -> Callable[[str], None]:
    """Make a reaction that acts the first time that it hears a text."""
    left = [action]

    def react(heard: str) -> None:
        if heard == text and left:
            left.pop()()

    return react
