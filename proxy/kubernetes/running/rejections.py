"""The applications that the scheduler rejects, with the reasons and the times of the next attempts."""

from __future__ import annotations

from typing import Final, NamedTuple, final

from .event_loop import EventLoop

_PAUSE_SECONDS: Final = 10.0
_PAUSE_MAX_SECONDS: Final = 300.0
"""The maximum wait of a rejected application; the wait doubles each time."""


class _Rejection(NamedTuple):
    """The number of consecutive rejections of an application, the end of its wait, and the reason."""

    times: int
    until: float
    reason: str


@final
class Rejections:
    """Remembers rejections by the id of the application, also when its pods are gone; used by one thread."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._by_id: dict[str, _Rejection] = {}

    def note(self, identity: str, reason: str) -> float:
        """Record a rejection of an application; return how many seconds it waits."""
        earlier = self._by_id.get(identity)
        times = 1 if earlier is None else earlier.times + 1
        pause = min(_PAUSE_SECONDS * 2.0 ** (times - 1), _PAUSE_MAX_SECONDS)
        self._by_id[identity] = _Rejection(times, self._loop.now() + pause, reason)
        self._loop.later(2 * _PAUSE_MAX_SECONDS, self._forget, identity, times)
        return pause

    def _forget(self, identity: str, times: int) -> None:
        rejection = self._by_id.get(identity)
        if rejection is not None and rejection.times == times:
            del self._by_id[identity]

    def accepted(self, identity: str) -> None:
        """Record that an application is accepted: the next rejection is the first one."""
        self._by_id.pop(identity, None)

    def pause(self, identity: str) -> float:
        """Return how many more seconds an application waits, 0 if it does not."""
        rejection = self._by_id.get(identity)
        return 0.0 if rejection is None else max(0.0, rejection.until - self._loop.now())

    def reason(self, identity: str) -> str:
        """Return why an application waits, empty if it does not."""
        return self._by_id[identity].reason if self.pause(identity) else ""
