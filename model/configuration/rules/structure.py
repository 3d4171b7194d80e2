"""Rules about the structure of a configuration: partitions, and the root queue in each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..building import ROOT, has_root, partition_name
from ..documents import YamlPartition
from ..problems import RuleFinding
from ..schema import PartitionConfig

PARTITION_NAME_MAX: Final = 256
_PLAIN_NAME: Final = re.compile(r"[^\[\]/\\\s\x00-\x1f\x7f]+")


def partition_names_are_unique(partitions: Sequence[YamlPartition]) -> Iterator[RuleFinding]:
    """Refuse a second partition of one name, whatever the case; without a name it is the default one."""
    seen: set[str] = set()
    for partition in partitions:
        name = partition_name(partition).lower()
        if name in seen:
            position = partition.positions(closed=("queues",)).get("name", partition.position)
            yield RuleFinding(position, f"duplicate partition name found with name {name}")
        seen.add(name)


def partition_names_are_plain(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse a long name, or one that reads as a path or as that of another RM: `[alice]default`."""
    name = partition_name(partition)
    if len(name) > PARTITION_NAME_MAX or not _PLAIN_NAME.fullmatch(name):
        position = partition.positions(closed=("queues",)).get("name", partition.position)
        shown = f"{name[:PARTITION_NAME_MAX]}..." if len(name) > PARTITION_NAME_MAX else name
        text = f"a partition may not be called {shown!r}: without brackets, slashes, white space and control "
        yield RuleFinding(position, f"{text}characters, and at most {PARTITION_NAME_MAX} characters")


def queues_are_listed(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse a partition without a list of queues; the list may be empty."""
    if partition.queues is None:
        position = partition.positions(closed=("limits",)).get("queues", partition.position)
        yield RuleFinding(position, "queue config is not set")


def root_is_spelled_root(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse a top queue called `Root` or `ROOT`.

    The recorded core's check accepts it, and then the partition cannot be made.
    """
    for queue in partition.queues or ():
        if has_root(partition) and queue.name != ROOT:
            position = queue.positions(closed=("queues",)).get("name", queue.position)
            yield RuleFinding(
                position,
                f"partition cannot be created without root queue: the top queue is called {queue.name!r}; "
                f"did you mean {ROOT!r}?",
            )


def root_has_no_resources(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse resources of the root queue, empty ones too: it has what the nodes have."""
    if not has_root(partition):
        return
    for queue in partition.queues or ():
        positions = queue.positions(closed=("queues",))
        resources = queue.resources
        for key in ("guaranteed", "max", "lend"):
            if getattr(resources, key) is not None:
                position = positions[f"resources.{key}"]
                yield RuleFinding(position, "root queue must not have resource limits set")


def limits_agree(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse limits at the partition that are not those of its root queue, when both have some."""
    if partition.limits and partition.limits != partition.root.limits:
        position = partition.positions["limits"]
        yield RuleFinding(position, "partition limits and root queue limits are not equivalent")
