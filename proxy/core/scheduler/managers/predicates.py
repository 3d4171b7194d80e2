"""The RM's predicates as the model asks them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import final

from .....model.state.counters import Histogram
from .....model.values.allocation import ask_key_of
from ....si import si_pb2 as si
from ....si.api import ResourceManager, ResourceManagerCallback
from ....si.callbacks import ask_predicate, ask_preemption_predicate
from ....si.older_answers import Generation
from .callback_failures import is_fault, text_of
from .callback_threads import CallbackThreads


@final
class CallbackPredicates:
    """Predicates that call the RM's callback; its answer or error is the result."""

    def __init__(
        self,
        callback: ResourceManagerCallback,
        blocking: Callable[[], AbstractContextManager[None]],
        callback_threads: CallbackThreads,
        note: Callable[[str, BaseException], None],
        generation: Generation,
        *,
        times: Histogram,
    ) -> None:
        self._callback = callback
        self._times = times
        self._generation = generation
        self._callback_threads = callback_threads
        self._note = note
        """Called with the name of a predicate that failed, and its error."""
        self._blocking = blocking
        """While the RM's predicate runs, another thread works for the other partitions."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return the type and text of what the callback raises, `None` if it returns."""
        if self._generation.is_older:
            allocation_key = ask_key_of(allocation_key)
        args = si.PredicatesArgs(allocationKey=allocation_key, nodeID=node_id, allocate=allocate)
        with self._blocking(), self._callback_threads.predicate():
            began_ns = perf_counter_ns()
            try:
                ask_predicate(self._callback, args)
            except BaseException as error:  # noqa: BLE001 - any error that the RM raises is its answer
                if is_fault(error):
                    self._note("predicates", error)
                return text_of(error)
            finally:
                self._times.add(perf_counter_ns() - began_ns)
        return None

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the index that the callback answers, `None` if it refuses or fails."""
        if self._generation.is_older:
            allocation_key = ask_key_of(allocation_key)
            victim_keys = tuple(ask_key_of(key) for key in victim_keys)
        args = si.PreemptionPredicatesArgs(
            allocationKey=allocation_key,
            nodeID=node_id,
            preemptAllocationKeys=victim_keys,
            startIndex=start_index,
        )
        with self._blocking(), self._callback_threads.predicate():
            try:
                answer = ask_preemption_predicate(self._callback, args)
            except BaseException as error:  # noqa: BLE001 - an RM whose predicate fails does not agree
                self._note("preemption_predicates", error)
                return None
        return answer.index if answer is not None and answer.success else None


def predicates_of(
    callback: ResourceManagerCallback,
    blocking: Callable[[], AbstractContextManager[None]],
    callback_threads: CallbackThreads,
    note: Callable[[str, BaseException], None],
    generation: Generation,
    *,
    times: Histogram,
) -> CallbackPredicates | None:
    """Return the predicates of a callback, `None` for one that agrees to everything; `times` gets each call.

    A callback that inherits the predicate of `ResourceManager` as it is need not be asked.
    """
    own = getattr(type(callback), "predicates", None)
    if own is ResourceManager.predicates:
        return None
    return CallbackPredicates(callback, blocking, callback_threads, note, generation, times=times)
