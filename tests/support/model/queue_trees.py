"""Random trees of queues that lend parts of their guarantees."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

__all__ = ["TreeOf", "trees"]


class TreeOf(NamedTuple):
    """The queues below the root, as YAML."""

    queues: str


def _with_names(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [child | {"name": f"q{number}"} for number, child in enumerate(children)]


def _highest(queue: dict[str, Any]) -> int:
    """Return the largest maximum of a queue and of those below it."""
    own = int(queue["resources"].get("max", {}).get("memory", 0))
    return max(own, *map(_highest, queue.get("queues", [])), 0)


@st.composite
def _queue(draw: st.DrawFn, levels: int) -> dict[str, Any]:
    """A queue is guaranteed at least what those below it are, and has a maximum of no less."""
    children = draw(st.lists(_queue(levels - 1), max_size=3)) if levels else []
    least = sum(int(child["resources"].get("guaranteed", {}).get("memory", 0)) for child in children)
    resources: dict[str, dict[str, str]] = {}
    guaranteed = least + draw(st.integers(0, 15))
    if guaranteed and (least or draw(st.booleans())):
        resources["guaranteed"] = {"memory": str(guaranteed)}
        if draw(st.booleans()):
            resources["lend"] = {"memory": str(draw(st.integers(0, guaranteed)))}
    highest = max(map(_highest, children), default=0)
    if draw(st.booleans()):
        resources["max"] = {"memory": str(max(guaranteed, highest) + draw(st.integers(1, 15)))}
    queue: dict[str, Any] = {"resources": resources}
    return queue | ({"parent": True, "queues": _with_names(children)} if children else {})


def _written(children: list[dict[str, Any]]) -> TreeOf:
    return TreeOf("\n".join(f"- {json.dumps(child)}" for child in _with_names(children)))


def trees() -> st.SearchStrategy[TreeOf]:
    """Return trees of up to three levels below the root."""
    queues = st.lists(_queue(2), min_size=1, max_size=3)
    return queues.map(_written)
