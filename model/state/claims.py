"""Room that is kept for asks: what victims give back, and what is reserved.

Victims end one after the other. The resources of one would go to the next ask, often to one of the
same job for its ended task: the ask that preempted would lack room for ever, and preempt for ever.
So an ask that has preempted has a *claim*, from then until it is placed or withdrawn. In each queue above the
ask the claim *holds* what the ask needs, less what its victims below that queue use still. As they end, their
resources are held, and the headroom of all other asks is less by that. The room in the limits of the ask's
user and group is held in the same way.

A claim ends if its ask is not placed within `CLAIM_GRACE_NS` after its last victim has ended, or has no node
then: so room is never held for long. Where its reservations end with it this time begins with the next cycle.
Victims without a claim, since their ask was withdrawn, are *unclaimed*: the next ask that preempts takes the
room that they will give back before it chooses further victims.

A gang that is placed whole has one claim for the sum of its members; each of its nodes is reserved for one of
them. The claim ends for all if one member is withdrawn, and the reservations end with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, NamedTuple, final

from ..limits.usage_tree import Held
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import settle
from ..resources.comparisons import prune
from ..resources.resource import EMPTY, Resource, add, component_wise_min, subtract, total_of
from ..values.allocation import Ask
from ..values.messages import User

CLAIM_GRACE_NS: Final = 15 * 1_000_000_000
"""How long a claim lasts after its last victim has ended: until the ask may try to preempt again."""


class EndingVictim(NamedTuple):
    """A victim that has not ended yet."""

    application_id: str
    allocation_key: str
    user: User
    queue: Queue
    node_id: str
    resource: Resource


@final
class PreemptionClaim:
    """The claim of one ask, or of all members of a gang.

    Args:
        entry: The application.
        asks: The ask, or the members.
        ending: The victims.
        node_of: By the key of each ask, the node that it is to have; nothing where it needs its node.
        begun_ns: When it preempted.
        ends_reservations: Whether its reservations end with it.
    """

    __slots__ = (
        *("_held", "asks", "begun_ns", "ended_ns", "ending", "ends_reservations", "entry", "is_counted"),
        *("node_of", "reserving", "size"),
    )

    def __init__(
        self,
        entry: ApplicationEntry,
        asks: Iterable[Ask],
        ending: Iterable[EndingVictim],
        node_of: Mapping[str, str],
        begun_ns: int,
        *,
        ends_reservations: bool,
    ) -> None:
        self.entry: Final = entry
        self.asks = {ask.allocation_key: ask for ask in asks}
        self.size = total_of(ask.resource for ask in self.asks.values())
        """The request of all of them."""
        self.node_of = node_of
        self.begun_ns = begun_ns
        self.ends_reservations = ends_reservations
        by_node = {node_id: key for key, node_id in node_of.items()}
        self.reserving = {key: node_id for node_id, key in by_node.items()} or dict.fromkeys(self.asks, "")
        """The keys of the asks that are to have a node reserved, one for each node."""
        self.ending = {each.allocation_key: each for each in ending}
        self.ended_ns = 0
        """When its last victim ended, or the first cycle after that; of no meaning before."""
        self.is_counted = not ends_reservations
        """Whether the time runs after which it ends: a gang has no other reservation to wait with, so that it
        runs no sooner than in the first cycle."""
        self._held: dict[Queue, Resource] = {}

    @property
    def ask(self) -> Ask:
        """The ask, or the first member."""
        return next(iter(self.asks.values()))

    def resize(self, ask: Ask) -> None:
        """Take the new size of an ask."""
        self.asks[ask.allocation_key] = ask
        self.size = total_of(each.resource for each in self.asks.values())
        self.hold()

    def held_in(self, queue: Queue) -> Resource:
        """Return what the claim holds in a queue above its ask."""
        return self._held.get(queue, EMPTY)

    def held_in_all(self, queues: Sequence[Queue]) -> Resource:
        """Return what the claim holds in each of some queues above its ask."""
        smallest: Resource | None = None
        for queue in queues:
            held = self.held_in(queue)
            smallest = held if smallest is None else component_wise_min(held, smallest)
        return smallest or EMPTY

    def needed(self, level: Queue, counts: Callable[[EndingVictim], bool] = lambda _: True) -> Resource:
        """Return what the ask needs in a queue above it beyond what its victims below that queue use still.

        Args:
            level: The queue.
            counts: Tells which of the victims count.
        """
        victims = (each for each in self.ending.values() if level in each.queue.above and counts(each))
        coming = total_of(each.resource for each in victims)
        asked = self.size.items()
        return Resource({name: more for name, one in asked if (more := one - coming.get(name)) > 0})

    def hold(self) -> None:
        """Hold what is needed now in each queue above the ask."""
        for level in self.entry.queue.above:
            needed = self.needed(level)
            level.change_held(prune(subtract(needed, self.held_in(level))))
            self._held[level] = needed
        settle(self.entry.queue)

    def free(self) -> None:
        """Hold nothing."""
        for level, held in self._held.items():
            level.change_held(subtract(EMPTY, held))
        self._held.clear()
        settle(self.entry.queue)


@final
class PreemptionClaims:
    """The claims of a partition, and the victims that end without one."""

    def __init__(self) -> None:
        self.by_key: dict[str, PreemptionClaim] = {}
        """By the keys of their asks, the oldest first; hot paths look whether there are any."""
        self.left_reserved: dict[str, ApplicationEntry] = {}
        """Asks whose reservations end, as their claims have ended, with their applications, by key."""
        self._ended: dict[str, PreemptionClaim] = {}
        """Those whose victims have all ended, by the key of the first ask."""
        self._by_victim: dict[str, PreemptionClaim] = {}
        self._unclaimed: dict[str, EndingVictim] = {}
        self.preempted_ns: dict[str, int] = {}
        """When allocations were preempted that have not ended yet, by key."""

    def __iter__(self) -> Iterator[PreemptionClaim]:
        """Walk the claims, the oldest first."""
        return iter(dict.fromkeys(self.by_key.values()))

    def find(self, allocation_key: str) -> PreemptionClaim | None:
        """Return the claim of an ask, if it has one."""
        return self.by_key.get(allocation_key)

    def begin(
        self,
        entry: ApplicationEntry,
        asks: Collection[Ask],
        ending: Iterable[EndingVictim],
        now_ns: int,
        node_of: Mapping[str, str] = MappingProxyType({}),
        *,
        ends_reservations: bool = False,
    ) -> None:
        """Begin the claim of an ask, or a gang, that has just preempted, see `PreemptionClaim`.

        Some of the victims may have been unclaimed.
        """
        claim = PreemptionClaim(entry, asks, ending, node_of, now_ns, ends_reservations=ends_reservations)
        for key in claim.asks:
            self.end(key)
            self.by_key[key] = claim
        for key in claim.reserving:
            self.left_reserved.pop(key, None)
        for key in claim.ending:
            self._unclaimed.pop(key, None)
            self._by_victim[key] = claim
            self.preempted_ns.setdefault(key, now_ns)
        self._note_ended(claim, now_ns)
        claim.hold()

    def _note_ended(self, claim: PreemptionClaim, now_ns: int) -> None:
        if not claim.ending:
            claim.ended_ns = now_ns
            self._ended[claim.ask.allocation_key] = claim

    def end(self, allocation_key: str) -> bool:
        """End the claim of an ask, and return whether it had one; its victims are unclaimed from then on."""
        claim = self.by_key.get(allocation_key)
        if claim is None:
            return False
        for key in claim.asks:
            del self.by_key[key]
        if claim.ends_reservations:
            self.left_reserved.update(dict.fromkeys(claim.reserving, claim.entry))
        self._ended.pop(claim.ask.allocation_key, None)
        claim.free()
        for key, victim in claim.ending.items():
            del self._by_victim[key]
            self._unclaimed[key] = victim
        return True

    def resize(self, ask: Ask) -> None:
        """Take the new size of an ask, if it has a claim."""
        claim = self.by_key.get(ask.allocation_key)
        if claim is not None:
            claim.resize(ask)

    def note_unclaimed(self, victims: Iterable[EndingVictim], now_ns: int) -> None:
        """Note victims that end for no ask."""
        for each in victims:
            self._unclaimed[each.allocation_key] = each
            self.preempted_ns.setdefault(each.allocation_key, now_ns)

    def note_end(self, allocation_key: str, now_ns: int) -> PreemptionClaim | None:
        """Note that an allocation has ended that was preempted; return the claim that it ended for."""
        self._unclaimed.pop(allocation_key, None)
        self.preempted_ns.pop(allocation_key, None)
        claim = self._by_victim.pop(allocation_key, None)
        if claim is not None:
            del claim.ending[allocation_key]
            self._note_ended(claim, now_ns)
            claim.hold()
        return claim

    @contextmanager
    def lifted(self, allocation_key: str) -> Iterator[None]:
        """Let an ask use what its own claim holds; the RM is not asked meanwhile: others might go on."""
        claim = self.by_key.get(allocation_key)
        if claim is None:
            yield
            return
        claim.free()
        try:
            yield
        finally:
            if self.by_key.get(allocation_key) is claim:
                claim.hold()

    def next_due_ns(self) -> int | None:
        """Return when time ends the next claim, `None` if it ends none."""
        if not self._ended:
            return None
        return min(claim.ended_ns for claim in self._ended.values()) + CLAIM_GRACE_NS

    def end_due(self, now_ns: int) -> bool:
        """End the claims whose asks were not placed in time, in a cycle; return whether any has ended."""
        if not self._ended:
            return False
        for claim in self._ended.values():
            if not claim.is_counted:
                claim.is_counted, claim.ended_ns = True, now_ns
        before_ns = now_ns - CLAIM_GRACE_NS
        due = [key for key, claim in self._ended.items() if claim.ended_ns <= before_ns]
        for key in due:
            self.end(key)
        return bool(due)

    def held_of_holder(self, is_holder: Callable[[str, User, Queue], bool], but_for: str = "") -> Held:
        """Return what is held of the limits of a user or a group, by the path of the queue.

        Args:
            is_holder: Says of an application, its user and its leaf whether the limits of the holder apply.
            but_for: The key of an ask whose own claim does not count.
        """
        held: dict[str, Resource] = {}
        own = self.by_key.get(but_for)
        for claim in self:
            entry = claim.entry
            applies = is_holder(entry.application_id, entry.user, entry.queue)
            if applies and claim is not own:
                for level in entry.queue.above:
                    needed = claim.needed(
                        level, lambda victim: is_holder(victim.application_id, victim.user, victim.queue)
                    )
                    held[level.path] = add(held.get(level.path), needed)
        return held

    def held_on(self, node_id: str, but_for: str) -> Resource:
        """Return what is held on a node for the asks that need it and have preempted there.

        Other asks that have preempted need no such amount: their reservations keep the node for them, but
        for asks that need it, which have precedence.

        Args:
            node_id: The node.
            but_for: The key of an ask whose own claim does not count.
        """
        return total_of(
            claim.needed(claim.entry.queue.above[-1], lambda victim: victim.node_id == node_id)
            for key, claim in self.by_key.items()
            if claim.ask.required_node == node_id and key != but_for
        )

    def unclaimed(self) -> tuple[EndingVictim, ...]:
        """Return the victims that have not ended and are of no claim."""
        return tuple(self._unclaimed.values())

    def validate(self, queues: Iterable[Queue], waiting: Container[str]) -> None:
        """Assert that each queue holds the sum of the claims, and that each claim is of an ask that waits."""
        for queue in queues:
            held = total_of(claim.needed(queue) for claim in self if queue in claim.entry.queue.above)
            assert dict(prune(held).items()) == dict(queue.held.items()), f"{queue} holds {queue.held!r}"
        for key in self.by_key:
            assert key in waiting, f"{key} has a claim: please report"


class ReservedAsk(NamedTuple):
    """An ask that has a reservation."""

    entry: ApplicationEntry
    node_id: str
    ask: Ask


@final
class ReservedAsks:
    """The asks of a partition that have a reservation. Owned by the partition."""

    __slots__ = ("_by_node", "_sizes", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[str, ReservedAsk] = {}
        self._by_node: dict[str, dict[str, ReservedAsk]] = {}
        self._sizes: dict[Queue, Counter[Resource]] = {}

    def __len__(self) -> int:
        return len(self.by_key)

    def get(self, allocation_key: str) -> ReservedAsk | None:
        """Return the ask of that key, `None` if it has no reservation."""
        return self.by_key.get(allocation_key)

    def all(self) -> Collection[ReservedAsk]:
        """Return all of them."""
        return self.by_key.values()

    def on_node(self, node_id: str) -> Collection[ReservedAsk]:
        """Return those that a node is reserved for."""
        return self._by_node.get(node_id, {}).values()

    def sizes_by_leaf(self) -> Iterable[tuple[Queue, Collection[Resource]]]:
        """Return the leaves of these asks, each with the sizes of its asks."""
        return self._sizes.items()

    def add(self, reserved: ReservedAsk) -> None:
        """Note a reservation."""
        ask, leaf = reserved.ask, reserved.entry.queue
        key = ask.allocation_key
        assert key not in self.by_key, f"{key} has a reservation: please report"
        self.by_key[key] = reserved
        self._by_node.setdefault(reserved.node_id, {})[key] = reserved
        self._sizes.setdefault(leaf, Counter())[ask.resource] += 1

    def remove(self, allocation_key: str) -> ReservedAsk:
        """Forget a reservation, and return it."""
        reserved = self.by_key.pop(allocation_key)
        on_node = self._by_node[reserved.node_id]
        del on_node[allocation_key]
        if not on_node:
            del self._by_node[reserved.node_id]
        leaf = reserved.entry.queue
        sizes = self._sizes[leaf]
        sizes[reserved.ask.resource] -= 1
        if not sizes[reserved.ask.resource]:
            del sizes[reserved.ask.resource]
        if not sizes:
            del self._sizes[leaf]
        return reserved
