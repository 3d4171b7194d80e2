"""The documents of preemptions, as data."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

from ....model.state.preemption_log import PreemptionCause, VictimNeed
from .fields import Names, Quantities, TimeNs, names_of


class FramePrioritiesDocument(TypedDict):
    """Two priorities where they are compared."""

    frame: str
    """The first queue that the ask and the victim are in; empty for priorities as they are written."""
    ask: int
    victim: int


class VictimDocument(TypedDict):
    """An allocation that was chosen to end."""

    allocationKey: str
    applicationID: str
    queueName: str
    nodeID: str
    resource: Quantities
    reason: str
    neededFor: Annotated[str, names_of(VictimNeed)]
    """What would lack room without it."""
    gives: Names
    """The types that it gives to a guarantee; empty where none is served."""
    priorities: FramePrioritiesDocument | None
    """Absent where a maximum is enforced."""


class PreemptorDocument(TypedDict):
    """An ask that a preemption makes room for, and its node."""

    allocationKey: str
    applicationID: str
    queueName: str
    nodeID: str
    resource: Quantities


class QueueBalanceDocument(TypedDict):
    """What a queue is owed, and uses above its guarantee: before a preemption, and after it."""

    queueName: str
    guaranteed: Quantities | None
    owedBefore: Quantities
    owedAfter: Quantities
    aboveBefore: Quantities
    aboveAfter: Quantities


class NodeRoomDocument(TypedDict):
    """What a node has left before a preemption, and once its victims have ended and its asks run."""

    nodeID: str
    before: Quantities
    after: Quantities


class JustificationDocument(TypedDict):
    """The figures of a preemption, by which it can be checked."""

    preemptors: list[PreemptorDocument]
    """What it is for; empty where a maximum is enforced."""
    queues: list[QueueBalanceDocument]
    """Each queue that an ask or a victim is in."""
    nodes: list[NodeRoomDocument]
    takenOver: Names
    """What ended already for no ask, and ends for this one from now on."""


class PreemptionDocument(TypedDict):
    """A preemption and its victims."""

    time: TimeNs
    cause: Annotated[str, names_of(PreemptionCause)]
    queueName: str
    applicationID: str
    allocationKey: str
    nodeID: str
    reason: str
    loop: str
    """That it repeats an earlier one without effect, in words; empty if it does not."""
    victims: list[VictimDocument]
    justification: JustificationDocument
