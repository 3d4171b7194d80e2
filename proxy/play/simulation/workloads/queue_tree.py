"""A queue configuration for a workload that has none: one leaf for every queue it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import yaml

_FORBIDDEN: Final = re.compile(r"[^a-z0-9_:#/@-]")
_NAME_LENGTH_MAX: Final = 64
_ROOT: Final = "root"

_Tree: TypeAlias = "dict[str, _Tree]"
_QueueEntry: TypeAlias = "dict[str, str | bool | list[_QueueEntry]]"


def queue_name(text: str) -> str:
    """Return a legal queue name for a name from a trace: lower case, `_` for what is not allowed."""
    return _FORBIDDEN.sub("_", text.lower())[:_NAME_LENGTH_MAX] or "_"


def configuration_for(
    queue_paths: Iterable[str],
    *,
    node_sort_policy: str = "fair",
    resource_weights: Mapping[str, float] | None = None,
) -> str:
    """Return the YAML of a partition with these leaf queues, open to everyone and without quotas.

    Args:
        queue_paths: Full paths, each starting with `root.`; order and repetitions do not matter.
        node_sort_policy: `fair` or `binpacking`.
        resource_weights: The weight of each resource type when nodes are sorted; the default when absent.
    """
    tree: _Tree = {}
    for path in sorted(set(queue_paths)):
        level = tree
        for name in path.split(".")[1:]:
            level = level.setdefault(name, {})
    policy: dict[str, object] = {"type": node_sort_policy}
    if resource_weights is not None:
        policy["resourceweights"] = dict(resource_weights)
    root: _QueueEntry = {"name": _ROOT, "submitacl": "*", "queues": _entries(tree)}
    partition = {"name": "default", "nodesortpolicy": policy, "queues": [root]}
    text: str = yaml.safe_dump({"partitions": [partition]}, sort_keys=False)
    return text


def _entries(tree: _Tree) -> list[_QueueEntry]:
    """Return the queues of one level with everything below them."""
    entries: list[_QueueEntry] = []
    for name, children in tree.items():
        entry: _QueueEntry = {"name": name}
        if children:
            entry["parent"] = True
            entry["queues"] = _entries(children)
        entries.append(entry)
    return entries
