"""The RM's predicates as the model asks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from .si import si_pb2 as si
from .si.api import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..actors.log import Log
    from .judging import Judging
    from .si.api import ResourceManagerCallback

__all__ = ["CallbackPredicates", "predicates_of"]


@final
class CallbackPredicates:
    """Ask the RM's callback, and read what it answers or raises."""

    def __init__(
        self,
        callback: ResourceManagerCallback,
        blocking: Callable[[], AbstractContextManager[None]],
        judging: Judging,
        log: Log,
    ) -> None:
        self._callback = callback
        self._judging = judging
        self._log = log
        self._blocking = blocking
        """While the RM judges, another thread works for the other partitions."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return the text of what the callback raises, `None` if it returns."""
        args = si.PredicatesArgs(allocationKey=allocation_key, nodeID=node_id, allocate=allocate)
        try:
            with self._blocking(), self._judging:
                self._callback.predicates(args)
        except Exception as error:  # noqa: BLE001 - whatever the RM raises is its answer
            return str(error) or type(error).__name__
        return None

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the index that the callback answers, `None` if it refuses or fails."""
        args = si.PreemptionPredicatesArgs(
            allocationKey=allocation_key,
            nodeID=node_id,
            preemptAllocationKeys=victim_keys,
            startIndex=start_index,
        )
        try:
            with self._blocking(), self._judging:
                answer = self._callback.preemption_predicates(args)
        except Exception:  # noqa: BLE001 - an RM that cannot judge does not agree
            self._log.exception("preemption predicates failed for {} on {}", allocation_key, node_id)
            return None
        return answer.index if answer is not None and answer.success else None


def predicates_of(
    callback: ResourceManagerCallback,
    blocking: Callable[[], AbstractContextManager[None]],
    judging: Judging,
    log: Log,
) -> CallbackPredicates | None:
    """Return the predicates of a callback, `None` for one that agrees to everything.

    A callback that inherits the predicate of `ResourceManager` as it is need not be asked.
    """
    own = getattr(type(callback), "predicates", None)
    if own is ResourceManager.predicates:
        return None
    return CallbackPredicates(callback, blocking, judging, log)
