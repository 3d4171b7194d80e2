"""An explanation: all that is known of why an application waits, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..applications.report import Noted, TaskGroupCounts
from ..applications.state import ApplicationState
from ..placement.requests import RuleOutcome
from ..resources.resource import Resource
from ..state.preemption_log import PreemptionRecord, VictimRecord
from ..values.users import User
from .blockers import Blocker
from .node_summary import NodeSummary
from .places import Place
from .planned_starts import PlannedStart


class AskStatus(Enum):
    """The status of an ask."""

    WAITING = "waits"
    REPLACING = "takes the place of its placeholder once the resource manager has confirmed its end"
    PLACED = "runs"
    LEAVING = "runs until the resource manager confirms its end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The gang of an application: it runs when the placeholders that are placed are all that it announced."""

    announced: Resource
    placed: Resource
    hard: bool
    task_groups: tuple[TaskGroupCounts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskExplanation:
    """One ask: where it runs, or everything that blocks it.

    `node_id` is where it runs, `reserved_node` what is reserved for it; the empty text for none. `place` is
    its place among the waiting asks of its application. `nodes` is `None` if the nodes do not decide.
    A waiting ask without blockers, whose application has none either, is placed when its turn comes.
    """

    allocation_key: str
    status: AskStatus
    resource: Resource
    priority: int
    created_at_ns: int
    placeholder: bool = False
    task_group_name: str = ""
    required_node: str = ""
    node_id: str = ""
    reserved_node: str = ""
    place: Place | None = None
    blockers: tuple[Blocker, ...] = ()
    nodes: NodeSummary | None = None
    noted: tuple[Noted, ...] = ()
    planned_start: PlannedStart | None = None
    """When it is expected to start; `None` where the queues do not backfill."""
    ending: tuple[VictimRecord, ...] = ()
    """What it has preempted and waits for: the resource manager has not confirmed that these have ended."""
    ending_since_ns: int | None = None
    """When it preempted them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One application at one moment.

    `limit_group` is the group whose limits it counts against, the empty text for none. `blockers` block all
    its asks. `places` are its place in its queue, then the place of that queue among its siblings, and so on
    up. `asks` are the waiting ones in the order in which they are tried, then the others. `rules` is what the
    placement rules said of an application that was rejected. `preemptions` are those that it took part in,
    the oldest first, as far as the partition remembers, and `loops` how many of them repeat one without
    result.
    """

    time_ns: int
    partition: str
    application_id: str
    state: ApplicationState
    state_text: str
    state_since_ns: int | None
    submitted_at_ns: int
    finished_at_ns: int | None
    user: User
    queue_path: str
    limit_group: str = ""
    is_draining: bool = False
    rejection: str = ""
    rules: tuple[RuleOutcome, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    places: tuple[Place, ...] = ()
    gang: Gang | None = None
    asks: tuple[AskExplanation, ...] = ()
    preemptions: tuple[PreemptionRecord, ...]

    @property
    def loops(self) -> int:
        """How many of the preemptions repeat one that had no result."""
        return sum(bool(record.loop) for record in self.preemptions)

    @property
    def waiting(self) -> tuple[AskExplanation, ...]:
        """The asks that wait, in the order in which they are tried."""
        return tuple(ask for ask in self.asks if ask.status is AskStatus.WAITING)

    def ask(self, allocation_key: str) -> AskExplanation | None:
        """Return the explanation of one ask, `None` if the application has none with this key."""
        return next((ask for ask in self.asks if ask.allocation_key == allocation_key), None)

    def preemptions_of(self, allocation_key: str) -> tuple[PreemptionRecord, ...]:
        """Return the preemptions that an allocation was a victim of."""
        return tuple(
            record
            for record in self.preemptions
            if any(
                victim.allocation_key == allocation_key and victim.application_id == self.application_id
                for victim in record.victims
            )
        )
