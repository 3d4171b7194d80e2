"""A queue: its quota, what it uses, and what waits in it. A leaf holds applications, a parent queues.

Each method changes this queue alone. A method that needs another one of the same queue calls it on the class
`Queue`, so that no lock is taken twice where an engine has instrumented the class. Functions of a whole
path, from a leaf up to the root, are in `licorne.model.queues.quota`; each visits one queue after the other
and never two at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never, final

from ..configuration.names import AccessControlList
from ..configuration.policies import PriorityPolicy
from ..configuration.problems import Position
from ..configuration.queue_properties import QueueProperties, evaluate
from ..configuration.schema import ChildTemplateConfig
from ..configuration.shares import Share
from ..marks import Marks
from ..policies.policies import NO_POLICIES, Policies
from ..resources.comparisons import is_zero, prune
from ..resources.decayed_use import DecayedUse, raised_to
from ..resources.quantities import INT32_MAX, INT32_MIN
from ..resources.resource import (
    EMPTY,
    Resource,
    add,
    fits_in_addition,
    is_any_positive,
    resource_from_texts,
    strictly_greater_than_zero,
    subtract,
    subtract_only_existing,
    take_away,
)
from ..values.states import ObjectEvent, ObjectState, next_object_state
from .application_entry import ApplicationEntry
from .child_orders import (
    APPLICATION_ORDERS,
    QUEUE_ORDERS,
    ApplicationOrderRule,
    QueueOrderRule,
    application_order,
    queue_order,
)
from .order import ApplicationOrder, ChildOrder, OrderStamp, PriorityCounts
from .sleep import AwakeLeaves
from .use_order import DepartedUse, counted_use

_DENY: Final = AccessControlList.parse("")
_TAKEN_OVER: Final = (
    *("state", "children", "properties", "settings", "application_order", "queue_order", "template"),
    *("submit_acl", "admin_acl", "guaranteed", "shares"),
    *("maximum", "max_applications", "positions", "allocated", "pending", "preempting", "held"),
    *("running", "accepted_allocating", "priority", "child_order", "child_priorities", "entries"),
    *("quota_preemption_due_ns", "awake", "_claimed", "now_ns", "decayed", "weighs_use"),
    *("departed", "user_weights"),
    *("lend", "withheld", "withheld_below", "lending"),
)
"""The attributes that a stand-in copies from its queue."""


def _limit(resource: Resource | None) -> Resource | None:
    """Return the effective quota: one without any quantity above zero counts as missing."""
    return resource if strictly_greater_than_zero(resource) else None


def _at_no_time() -> int:
    return 0


def exposed_priority(settings: QueueProperties, priority: int) -> int:
    """Return a priority in a queue as its parent sees it: after the queue's offset or fence."""
    match settings.priority_policy:
        case PriorityPolicy.DEFAULT:
            return max(INT32_MIN, min(INT32_MAX, priority + settings.priority_offset))
        case PriorityPolicy.FENCE:
            return settings.priority_offset
        case _:
            assert_never(settings.priority_policy)


def priority_outside(settings: QueueProperties, priority: int) -> int:
    """Return what a priority in a queue counts as among its siblings, without a bound."""
    return settings.priority_offset + (0 if settings.priority_policy.is_fence else priority)


