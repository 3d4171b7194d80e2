"""The delivery of events to resource managers (RMs), by their callback `send_event`.

Every two seconds an RM gets what happened to it, in one batch of at most `event.requestCapacity` records: the
oldest ones. Those for which there was no room are counted, and are not sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, final

from ....actors.services.interrupts import start_thread
from ....model.values.events import EventRecord
from ...si.api import ResourceManager, ResourceManagerCallback
from .expanding import expand
from .log import EventLog

DELIVERY_SECONDS: Final = 2.0
_MESSAGE_RECORDS_MAX: Final = 1000
"""How many records one callback gets: a message over the wire has at most some megabytes."""


def takes_events(callback: ResourceManagerCallback) -> bool:
    """Return whether a callback does anything with events: not if it has inherited to ignore them."""
    return getattr(type(callback), "send_event", None) is not ResourceManager.send_event


class Receiver(NamedTuple):
    """An RM that gets events: `send` queues records for it."""

    rm_id: str
    send: Callable[[list[EventRecord]], None]


@final
class EventDelivery:
    """Delivers the events of one scheduler.

    Args:
        log: The events.
        receivers: Returns who gets events now.
    """

    def __init__(self, log: EventLog, receivers: Callable[[], Iterable[Receiver]]) -> None:
        self._log = log
        self._receivers = receivers
        self._next_ids: dict[str, int] = {}
        """From where each RM has not been served yet."""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Deliver every two seconds from now on, on a thread."""
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = start_thread(self._run, "licorne-events")

    def _run(self) -> None:
        while not self._stop.wait(DELIVERY_SECONDS):
            self.deliver()

    def deliver(self) -> None:
        """Send each RM what has happened to it since the last time."""
        with self._lock:
            for receiver in self._receivers():
                self._deliver_to(receiver)

    def _deliver_to(self, receiver: Receiver) -> None:
        rm_id = receiver.rm_id
        facts, next_id, overwritten = self._log.facts_since(self._next_ids.get(rm_id, 0))
        self._next_ids[rm_id] = next_id
        room = self._log.request_capacity(rm_id)
        records: list[EventRecord] = []
        created = overwritten
        for fact in facts:
            if fact[1] != rm_id:
                continue
            created += fact[0]
            if len(records) < room:
                records += expand(fact)
        del records[room:]
        self._log.count_delivery(stored=len(records), not_stored=created - len(records))
        for start in range(0, len(records), _MESSAGE_RECORDS_MAX):
            receiver.send(records[start : start + _MESSAGE_RECORDS_MAX])

    def close(self) -> None:
        """End the thread, and deliver what has happened up to now."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.deliver()
