"""The callbacks of a simulated resource manager, by how it answers predicates, and its world."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from ....model.errors import LicorneError
from ....model.values.messages import PredicateQuestion, PreemptionQuestion
from ...si import si_pb2 as si
from ...si.api import ResourceManager, SchedulerAPI
from .cluster_record import RecordError

if TYPE_CHECKING:
    from .manager import SimulatedManager

_UNDER_WAY_SECONDS: Final = 15.0
"""How long messages may be under way, and callbacks take."""


class World(Protocol):
    """What a manager needs of the world that it is in."""

    def note(self, who: str, verb: str, message: Any) -> None:
        """Write down what a manager says or hears."""

    def scheduler_time_ns(self) -> int | None:
        """Return the time of the scheduler, `None` where it goes on while callbacks are under way."""

    def fail(self, error: BaseException) -> None:
        """Note that something is not as it must be."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def new_door(self, rm_id: str, door: str, *, beside: bool = False) -> SchedulerAPI:
        """Return the scheduler, as a process finds it that begins: in place of a killed one, or beside it."""


class CallbackFault(Exception):  # noqa: N818 - what a faulty callback raises
    """A callback raises it, as a fault of the resource manager."""


@final
class CallbackFaults:
    """The faults that the next callbacks of a manager are to have, and the check that none overlap.

    Args:
        sleep: Lets time pass.
    """

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self.raises = 0
        """How many of the next callbacks raise."""
        self.blocks_seconds = 0.0
        """How long the next callback takes."""
        self.registers = False
        """Whether the next callback registers the manager again."""
        self._caller: int | None = None
        """The thread on which a callback runs."""

    def end(self) -> None:
        """Let no callback have any fault from now on."""
        self.raises, self.blocks_seconds, self.registers = 0, 0.0, False

    @contextmanager
    def one_at_a_time(self, *, in_process: bool) -> Iterator[None]:
        """Surround a callback; one that is called in process never overlaps another one.

        Raises:
            RecordError: One runs on another thread.
        """
        caller, here = self._caller, threading.get_ident()
        if in_process and caller not in (None, here):
            raise RecordError("a callback begins while another one runs")
        self._caller = here
        try:
            yield
        finally:
            self._caller = caller

    def happen(self, verb: str, register: Callable[[], None]) -> None:
        """Have the next fault of a callback, if there is one.

        Raises:
            CallbackFault: It is to raise.
        """
        if self.registers:
            self.registers = False
            register()
        if self.blocks_seconds:
            seconds, self.blocks_seconds = self.blocks_seconds, 0.0
            self._sleep(seconds)
        if self.raises:
            self.raises -= 1
            raise CallbackFault(verb)


@final
class Takeover:
    """Which process of a manager has registered last, and when: the others hear nothing more."""

    def __init__(self) -> None:
        self._last = 0, 0.0

    def registered(self, process: int) -> None:
        """Note that a process has registered."""
        self._last = process, time.monotonic()

    def is_over(self, process: int) -> bool:
        """Return whether a later process has registered, and all that was under way has come since."""
        later, seconds = self._last
        return process < later and time.monotonic() > seconds + _UNDER_WAY_SECONDS


def _hear_late() -> None:
    raise RecordError("a process hears something, long after another one has taken over")


class _Callback(ResourceManager):
    """The callback of one registration; it is ignored when there is a later one."""

    def __init__(self, manager: SimulatedManager, process: int, epoch: int) -> None:
        self._manager = manager
        self._process = process
        self._epoch = epoch

    def _hear(self, verb: str, message: Any) -> None:
        manager = self._manager
        if manager.takeover.is_over(self._process):
            manager.take(verb, message, _hear_late)
        if manager.hears(self._epoch):
            manager.take(verb, message, lambda: getattr(manager, verb)(message))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._hear("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._hear("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._hear("update_node", response)

    def reconnected(self) -> None:
        """Register again: the connection was lost, and is back."""
        self._manager.reconnected(self._process)


class _PredicateCallback(_Callback):
    """The callback of a manager with predicates."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        if self._manager.refuses(args.allocationKey, args.nodeID):
            raise LicorneError("it does not fit")


class _DeferringCallback(_Callback):
    """The callback of a manager that answers its predicates later, on another thread."""

    def __init__(self, manager: SimulatedManager, process: int, epoch: int) -> None:
        super().__init__(manager, process, epoch)
        self._batches = 0

    def ask_predicates(self, questions: Sequence[PredicateQuestion], answer: Callable[[Any], None]) -> None:
        refuses = self._manager.refuses
        answers = {
            position: {
                node: "it does not fit"
                for node in question.node_ids
                if refuses(question.allocation_key, node)
            }
            for position, question in enumerate(questions)
        }
        self._batches += 1
        self._manager.answer_later(self._batches, lambda: answer(answers))

    def ask_preemption_predicates(
        self, questions: Sequence[PreemptionQuestion], answer: Callable[[Any], None]
    ) -> None:
        answers = {position: question.start_index for position, question in enumerate(questions)}
        self._batches += 1
        self._manager.answer_later(self._batches, lambda: answer(answers))


CALLBACKS: Final = {"not": _Callback, "at once": _PredicateCallback, "later": _DeferringCallback}
"""The class of the callback: for no predicates, for answers at once, and for later ones."""
