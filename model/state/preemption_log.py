"""What preemption has done, kept for explanations: for which ask and guarantee, which victims, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from ..resources.resource import EMPTY, Resource
from .justification import NO_FIGURES, FramePriorities, Justification

RECORDS_MAX: Final = 256
"""Preemptions remembered for explanations; at the bound the oldest is forgotten."""


class PreemptionCause(Enum):
    """What victims end for."""

    GUARANTEE = "a queue is owed its guarantee"
    PRIORITY = "an ask has a higher priority in its queue"
    REQUIRED_NODE = "an ask can run on one node only"
    QUOTA = "a queue uses more than its maximum, which was lowered"


class VictimNeed(Enum):
    """What would lack room without a victim."""

    NODE = "the node"
    PREDICATES = "nothing: the predicates of the RM demand its end"
    QUEUE = "a queue of the ask"
    LIMIT = "the limit of a user or a group"
    MAXIMUM = "nothing: a queue is above its maximum"


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimRecord:
    """One victim, and why that one."""

    allocation_key: str
    application_id: str
    queue_path: str
    node_id: str
    resource: Resource
    reason: str
    need: VictimNeed = VictimNeed.NODE
    priorities: FramePriorities | None = None
    """`None` where a maximum is enforced: that compares none."""
    gives: tuple[str, ...] = ()
    """The types that it gives to the guarantee of a queue; empty where none is served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRecord:
    """One preemption: a decision that was carried out as a whole.

    `allocation_key`, `application_id` and `ask_queue_path` are those of the ask, empty where a maximum is
    enforced. `queue_path` is the queue whose guarantee is served: the ask's leaf or one above it; where
    no guarantee plays a part, the queue whose maximum is enforced, or the ask's leaf.
    """

    time_ns: int
    cause: PreemptionCause
    queue_path: str
    ask_queue_path: str = ""
    allocation_key: str = ""
    application_id: str = ""
    node_id: str = ""
    """The node that the ask is to have, empty where a maximum is enforced."""
    wanted: Resource = EMPTY
    """What the ask asks for; where a maximum is enforced, what the queue is to give back."""
    reason: str
    victims: tuple[VictimRecord, ...]
    justification: Justification = NO_FIGURES
    loop: str = ""
    """Why this preemption repeats one without result; empty for all others."""

    def explain(self) -> tuple[str, ...]:
        """Return the explanation, a sentence a line: first the ask and its claim, then each victim."""
        lines = [self.reason]
        lines += [
            f"{victim.allocation_key} of {victim.application_id} in {victim.queue_path} on {victim.node_id}: "
            f"{victim.reason}"
            for victim in self.victims
        ]
        if self.loop:
            lines.append(f"loop: {self.loop}")
        return tuple(lines)


@final
class PreemptionLog:
    """The preemptions of a partition: the last `RECORDS_MAX`, and the last one for each ask that waits.

    Explanations are made of the former. The latter decide: an ask whose victims have not ended yet is to have
    their room, however many have preempted since.
    """

    def __init__(self) -> None:
        self._records: deque[PreemptionRecord] = deque(maxlen=RECORDS_MAX)
        self._last_of_asks: dict[tuple[str, str], PreemptionRecord] = {}
        """By application and key; some asks may be in it that wait no longer."""
        self._asks_max = RECORDS_MAX
        """With more of them those that wait no longer are forgotten."""
        self.loops = 0
        """Preemptions that repeated one without result, forgotten ones included."""

        self.added = 0
        """Preemptions that were remembered, forgotten ones included."""

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[PreemptionRecord]:
        """Walk the preemptions, the oldest first."""
        return iter(tuple(self._records))

    def add(self, record: PreemptionRecord, waits: Callable[[PreemptionRecord], bool]) -> None:
        """Remember a preemption; `waits` says of one whether its ask waits still."""
        self._records.append(record)
        self.added += 1
        self.loops += bool(record.loop)
        if not record.allocation_key:
            return
        self._last_of_asks[record.application_id, record.allocation_key] = record
        if len(self._last_of_asks) > self._asks_max:
            self._last_of_asks = {name: last for name, last in self._last_of_asks.items() if waits(last)}
            self._asks_max = max(RECORDS_MAX, 2 * len(self._last_of_asks))

    def since(self, added: int) -> tuple[PreemptionRecord, ...]:
        """Return those that were remembered after the first so many."""
        return tuple(self._records)[len(self._records) - min(self.added - added, len(self._records)) :]

    def last_for(self, allocation_key: str, application_id: str) -> PreemptionRecord | None:
        """Return the last preemption for an ask that waits, `None` if there is none."""
        return self._last_of_asks.get((application_id, allocation_key))

    def explain(self, allocation_key: str) -> tuple[str, ...]:
        """Explain every remembered preemption that an allocation key took part in, as ask or as victim."""
        return tuple(
            line
            for record in self._records
            if record.allocation_key == allocation_key
            or any(victim.allocation_key == allocation_key for victim in record.victims)
            for line in record.explain()
        )
