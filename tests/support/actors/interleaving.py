"""Rehearse threads: run one at a time and switch between two bytecodes at the will of a seed.

A race that needs a switch at one certain place in a million is met here within some hundred seeds, on any
interpreter, and met again with the same seed. Locks and queues of the code under rehearsal are
replaced by ones that know the rehearsal, so that a deadlock is found at once instead of hanging.
"""

from __future__ import annotations

import random
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import FrameType, TracebackType

    from _typeshed import TraceFunction

__all__ = ["DeadlockError", "LivelockError", "Rehearsal", "RehearsedLock", "RehearsedQueue"]


class DeadlockError(AssertionError):
    """Every thread of the rehearsal waits for another."""


class LivelockError(AssertionError):
    """The rehearsal goes on and on."""


class _Player(threading.Thread):
    """One thread of a rehearsal; it runs only while it is its turn."""

    def __init__(self, rehearsal: Rehearsal, number: int, part: Callable[[], None]) -> None:
        super().__init__(name=f"player-{number}", daemon=True)
        self.rehearsal = rehearsal
        self.part = part
        self.turn = threading.Semaphore(0)
        self.until: Callable[[], bool] | None = None
        self.finished = False
        self.error: BaseException | None = None

    def run(self) -> None:
        self.turn.acquire()
        sys.settrace(self.rehearsal.trace)
        try:
            self.part()
        except BaseException as error:  # noqa: BLE001 - raised where the rehearsal was called
            self.error = error
        finally:
            sys.settrace(None)
            self.finished = True
            self.rehearsal.pass_on()

    def can_go_on(self) -> bool:
        """Return whether the player has something to do."""
        return not self.finished and (self.until is None or self.until())


class Rehearsal:
    """One run of some functions at the same time.

    Args:
        seed: decides every switch.
        files: where a switch may happen; elsewhere code runs through.
        chance: how likely a switch is before each bytecode.
        switches_max: how many switches are taken for endless.
    """

    def __init__(
        self, seed: int, files: Collection[str], *, chance: float = 0.1, switches_max: int = 100_000
    ) -> None:
        self._random = random.Random(seed)  # noqa: S311 - it chooses switches, not secrets
        self._files = frozenset(files)
        self._chance = chance
        self._switches_left = switches_max
        self._players: list[_Player] = []
        self._over = threading.Event()
        self._stuck = False

    def run(self, *parts: Callable[[], None]) -> None:
        """Run the parts to their ends and raise the first error of any."""
        self._players = [_Player(self, number, part) for number, part in enumerate(parts)]
        for player in self._players:
            player.start()
        self.pass_on()
        self._over.wait()
        if self._switches_left <= 0:
            raise LivelockError(f"the threads run, but come to no end: {self._unfinished()}")
        for player in self._players:
            if not self._stuck:
                player.join()
            if player.error is not None:
                raise player.error
        if self._stuck:
            raise DeadlockError(f"no thread can go on: {self._unfinished()}")

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Have others run until the condition holds; outside of the rehearsal it must hold already."""
        player = threading.current_thread()
        if not isinstance(player, _Player):
            assert condition(), "only a player can wait"
            return
        if condition():
            return
        player.until = condition
        self._switch(player)
        player.until = None

    def pass_on(self) -> None:
        """Give the turn to anyone; called by who has it no longer."""
        ready = [player for player in self._players if player.can_go_on()]
        if ready:
            self._random.choice(ready).turn.release()
        else:
            self._stuck = not all(player.finished for player in self._players)
            self._over.set()

    def trace(self, frame: FrameType, event: str, _argument: object) -> TraceFunction | None:
        """Follow a player's frames, as `sys.settrace` has it, and switch at times."""
        if event == "call":
            if frame.f_code.co_filename not in self._files:
                return None
            frame.f_trace_opcodes = True
        elif event in ("opcode", "line") and self._random.random() < self._chance:
            player = threading.current_thread()
            assert isinstance(player, _Player)
            self._switch(player)
        return self.trace

    def _unfinished(self) -> list[str]:
        return [player.name for player in self._players if not player.finished]

    def _switch(self, player: _Player) -> None:
        self._switches_left -= 1
        if self._switches_left > 0:
            self.pass_on()
        else:
            self._over.set()  # and no thread has the turn ever again
        player.turn.acquire()


class RehearsedLock:
    """A lock whose waiters wait in the rehearsal."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._held = False

    def __enter__(self) -> bool:
        self._rehearsal.wait_until(lambda: not self._held)
        self._held = True
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held = False


class RehearsedQueue:
    """A queue whose waiters wait in the rehearsal, without deadlines."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._items: deque[object] = deque()

    def put(self, item: object) -> None:
        """Add an item."""
        self._items.append(item)

    def get(self, timeout: float | None = None) -> object:
        """Take the first item, when there is one."""
        assert timeout is None, "a rehearsal has no clock"
        self._rehearsal.wait_until(lambda: bool(self._items))
        return self._items.popleft()