@final
class Queue:
    """One queue. `name`, `path`, `parent` and `above` never change."""

    MARKS: Final = Marks(
        reads=("has_room", "room", "has_place_for", "is_empty"),
        writes=(
            "apply_properties",
            "set_quota",
            "set_maximum_from_nodes",
            "handle",
            "try_charge",
            "charge",
            "release_charge",
            "add_pending",
            "remove_pending",
            "change_preempting",
            "change_held",
            "count_running",
            "count_accepted",
            "forget_accepted",
            "refresh_priority",
            "refresh_child",
            "children_now",
            "try_claim",
            "unclaim",
        ),
    )

    application_order: ApplicationOrderRule = APPLICATION_ORDERS["fifo"]
    queue_order: QueueOrderRule = QUEUE_ORDERS["fair"]
    """How the applications of a leaf are ordered."""
    policies: Policies = NO_POLICIES
    """Those of the partition; of the root."""

    def __init__(self, name: str, parent: Queue | None, *, is_leaf: bool, managed: bool) -> None:
        self.name = name
        self.parent = parent
        self.path: str = name if parent is None else f"{parent.path}.{name}"
        self.above: tuple[Queue, ...] = (self,) if parent is None else (self, *parent.above)
        """The path upwards: this queue, its parent, ..., the root."""
        self.is_leaf = is_leaf
        self.managed = managed
        self.state = ObjectState.ACTIVE
        self.children: dict[str, Queue] = {}
        self.properties: Mapping[str, str] = {}
        self.settings: QueueProperties = evaluate({}, is_leaf=is_leaf)
        self.template: QueueTemplate | None = None
        self.submit_acl = self.admin_acl = _DENY
        self.guaranteed: Resource | None = None
        self.maximum: Resource | None = None
        self.lend: Resource | None = None
        """The part of its guarantee that others may use, by type (`quota`); all of a type that it omits."""
        self.withheld = self.withheld_below = EMPTY
        """The resources that it and those below it keep back from others beyond their use; a sum of
        children."""
        self.lending = False
        """Of the root: some queue keeps something back, or a dynamic queue might."""
        # Its guarantee and its maximum, as parts of the maximum of its parent.
        self.shares: tuple[Share | None, Share | None] = (None, None)
        self.max_applications = self.running = 0
        self.positions: Mapping[str, Position] = {}
        """Where its settings stand in the configuration file."""
        self.allocated = self.pending = self.preempting = self.held = EMPTY
        """The last is room that is kept for asks that have preempted (`licorne.model.state.claims`)."""
        self.accepted_allocating: dict[str, None] = {}
        """Applications that are Accepted and have placeholders placed: they count as running."""
        self.priority = INT32_MIN
        """The highest priority of what waits here, before the queue's own policy."""
        self.child_order = ChildOrder()
        self.child_priorities = PriorityCounts()
        """The priorities that the children expose."""
        self.entries = ApplicationOrder()
        self.awake: AwakeLeaves = AwakeLeaves() if parent is None else parent.awake
        """The leaves of the whole tree that a cycle looks at."""
        self.quota_preemption_due_ns: int | None = None
        self.now_ns: Callable[[], int] = _at_no_time if parent is None else parent.now_ns
        """The time of the partition; the tree sets that of the root."""
        self.decayed: DecayedUse | None = None
        """Its use, as far as it counts, where its parent has a half-life (`use_order`)."""
        self.departed: DepartedUse = DepartedUse() if parent is None else parent.departed
        """The kept use of queues and users of the whole tree that are gone."""
        self.user_weights: Mapping[str, int] = {}
        """The weights of users in a leaf that orders them."""
        self.weighs_use = False
        """Its children are ordered by what they use or have used above their guarantees."""
        self._claimed = False
        """A cycle that shares the partition with others places something here, see `scheduling.cycle`."""

    def __repr__(self) -> str:
        return f"Queue({self.path})"

    # ----------------------------------------------------------------------------------- settings

    def apply_properties(self, properties: Mapping[str, str]) -> None:
        """Take properties and what they mean for this queue."""
        self.properties = dict(properties)
        self.settings = evaluate(properties, is_leaf=self.is_leaf)
        settings, policies = self.settings, self.above[-1].policies
        self.application_order = application_order(settings.application_sort_policy, policies)
        self.queue_order = queue_order(settings.queue_sort_policy, policies)

    def set_quota(self, guaranteed: Resource | None, maximum: Resource | None) -> None:
        """Take both quotas; one without any quantity above zero means none."""
        self.guaranteed = _limit(guaranteed)
        self.maximum = _limit(maximum)
        if self.decayed is not None:
            _remember(self, self.decayed)

    def set_maximum_from_nodes(self, capacity: Resource) -> None:
        """Take the sum of the nodes' capacities as the maximum of the root."""
        pruned = prune(capacity)
        self.maximum = None if is_zero(pruned) else pruned

    def handle(self, event: ObjectEvent) -> bool:
        """Apply an event; return whether the state changed."""
        before = self.state
        self.state = next_object_state(before, event)
        return self.state is not before

    # --------------------------------------------------------------------------------------- quota

    def has_room(self, resource: Resource, own: Resource = EMPTY, beside: Resource = EMPTY) -> bool:
        """Return whether the resource fits the maximum; for the root a type that no node has is missing.

        Held resources count as allocated, except `own`: those of the claim of the ask itself. So do those
        withheld `beside` the path of the ask (`quota`).
        """
        maximum = self.maximum
        is_root = self.parent is None
        if maximum is None:
            return not is_root
        used = self.allocated if self.held is EMPTY else subtract(add(self.allocated, self.held), own)
        used = used if beside is EMPTY else add(used, beside)
        return fits_in_addition(maximum, used, resource, undefined_unlimited=not is_root)

    def try_charge(self, resource: Resource, beside: Resource = EMPTY) -> bool:
        """Count the resource as allocated if it fits the maximum, in one atomic step.

        Resources that are withheld `beside` the path count as allocated.
        """
        maximum = self.maximum  # The rest is `has_room`, without its call for each queue of a path.
        is_root = self.parent is None
        if maximum is None:
            if is_root:
                return False
        else:
            used = self.allocated if self.held is EMPTY else add(self.allocated, self.held)
            used = used if beside is EMPTY else add(used, beside)
            if not fits_in_addition(maximum, used, resource, undefined_unlimited=not is_root):
                return False
        self.allocated = add(self.allocated, resource)
        if self.decayed is not None:
            _remember(self, self.decayed)
        return True

    def charge(self, resource: Resource) -> None:
        """Count the resource as allocated, whatever the maximum."""
        self.allocated = add(self.allocated, resource)
        if self.decayed is not None:
            _remember(self, self.decayed)

    def release_charge(self, resource: Resource) -> None:
        """Count the resource as allocated no longer."""
        left = take_away(self.allocated, resource)
        assert left is not None, (
            f"queue {self.path}: {resource!r} is released but {self.allocated!r} is allocated: please report"
        )
        self.allocated = left
        if self.decayed is not None:
            _remember(self, self.decayed)

    def add_pending(self, resource: Resource) -> None:
        """Count the resource as waiting."""
        self.pending = add(self.pending, resource)

    def remove_pending(self, resource: Resource) -> None:
        """Count the resource as waiting no longer."""
        left = take_away(self.pending, resource)
        assert left is not None, (
            f"queue {self.path}: {resource!r} waits no longer but {self.pending!r} waits: please report"
        )
        self.pending = left

    def change_preempting(self, change: Resource) -> None:
        """Count more or, by negative quantities, less as being preempted."""
        self.preempting = prune(add(self.preempting, change))

    def change_held(self, change: Resource) -> None:
        """Hold more or, by negative quantities, less for asks that have preempted."""
        self.held = prune(add(self.held, change)) or EMPTY

    def room(self, beside: Resource = EMPTY) -> Resource | None:
        """Return the maximum less what is allocated, held or withheld `beside`, by type; `None` without."""
        room = subtract_only_existing(self.maximum, self.allocated)
        room = room if self.held is EMPTY else subtract_only_existing(room, self.held)
        return room if beside is EMPTY else subtract_only_existing(room, beside)

    # -------------------------------------------------------------------------------- applications

    def has_place_for(self, application_id: str) -> bool:
        """Return whether an application may start to run here."""
        limit = self.max_applications
        if not limit or application_id in self.accepted_allocating:
            return True
        return self.running + len(self.accepted_allocating) + 1 <= limit

    def count_running(self, application_id: str, change: int) -> None:
        """Count an application that starts (1) or ceases (-1) to run."""
        if change > 0:
            self.accepted_allocating.pop(application_id, None)
        self.running += change
        assert self.running >= 0, f"queue {self.path}: {self.running} applications run: please report"

    def count_accepted(self, application_id: str) -> None:
        """Count an application that has placeholders placed but does not run yet."""
        self.accepted_allocating[application_id] = None

    def forget_accepted(self, application_id: str) -> None:
        """Count an application no longer that is gone."""
        self.accepted_allocating.pop(application_id, None)

    # ------------------------------------------------------------------------------------- priority

    @property
    def is_draining(self) -> bool:
        """Whether the queue is to go away once it is empty."""
        return self.state is ObjectState.DRAINING

    @property
    def exposed_priority(self) -> int:
        """The priority that the parent sees: after the queue's offset or fence."""
        return self.priority if self.priority == INT32_MIN else exposed_priority(self.settings, self.priority)

    def refresh_priority(self) -> bool:
        """Find the highest priority of what waits here; return whether it changed."""
        if self.is_leaf:
            highest = self.entries.max_priority()
        else:
            members = ((child.name, child.exposed_priority) for child in self.children.values())
            self.child_priorities.recount(members)
            highest = self.child_priorities.highest
        changed = highest != self.priority
        self.priority = highest
        return changed

    # ---------------------------------------------------------------------------------------- order

    def refresh_child(self, child: Queue, *, priority_changed: bool) -> bool:
        """Have the place of a child found before the next walk; return whether the priority here changed."""
        self.child_order.stale[child.name] = child
        if not priority_changed or self.is_leaf:  # a leaf may have children that drain
            return False
        before, counts = self.priority, self.child_priorities
        counts.note(child.name, child.exposed_priority)
        self.priority = counts.highest
        return self.priority != before

    def children_now(self, stamp: OrderStamp, place: Callable[[Queue, Queue], None]) -> list[Queue]:
        """Return the children with something waiting, in their order.

        Args:
            stamp: The values that decide the places besides the children.
            place: Finds the place of a child below this queue; reads the child and does not change it.
        """
        order = self.child_order
        order.bring_up_to_date(self, stamp, place)
        return list(order)

    def try_claim(self) -> bool:
        """Claim this leaf among the cycles that share the partition; return whether it was free."""
        claimed = self._claimed
        self._claimed = True
        return not claimed

    def unclaim(self) -> None:
        """Give up the claim of the leaf."""
        self._claimed = False

    def is_empty(self) -> bool:
        """Return whether the queue holds neither queues nor applications."""
        return not self.children and not len(self.entries)

    def entry(self, application_id: str) -> ApplicationEntry | None:
        """Return the entry of an application in this leaf."""
        return self.entries.get(application_id)


