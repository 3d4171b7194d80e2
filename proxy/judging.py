"""Which threads are inside a predicate of a resource manager, in the middle of a decision."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, final

from ..model.errors import RequestError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Judging"]


@final
class Judging(threading.local):
    """Entered around each predicate; each thread sees itself alone.

    The partition that asks a predicate waits for its answer. A call from inside that would wait for
    partitions could so wait for ever: for this one, or for another thread that waits for it.
    """

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1

    def refuse(self, call: str) -> None:
        """Refuse a call if this thread is inside a predicate.

        Raises:
            RequestError: it is; nothing has changed.
        """
        if self._depth:
            raise RequestError(
                f"{call} inside a predicate is refused: the partition that asked the predicate waits for it"
            )
