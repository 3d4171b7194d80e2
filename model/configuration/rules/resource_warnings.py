"""Warnings about resource types: a misspelled one limits nothing, since no node and no ask has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..positions import Position
from ..problems import RuleFinding
from ..schema import LimitConfig, PartitionConfig, QueueConfig
from ..words import did_you_mean

KNOWN_TYPES: Final = ("vcore", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu")
"""The types that resource managers commonly have; others are known where a file names them twice."""

_OTHER_NAMES: Final = {"cpu": "vcore", "mem": "memory"}
_LIKENESS_MIN: Final = 0.75
"""`amd.com/gpu` is no spelling of `nvidia.com/gpu`."""

_COMPARISONS_MAX: Final = 100_000
"""How many pairs of types are compared in all; with more, unknown types are compared with the common ones."""


def type_effects(
    partitions: Collection[PartitionConfig], node_types: Collection[str] | None = None
) -> Iterator[RuleFinding]:
    """Warn of unknown types that occur once only and are similar to a known one.

    Args:
        partitions: All partitions of a file.
        node_types: The types of the nodes, if known: then a type similar to no other is reported as well.
    """
    places: defaultdict[str, set[Position]] = defaultdict(set)
    for partition in partitions:
        for name, position in _types_of(partition):
            places[name].add(position)
    known = {*KNOWN_TYPES, *(node_types or ()), *(name for name, found in places.items() if len(found) > 1)}
    unknown = sorted(places.keys() - known)
    compared = sorted(known) if len(unknown) * len(known) <= _COMPARISONS_MAX else KNOWN_TYPES
    for name in unknown:
        (position,) = places[name]
        hint = _hint(name, compared)
        if hint or node_types is not None:
            yield RuleFinding(
                position, f"the resource type {name!r} is not known{hint or ': no node has it'}"
            )


def _hint(name: str, known: Sequence[str]) -> str:
    """Return the end of a message that names the nearest known type, or nothing."""
    other = _OTHER_NAMES.get(name.lower())
    if other is not None:
        return f"; did you mean {other!r}?"
    return did_you_mean(name, known, likeness=_LIKENESS_MIN)


def _types_of(partition: PartitionConfig) -> Iterator[tuple[str, Position]]:
    """Yield all resource types of a partition with their positions; what is in no file has none."""
    weights = partition.node_sort_policy.resource_weights
    yield from _placed("nodesortpolicy.resourceweights", weights, partition.positions)
    yield from _types_of_limits(partition.limits)
    yield from _types_of_queue(partition.root)


def _types_of_queue(queue: QueueConfig) -> Iterator[tuple[str, Position]]:
    """Yield the types of a queue and all below it."""
    yield from _placed("guaranteed", queue.guaranteed_texts, queue.positions)
    yield from _placed("max", queue.max_texts, queue.positions)
    yield from _placed("lend", queue.lend_texts, queue.positions)
    template = queue.child_template
    if template is not None:
        yield from _placed("guaranteed", template.guaranteed, template.positions)
        yield from _placed("max", template.max, template.positions)
        yield from _placed("lend", template.lend, template.positions)
    yield from _types_of_limits(queue.limits)
    for child in queue.queues:
        yield from _types_of_queue(child)


def _types_of_limits(limits: Iterable[LimitConfig]) -> Iterator[tuple[str, Position]]:
    for limit in limits:
        for key, texts in limit.resource_texts.items():
            yield from _placed(key, texts, limit.positions)


def _placed(
    prefix: str, names: Collection[str], positions: Mapping[str, Position]
) -> Iterator[tuple[str, Position]]:
    for name in names:
        position = positions.get(f"{prefix}.{name}")
        if position is not None:
            yield name, position
