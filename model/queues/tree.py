"""The queues of a partition: finding, creating, ordering and removing them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final, Protocol, final

from ..configuration.names import AccessControlList
from ..configuration.queue_properties import inherit, read_weight
from ..configuration.schema import QueueConfig
from ..policies.policies import NO_POLICIES, Policies
from ..resources.quantities import INT32_MIN
from ..resources.resource import Resource
from ..values.events import ChangeType
from ..values.facts import EventReports, unheard
from ..values.messages import User
from ..values.states import ObjectEvent, ObjectState
from .bars import Bars
from .order import NEVER_ORDERED, ChildKey, stamp_of
from .queue import Queue, QueueTemplate, waits
from .quota import fair_maximum, is_reached, leave, settle, settle_all, take_shares, validate_lending
from .use_order import KeptUse, take_up_use, use_rank
from .users import after_reload

ROOT: Final = "root"
RECOVERY_NAME: Final = "@recovery@"
RECOVERY_QUEUE: Final = "root.@recovery@"
_ONLY_CHILD: Final[ChildKey] = (0.0, 0.0, 0.0, 0, "")
"""The place of a child without siblings, whatever it uses: deep trees consist of such queues mostly."""
_NAME: Final = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")


class QueueMaker(Protocol):
    """Makes a queue below another one: `Queue` itself, or with its entry in the tree."""

    def __call__(self, name: str, parent: Queue, /, *, is_leaf: bool, managed: bool) -> Queue:
        """Make a queue of that name below a parent."""


def _creation_refusal(path: str, parent: Queue, missing: list[str]) -> str | None:
    """Return why the missing queues of a path may not be created, `None` if they may."""
    if not path.startswith(f"{ROOT}."):
        return f"illegal queue name passed in: {path}"
    if parent.is_leaf:
        return f"creation of queue {path} failed parent is already a leaf: {parent.path}"
    if parent.state is ObjectState.DRAINING:
        return f"cannot add a child queue when queue is marked for deletion: {parent.path}"
    for name in missing:
        if _NAME.fullmatch(name) is None or name == RECOVERY_NAME:
            return f"illegal queue name {name!r} in {path}"
    return None


def _user_weights(config: QueueConfig) -> dict[str, int]:
    """Return the weights that the limits of a queue give to users."""
    weights = [(name, read_weight(limit.weight)) for limit in config.limits for name in limit.users]
    return {name: weight for name, weight in weights if weight is not None}


def _relocate(queue: Queue) -> None:
    """Find the positions of a dynamic queue's settings in a new configuration: those of an equal template."""
    template = queue.parent.template if queue.parent is not None else None
    if template is None or not queue.positions:
        queue.positions = {}
        return
    of_queue = (queue.maximum, queue.guaranteed, queue.max_applications)
    same = of_queue == (template.maximum, template.guaranteed, template.max_applications)
    queue.positions = template.positions if same else {}


