"""The holdings of an application: its allocations, the swaps that are under way, and their sums.

A gang makes progress when the last of its members is there. A member that comes in the place of one that has
ended does not begin the time of all anew: one that restarts again and again would keep the whole gang from
being preempted for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..resources.comparisons import component_wise_max, equals, prune
from ..resources.decayed_use import TrackedResource
from ..resources.resource import EMPTY, Resource, add, fits, is_at_least, subtract, take_away, total_of
from ..values.allocation import Allocation

_SECOND_NS: Final = 1_000_000_000
_NOTHING: Final = TrackedResource()
"""Shared by all that have used nothing; nothing is ever added to it."""


def less(total: Resource, part: Resource) -> Resource:
    """Return a sum without one of its parts."""
    left = take_away(total, part)
    assert left is not None, f"expected a part of {total!r}, got {part!r}: please report"
    return left


@final
class HeldAllocation:
    """One allocation and its marks. Owned by the application.

    `released` and `preempted` exclude each other: an allocation that the RM was asked to end is not a victim,
    and the RM is not asked twice to end a victim.
    """

    __slots__ = ("allocation", "checkpoint_ns", "gang_since_ns", "preempted", "released", "swap")

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.released = False
        self.preempted = False
        self.checkpoint_ns: int | None = None
        """When the RM reported last that the work is saved."""
        self.swap: Allocation | None = None
        """Of a placeholder: the real allocation that replaces it once the RM confirms its end."""
        self.gang_since_ns: int | None = None
        """Of a placeholder or a member of a gang: since when the gang was as large as when this one came."""

    @property
    def is_leaving(self) -> bool:
        """Whether it is ending: the RM was asked to end it, or it is a victim."""
        return self.released or self.preempted

    def copy(self) -> HeldAllocation:
        """Return a copy that may leave the application."""
        copy = HeldAllocation(self.allocation)
        copy.released = self.released
        copy.preempted = self.preempted
        copy.swap = self.swap
        copy.checkpoint_ns = self.checkpoint_ns
        copy.gang_since_ns = self.gang_since_ns
        return copy


@final
class Holdings:
    """The placed and swapping allocations of one application, counted. Owned by the application."""

    __slots__ = (
        "allocated",
        "gang",
        "most_used",
        "placed",
        "placeholder_allocated",
        "placeholders",
        "swapping",
        "used",
        "used_placeholder",
        "used_preempted",
    )

    def __init__(self) -> None:
        self.placed: dict[str, HeldAllocation] = {}
        self.placeholders: dict[str, dict[str, HeldAllocation]] = {}
        """Those of `placed` that are placeholders, by task group and key, in the order they were placed."""
        self.swapping: dict[str, str] = {}
        """Key of the real allocation -> key of the placeholder that it is to replace."""
        self.allocated = EMPTY
        self.placeholder_allocated = EMPTY
        self.most_used = EMPTY
        self.gang: GangGrowth | None = None
        """Made with the first placeholder or member: without a gang it would only cost memory."""
        self.forget_usage()

    def forget_usage(self) -> None:
        """Forget what was used, and how long."""
        self.used = self.used_preempted = self.used_placeholder = _NOTHING

    # ---------------------------------------------------------------------------------- allocations

    def add(self, allocation: Allocation, *, of_gang: bool = False) -> None:
        """Count an allocation; `of_gang`: a member of a gang, though it has replaced no placeholder."""
        ask = allocation.ask
        self.placed[ask.allocation_key] = placed = HeldAllocation(allocation)
        if of_gang or ask.placeholder or allocation.placeholder_created_at_ns is not None:
            self.note_member(ask.allocation_key)
        elif self.gang is not None:
            self.gang.add_again(placed)
        if ask.placeholder:
            self.placeholders.setdefault(ask.task_group_name, {})[ask.allocation_key] = placed
            before = self.placeholder_allocated
            used = self.placeholder_allocated = add(before, ask.resource)
        else:
            before = self.allocated
            used = self.allocated = add(before, ask.resource)
        self._note_most(before, used)

    def note_member(self, allocation_key: str) -> None:
        """Count an allocation as a placeholder or a member of a gang."""
        placed = self.placed[allocation_key]
        if placed.gang_since_ns is None:
            self.gang = self.gang or GangGrowth()
            self.gang.add(placed)

    def add_real(self, allocations: Sequence[Allocation]) -> None:
        """Count real allocations, at once."""
        placed = self.placed
        for allocation in allocations:
            placed[allocation.ask.allocation_key] = HeldAllocation(allocation)
        before = self.allocated
        used = self.allocated = add(before, total_of([allocation.ask.resource for allocation in allocations]))
        self._note_most(before, used)

    def _note_most(self, before: Resource, used: Resource) -> None:
        most = self.most_used
        if most is before or fits(used, most):
            # As long as nothing has ended, what is used is the most there was, and grows.
            self.most_used = used
        elif not is_at_least(most, used):
            self.most_used = component_wise_max(most, used)

    def end(self, allocation_key: str, now_ns: int) -> Allocation:
        """Count an allocation no longer; return it."""
        placed = self.placed.pop(allocation_key)
        self._track(placed, now_ns)
        if self.gang is not None and self.gang.remove(placed):
            self.gang = None
        ask = placed.allocation.ask
        if ask.placeholder:
            self.placeholder_allocated = less(self.placeholder_allocated, ask.resource)
            of_group = self.placeholders[ask.task_group_name]
            del of_group[allocation_key]
            if not of_group:
                del self.placeholders[ask.task_group_name]
        else:
            self.allocated = less(self.allocated, ask.resource)
        return placed.allocation

    def end_all(self, now_ns: int) -> None:
        """Count nothing any longer."""
        for placed in self.placed.values():
            self._track(placed, now_ns)
        self.placed.clear()
        self.gang = None
        self.placeholders.clear()
        self.allocated = self.placeholder_allocated = EMPTY

    def resize(self, placed: HeldAllocation, resource: Resource) -> None:
        """Give an allocation another size."""
        old = placed.allocation.ask.resource
        placed.allocation = placed.allocation.resized(resource)
        if placed.allocation.ask.placeholder:
            self.placeholder_allocated = prune(add(subtract(self.placeholder_allocated, old), resource))
        else:
            self.allocated = prune(add(subtract(self.allocated, old), resource))

    def release(self, allocation_key: str) -> bool:
        """Note that the RM is asked to end an allocation; `False` if that is under way or it is a victim."""
        placed = self.placed.get(allocation_key)
        if placed is None or placed.is_leaving:
            return False
        placed.released = True
        return True

    def _track(self, placed: HeldAllocation, now_ns: int) -> None:
        allocation = placed.allocation
        if placed.preempted:
            tracked = self.used_preempted = _own(self.used_preempted)
        elif allocation.ask.placeholder:
            tracked = self.used_placeholder = _own(self.used_placeholder)
        else:
            tracked = self.used = _own(self.used)
        seconds = max(0, now_ns - allocation.bound_at_ns) // _SECOND_NS
        tracked.aggregate(allocation.instance_type, allocation.ask.resource, seconds)

    # ---------------------------------------------------------------------------------------- swaps

    def begin_swap(self, allocation: Allocation, placeholder: HeldAllocation) -> None:
        """Begin a swap: the allocation replaces the placeholder once that has ended."""
        placeholder.released = True
        placeholder.swap = allocation
        self.swapping[allocation.ask.allocation_key] = placeholder.allocation.ask.allocation_key

    def take_swap(self, placeholder_key: str) -> Allocation | None:
        """End a swap; return the allocation that was to replace the placeholder, `None` without a swap."""
        placed = self.placed.get(placeholder_key)
        if placed is None or placed.swap is None:
            return None
        real, placed.swap = placed.swap, None
        del self.swapping[real.ask.allocation_key]
        return real

    def drop_swaps(self) -> tuple[Allocation, ...]:
        """Cancel all swaps that are under way; return the allocations that hold room for them."""
        swaps = []
        for placeholder_key in tuple(self.swapping.values()):
            real = self.take_swap(placeholder_key)
            assert real is not None, f"the swap of {placeholder_key} is lost: please report"
            swaps.append(real)
        return tuple(swaps)

    def validate(self, name: str) -> None:
        """Assert that the sums equal what they sum up, and that nothing is ended twice."""
        asks = [entry.allocation.ask for entry in self.placed.values()]
        real = total_of(ask.resource for ask in asks if not ask.placeholder)
        assert equals(real, self.allocated), (
            f"application {name}: allocated {self.allocated!r} is not the sum {real!r}"
        )
        held = total_of(ask.resource for ask in asks if ask.placeholder)
        assert equals(held, self.placeholder_allocated), (
            f"application {name}: placeholders {self.placeholder_allocated!r} are not the sum {held!r}"
        )
        grouped = {key for of_group in self.placeholders.values() for key in of_group}
        alone = {key for key, entry in self.placed.items() if entry.allocation.ask.placeholder}
        assert grouped == alone, f"application {name}: placeholders {grouped ^ alone} are lost"
        for entry in self.placed.values():
            assert not (entry.preempted and entry.released), f"{entry.allocation!r} is ended twice"


def _own(used: TrackedResource) -> TrackedResource:
    """Return what can be added to."""
    return TrackedResource() if used is _NOTHING else used


@final
class GangGrowth:
    """The growth of the gang of one application, its placeholders included. Owned by the application."""

    __slots__ = ("_actual", "_actual_most", "_groups", "_members", "_members_most", "_since_ns")

    def __init__(self) -> None:
        self._groups: set[str] = set()
        """The names of its task groups; of one that is placed whole without placeholders the empty text."""
        self._members = self._members_most = 0
        self._actual = self._actual_most = 0
        """The real ones, without placeholders."""
        self._since_ns = 0

    def add(self, placed: HeldAllocation) -> None:
        """Count a placeholder or a member; the time begins anew if the gang is larger than it ever was.

        A member that replaces a placeholder makes it larger as well, by what works.
        """
        ask = placed.allocation.ask
        self._groups.add(ask.task_group_name)
        self._members += 1
        self._actual += not ask.placeholder
        if self._members > self._members_most or self._actual > self._actual_most:
            self._since_ns = max(self._since_ns, placed.allocation.bound_at_ns)
        self._members_most = max(self._members_most, self._members)
        self._actual_most = max(self._actual_most, self._actual)
        placed.gang_since_ns = self._since_ns

    def add_again(self, placed: HeldAllocation) -> None:
        """Count what has replaced no placeholder if it takes the place of a member that has ended."""
        if self._members < self._members_most and placed.allocation.ask.task_group_name in self._groups:
            self.add(placed)

    def remove(self, placed: HeldAllocation) -> bool:
        """Count an allocation no longer; return whether nothing of the gang is left."""
        if placed.gang_since_ns is not None:
            self._members -= 1
            self._actual -= not placed.allocation.ask.placeholder
        return self._members == 0
