"""The callbacks of a simulated resource manager, by how it answers predicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...model.errors import LicorneError
from ...model.values.predicate_questions import PredicateQuestion, PreemptionQuestion
from ..si import si_pb2 as si
from ..si.api import ResourceManager

if TYPE_CHECKING:
    from .manager import SimulatedManager

__all__ = ["CALLBACKS"]


class _Callback(ResourceManager):
    """The callback of one registration; it is ignored when there is a later one."""

    def __init__(self, manager: SimulatedManager, process: int, epoch: int) -> None:
        self._manager = manager
        self._process = process
        self._epoch = epoch

    def _hear(self, verb: str, message: Any) -> None:
        manager = self._manager
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