@final
class QueueTree:
    """All queues of one partition, with the orders they are scheduled in."""

    def __init__(
        self,
        config: QueueConfig,
        queue_class: type[Queue] = Queue,
        events: EventReports | None = None,
        now_ns: Callable[[], int] | None = None,
        kept: KeptUse | None = None,
        *,
        policies: Policies = NO_POLICIES,
    ) -> None:
        self._queue_class = queue_class
        self._events = events or unheard()
        self.root = queue_class(ROOT, None, is_leaf=False, managed=True)
        if now_ns is not None:
            self.root.now_ns = now_ns
        if kept is not None:
            self.root.departed.begin_with(kept)
        self.root.policies = policies
        self._by_path: dict[str, Queue] = {ROOT: self.root}
        self.bars = Bars()
        """What bars the applications that rest in the leaves."""
        self.version = 0
        """The version of all limits: shares that were computed before the last change are stale."""
        self.has_shares = False
        """Some queue has a quota that is a part of the maximum of its parent."""
        self._fair_max: dict[str, Resource | None] = {}
        self._events.note_queue(ChangeType.ADD, ROOT, managed=True)
        self.load(config)

    # ------------------------------------------------------------------------------------- finding

    def find(self, path: str) -> Queue | None:
        """Return a queue by its full path, whatever the case of its letters."""
        return self._by_path.get(path.lower())

    def __iter__(self) -> Iterator[Queue]:
        """Walk all queues, parents before children, in order of their names."""
        return iter([self._by_path[path] for path in sorted(self._by_path, key=lambda path: path.split("."))])

    def leaves(self) -> list[Queue]:
        """Return the queues that hold applications."""
        return [queue for queue in self if queue.is_leaf or len(queue.entries)]

    def submit_allowed(self, path: str, user: User) -> bool:
        """Return whether a user may submit to an existing queue: by its lists or those of any queue above."""
        queue = self._by_path[path.lower()]
        name, groups = user.name, user.groups
        for level in queue.above:
            if level.submit_acl.allows(name, groups) or level.admin_acl.allows(name, groups):
                return True
        return False

    # -------------------------------------------------------------------------------- configuration

    def load(self, config: QueueConfig) -> None:
        """Take a queue configuration: create, change and mark queues for removal by it."""
        self._apply(self.root, config)
        self.has_shares = take_shares(self)
        self.limits_changed()
        for queue in self:
            take_up_use(queue)
            _take_up_users(self, queue)
            if not queue.managed:
                _relocate(queue)
            self.refresh(queue)
        settle_all(self.root, self)

    def _apply(self, queue: Queue, config: QueueConfig) -> None:
        queue.submit_acl = AccessControlList.parse(config.submit_acl)
        queue.admin_acl = AccessControlList.parse(config.admin_acl)
        queue.managed = True
        queue.positions = config.positions
        if queue.state is not ObjectState.ACTIVE:
            queue.handle(ObjectEvent.START)
        queue.is_leaf = config.is_leaf and queue.parent is not None
        queue.max_applications = config.max_applications
        own = QueueTemplate.of(config.child_template)
        inherited = queue.parent.template if queue.parent is not None else None
        queue.template = None if queue.is_leaf else own or inherited
        parent_properties = queue.parent.properties if queue.parent is not None else {}
        own_properties = inherit(parent_properties, config.properties)
        # A configuration that names the recovery queue does not change its properties.
        queue.apply_properties({} if queue.path == RECOVERY_QUEUE else own_properties)
        queue.user_weights = _user_weights(config)
        if queue.parent is not None:
            queue.set_quota(config.guaranteed, config.max)
            queue.shares = (config.guaranteed_share, config.max_share)
            queue.lend = config.lend or None
        wanted = {child.name.lower(): child for child in config.queues}
        for name, child_config in wanted.items():
            child = queue.children.get(name)
            if child is None:
                child = self._insert(name, queue, is_leaf=child_config.is_leaf, managed=True)
            self._apply(child, child_config)
        for name, child in queue.children.items():
            if name not in wanted and child.managed:
                self._mark_removed(child)

    def _mark_removed(self, queue: Queue) -> None:
        queue.handle(ObjectEvent.REMOVE)
        queue.positions = {}
        for child in queue.children.values():
            if child.managed:
                self._mark_removed(child)

    # ------------------------------------------------------------------------------------- creating

    def create(self, path: str) -> Queue | str:
        """Create a dynamic leaf with every missing queue above it; return it, or why that is impossible.

        All names are checked first, so that nothing is created where one is not allowed.
        """
        queue = self._grow(path.lower(), self._insert)
        if isinstance(queue, Queue):
            self.refresh(queue)
            settle(queue)
        return queue

    def preview(self, path: str) -> Queue | str:
        """Return the leaf that `create` would make, with the queues above it, and create nothing."""
        if path == RECOVERY_QUEUE:
            return Queue(RECOVERY_NAME, self.root, is_leaf=True, managed=False)
        return self._grow(path.lower(), Queue)

    def _grow(self, path: str, make: QueueMaker) -> Queue | str:
        parent, missing = self._deepest(path.split("."))
        refusal = _creation_refusal(path, parent, missing)
        if refusal is not None:
            return refusal
        for position, name in enumerate(missing, start=1):
            parent = make(name, parent, is_leaf=position == len(missing), managed=False)
            self._apply_template(parent)
        return parent

    def _deepest(self, names: list[str]) -> tuple[Queue, list[str]]:
        queue = self.root
        for depth, name in enumerate(names[1:], start=1):
            child = queue.children.get(name)
            if child is None:
                return queue, names[depth:]
            queue = child
        return queue, []

    def _apply_template(self, queue: Queue) -> None:
        """Give a new dynamic queue the settings of its parent's template."""
        assert queue.parent is not None
        template = queue.parent.template
        if template is None:
            return
        if not queue.is_leaf:
            queue.template = template
            take_up_use(queue)
            return
        queue.positions = template.positions
        queue.max_applications = template.max_applications
        queue.apply_properties(template.properties)
        queue.set_quota(template.guaranteed, template.maximum)
        _take_up_users(self, queue)
        queue.lend = template.lend

    def recovery_queue(self) -> Queue:
        """Return the queue of last resort for applications whose creation is forced."""
        existing = self.find(RECOVERY_QUEUE)
        if existing is not None:
            return existing
        return self._insert(RECOVERY_NAME, self.root, is_leaf=True, managed=False)

    def _insert(self, name: str, parent: Queue, *, is_leaf: bool, managed: bool) -> Queue:
        queue = self._queue_class(name, parent, is_leaf=is_leaf, managed=managed)
        if len(parent.children) == 1:
            parent.child_order.stamp = NEVER_ORDERED  # The child so far has no place among others yet.
        parent.children[name] = queue
        self._by_path[queue.path] = queue
        if parent.settings.fair_half_life_ns is not None:
            take_up_use(queue, queue.departed.take(queue.path))
        self._events.note_queue(ChangeType.ADD, queue.path, managed=managed)
        return queue

    # ------------------------------------------------------------------------------------- removing

    def clean(self, *, keep: Container[Queue] = ()) -> list[Queue]:
        """Remove empty queues that are dynamic or marked for removal, children first; not those to keep."""
        removed = []
        for queue in reversed(list(self)):
            parent = queue.parent
            goes = not queue.managed or queue.state is ObjectState.DRAINING
            if parent is None or not goes or queue in keep or not queue.is_empty():
                continue
            del parent.children[queue.name]
            del self._by_path[queue.path]
            leave(queue)
            parent.child_order.place(queue, None)
            parent.child_order.stale.pop(queue.name, None)
            parent.child_order.moving.pop(queue.name, None)
            queue.awake.forget(queue)
            if queue.decayed is not None:
                queue.departed.keep(queue.path, queue.decayed, queue.now_ns())
            self._fair_max.pop(queue.path, None)
            self.refresh(parent)
            self._events.note_queue(ChangeType.REMOVE, queue.path, managed=queue.managed)
            removed.append(queue)
        return removed

    # ------------------------------------------------------------------------------------- ordering

    def limits_changed(self) -> None:
        """Note that a maximum changed, so that shares have to be measured anew."""
        self.version += 1
        self._fair_max.clear()

    def refresh(self, queue: Queue) -> None:
        """Bring priorities and orders up to date, from a queue whose content changed up to the root."""
        priority_changed = queue.refresh_priority()
        for level in queue.above:
            parent = level.parent
            if parent is None:
                return
            priority_changed = parent.refresh_child(level, priority_changed=priority_changed)

    def _place(self, parent: Queue, child: Queue) -> None:
        order = parent.child_order
        order.place(child, _key_in(self, parent, child, order.stamp.now_ns) if waits(child) else None)

    def _fair_maximum(self, queue: Queue) -> Resource | None:
        """Return the fair maximum of a queue; it is kept until a maximum changes."""
        try:
            return self._fair_max[queue.path]
        except KeyError:
            limit = self._fair_max[queue.path] = fair_maximum(queue)
            return limit

    def children_in_order(self, parent: Queue) -> Iterator[Queue]:
        """Walk the children with something waiting, in their order."""
        order = parent.child_order
        order.bring_up_to_date(parent, stamp_of(self, parent), self._place)
        return iter(order)

    def leaves_in_order(self) -> Iterator[Queue]:
        """Walk the leaves with something waiting, as the scheduler visits them."""
        return self._leaves_below(self.root, self.children_in_order)

    def leaves_snapshot(self) -> Iterator[Queue]:
        """Walk the same leaves while others change the orders: the children of each as of one moment."""
        return self._leaves_below(
            self.root, lambda parent: parent.children_now(stamp_of(self, parent), self._place)
        )

    def _leaves_below(self, parent: Queue, children: Callable[[Queue], Iterable[Queue]]) -> Iterator[Queue]:
        for child in children(parent):
            if child.is_leaf:
                yield child
            else:
                yield from self._leaves_below(child, children)

    # ------------------------------------------------------------------------------------ invariants

    def validate(self) -> None:
        """Assert that the tree is one, and that priorities and orders are up to date."""
        for queue in self:
            assert queue.parent is None or queue.parent.children[queue.name] is queue, f"{queue} is lost"
            highest = _highest_in(queue)
            assert queue.priority == highest, f"{queue}: priority {queue.priority} is stale, it is {highest}"
            counted = queue.entries.max_priority() if queue.is_leaf else queue.child_priorities.highest
            assert counted == highest, f"{queue}: priority {counted} is counted, it is {highest}"
            assert queue.priority >= INT32_MIN
        validate_lending(self)


