"""The configuration of a small world, and the predicates of its resource manager."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from support.proofs.worlds import LimitIn, QueueIn, path_of

LEAST_DEMANDED: Final = 2
"""How many have to end on a node at least, where the predicates demand that."""
PARTITION_LINES: Final = "preemption: {quotapreemptionenabled: true}"
_DELAYS: Final = (("preemption.delay", "1s"), ("quota.preemption.delay", "1s"))


@cache
def queues_text(queues: tuple[QueueIn, ...], types: tuple[str, ...], limits: tuple[LimitIn, ...]) -> str:
    """Return queues as YAML; parents that have no properties are not listed."""
    lines: list[str] = []
    known = {each.path: each for each in queues}
    every = {level for path in known for level in path_of(path)} - {"root"}
    for path in sorted(every):
        queue = known.get(path) or QueueIn(path, ())
        margin = "  " * (path.count(".") - 1)
        properties = {**dict(_DELAYS), **dict(queue.properties)}
        lines.append(f"{margin}- name: {path.rpartition('.')[2]}")
        lines.append(f"{margin}  properties: {_braced(properties.items())}")
        named = [pair for pair in zip(types, queue.guaranteed, strict=False) if pair[1]]
        amounts = [f"guaranteed: {_braced(named)}"] if named else []
        if queue.maximum is not None:
            amounts.append(f"max: {_braced([(types[0], queue.maximum)])}")
        if amounts:
            lines.append(f"{margin}  resources: {{{', '.join(amounts)}}}")
        own = [limit for limit in limits if limit.queue == path]
        if own:
            lines.append(f"{margin}  limits:")
        lines += [
            f'{margin}  - {{limit: "", users: [{user}], maxresources: {{{types[0]}: {amount}}}}}'
            for _, user, amount in own
        ]
        if any(other.startswith(f"{path}.") for other in every):
            lines.append(f"{margin}  queues:")
    return "\n".join(lines)


def _braced(pairs: Iterable[tuple[str, object]]) -> str:
    """Write pairs; a gpu is a number, memory too."""
    return "{" + ", ".join(f"{name}: {value}" for name, value in pairs) + "}"


@dataclass(frozen=True)
class SmallPredicates:
    """The judgement of a resource manager that refuses some nodes, or wants two to end on a node or none."""

    refused: frozenset[str]
    demands: bool

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused."""
        del allocation_key, allocate
        return "the test refuses it" if node_id in self.refused else None

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        """Return the index of the last victim that has to end, `None` if the node is refused."""
        del allocation_key
        last = max(start_index, LEAST_DEMANDED - 1) if self.demands else start_index
        return None if node_id in self.refused or last >= len(victim_keys) else last
