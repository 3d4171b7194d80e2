"""What the properties of queues forbid to end for an ask, by what `docs/preemption.md` says of each.

Nothing of the scheduler's own arithmetic is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from support.proofs.worlds import QueueIn, path_of


class Ending(Protocol):
    """What runs, and may have to end."""

    @property
    def key(self) -> str:
        """Its name."""
        ...

    @property
    def leaf(self) -> str:
        """Where it runs."""
        ...

    @property
    def priority(self) -> int:
        """As it is written."""
        ...

    @property
    def since(self) -> float:
        """When it was bound to its node, in seconds."""
        ...


class _Loss(NamedTuple):
    """What has ended for a guarantee, or inside a queue."""

    at: float
    leaf: str


class Rules:
    """The properties of the queues of a world, and what has ended that counts for budgets.

    Args:
        queues: The queues below the root.
    """

    def __init__(self, queues: Iterable[QueueIn]) -> None:
        self._losses: list[_Loss] = []
        self.replace(queues)

    def replace(self, queues: Iterable[QueueIn]) -> None:
        """Take the properties of another configuration; what has ended counts on."""
        self._of = {each.path: dict(each.properties) for each in queues}
        names = {name for properties in self._of.values() for name in properties}
        self.count_time = bool(names & {"preemption.min-runtime", "preemption.victims-max"})

    def value(self, queue: str, name: str) -> str | None:
        """Return a property of a queue, or of the nearest above it that has it."""
        found = (self._of.get(level, {}).get(name) for level in path_of(queue))
        return next((value for value in found if value is not None), None)

    def note(self, leaf: str, now: float) -> None:
        """Note that something of a leaf ends."""
        self._losses.append(_Loss(now, leaf))

    def recent(self, now: float) -> tuple[tuple[str, int], ...]:
        """Return what counts for a budget still, with its age in steps of eight seconds."""
        return tuple((leaf, int(now - at) // 8) for at, leaf in self._losses if now - at < 60)

    # -------------------------------------------------------------------------------------- priority

    def seen(self, leaf: str, priority: int, common: str) -> int:
        """Return what a priority counts as among the children of a queue that the leaf is below."""
        for level in path_of(leaf):
            if level == common:
                break
            own = self._of.get(level, {})
            offset = int(own.get("priority.offset", "0"))
            priority = offset if own.get("priority.policy") == "fence" else priority + offset
        return priority

    def forbidden(self, ask_leaf: str, ask_priority: int, victim: Ending) -> str | None:
        """Return why an allocation of another leaf may not end for a guarantee at all, else `None`."""
        above = path_of(ask_leaf)
        common = next(level for level in path_of(victim.leaf) if level in above)
        seen, asked = (
            self.seen(victim.leaf, victim.priority, common),
            self.seen(ask_leaf, ask_priority, common),
        )
        if seen > asked:
            return f"P-priority: {victim.key} counts as {seen}, the ask as {asked}"
        fences = [level for level in above if self._of.get(level, {}).get("preemption.policy") == "fence"]
        if fences and fences[0] not in path_of(victim.leaf):
            return f"P-fence: {victim.key} is outside of {fences[0]}"
        if self._of.get(victim.leaf, {}).get("preemption.policy") == "disabled":
            return f"P-fence: {victim.leaf} has no victims"
        return None

    # ------------------------------------------------------------------------------------ protection

    def protected(self, outside: str, victim: Ending, now: float, *, for_guarantee: bool) -> str | None:
        """Return what says that an allocation has not run long enough for a preemptor, else `None`.

        Args:
            outside: The leaf of the ask, or the queue whose maximum is enforced.
            victim: The allocation.
            now: The time, in seconds.
            for_guarantee: It ends for a guarantee, or inside a queue.
        """
        around = [level for level in path_of(victim.leaf) if level not in path_of(outside)]
        widest = around[-1] if around else victim.leaf
        least = self.value(widest, "preemption.min-runtime")
        if least is None:
            return None
        if not for_guarantee and self.value(widest, "preemption.min-runtime.scope") == "guarantee":
            return None
        if now - victim.since < float(least.rstrip("s")):
            return f"P-runtime: {victim.key} has run for {now - victim.since:.0f} s of {least}"
        return None

    def over_budget(self, leaves: Iterable[str], now: float) -> Iterator[str]:
        """Yield the queues that would lose more than their budgets if one of each of these leaves ended."""
        lost = list(leaves)
        for queue in sorted({level for leaf in lost for level in path_of(leaf)}):
            budget = self.value(queue, "preemption.victims-max")
            if budget is None:
                continue
            most, _, window = budget.partition("/")
            counting = sum(
                queue in path_of(each.leaf) and now - each.at < float(window.rstrip("s"))
                for each in self._losses
            )
            wanted = sum(queue in path_of(leaf) for leaf in lost)
            if counting + wanted > int(most):
                yield f"P-budget: {queue} loses {wanted} after {counting} of {budget}"