def awake_in_order(tree: QueueTree) -> Iterator[Queue]:
    """Walk those of the leaves with something waiting that do not sleep, as the scheduler visits them."""
    awake = tree.root.awake
    if awake.are_few:
        now_ns = tree.root.now_ns()
        return iter(
            sorted(filter(is_reached, awake.leaves), key=lambda leaf: _keys_on_path(tree, leaf, now_ns))
        )
    return (leaf for leaf in tree.leaves_in_order() if leaf not in awake.asleep)


def _keys_on_path(tree: QueueTree, leaf: Queue, now_ns: int) -> list[ChildKey]:
    """Return what orders leaves as a walk reaches them: the places on the path, from the root down."""
    levels = leaf.above[-2::-1]
    return [_key_in(tree, level.parent, level, now_ns) for level in levels if level.parent is not None]


def _key_in(tree: QueueTree, parent: Queue, child: Queue, now_ns: int) -> ChildKey:
    """Return the place of a child with something waiting."""
    if len(parent.children) == 1:
        return _ONLY_CHILD
    fair_max = tree._fair_maximum(child)  # noqa: SLF001 - of this module: the class has methods enough
    use = _use_in(tree, parent, child, now_ns) if parent.weighs_use else 0.0
    return parent.queue_order.key(child, fair_max, by_priority=parent.settings.priority_sorting, use=use)


def _use_in(tree: QueueTree, parent: Queue, child: Queue, now_ns: int) -> float:
    """Return the place of a child by its use; note whether time alone moves it."""
    rank = use_rank(child, tree._fair_maximum(parent), now_ns)  # noqa: SLF001 - of this module
    if rank.moves:
        parent.child_order.moving[child.name] = child
    else:
        parent.child_order.moving.pop(child.name, None)
    return rank.value


def _take_up_users(tree: QueueTree, leaf: Queue) -> None:
    """Make a leaf order its users, or stop it, by its settings."""
    known = tree._fair_max if tree.find(leaf.path) is leaf else {}  # noqa: SLF001 - same

    def limits() -> Resource | None:
        """Return the limits of shares; explanations ask for them too, and change nothing."""
        return known[leaf.path] if leaf.path in known else fair_maximum(leaf)

    after_reload(leaf, limits)


def _highest_in(queue: Queue) -> int:
    """Return the highest priority of what waits in a queue, from its applications or children."""
    if queue.is_leaf:
        entries = queue.entries.by_id.values()
        return max((each.facts.max_priority for each in entries if each.waits is None), default=INT32_MIN)
    return max((child.exposed_priority for child in queue.children.values()), default=INT32_MIN)