def _remember(queue: Queue, use: DecayedUse) -> None:
    """Count what is in use from now on."""
    queue.decayed = raised_to(use, counted_use(queue), queue.now_ns())


def stand_in_for(queue: Queue) -> Queue:
    """Return a queue that has all that another one has, to try other settings on it.

    Its new settings are its own: the queue keeps its settings. Its children, applications and counts are
    those of the queue, and only to be read.
    """
    twin = Queue(queue.name, queue.parent, is_leaf=queue.is_leaf, managed=queue.managed)
    for name in _TAKEN_OVER:
        setattr(twin, name, getattr(queue, name))
    return twin


def waits(queue: Queue) -> bool:
    """Return whether something waits in a queue that the scheduler visits."""
    return is_any_positive(queue.pending) and queue.state is not ObjectState.STOPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTemplate:
    """A template; a quota without any quantity above zero, and a property without text, count as absent."""

    max_applications: int
    properties: Mapping[str, str]
    guaranteed: Resource | None
    maximum: Resource | None
    lend: Resource | None = None
    """`EMPTY` is never here: a template that names no type lends all."""
    positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)
    """Where its settings stand, by the names of `QueueConfig.positions`."""

    @classmethod
    def of(cls, config: ChildTemplateConfig | None) -> QueueTemplate | None:
        """Return the template of a configuration, `None` for an empty one."""
        if config is None or config.is_empty:
            return None
        guaranteed = resource_from_texts(config.guaranteed)
        maximum = resource_from_texts(config.max)
        return cls(
            max_applications=config.max_applications,
            properties={name: text for name, text in config.properties.items() if name and text},
            guaranteed=guaranteed if strictly_greater_than_zero(guaranteed) else None,
            maximum=maximum if strictly_greater_than_zero(maximum) else None,
            lend=resource_from_texts(config.lend) or None,
            positions=config.positions,
        )
