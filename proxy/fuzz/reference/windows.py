"""Windows as the second scheduler sees them: spans of UTC, each computed anew from its number."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....model.configuration.durations import parse_duration_ns
from ..configurations import USERS
from ..plans import one_of
from .queues import ReferenceApplication, ReferenceAsk, ReferenceNode

if TYPE_CHECKING:
    from .life import ReferenceLife

_START: Final = datetime(2000, 1, 1, tzinfo=UTC)
_FORM: Final = "%Y-%m-%dT%H:%M:%SZ"
_DAY_NS: Final = 86_400 * 10**9
_NODES_MAX: Final = 60
_ENDS_MAX: Final = 3


class ReferenceWindow(NamedTuple):
    """A window."""

    nodes: Sequence[str]
    begin_ns: int
    end_ns: int
    every_ns: int
    drain_ns: int
    holders: Mapping[str, Sequence[str]]

    @staticmethod
    def of(document: Mapping[str, Any]) -> ReferenceWindow:
        """Return the window of a document."""
        begin, end = (datetime.strptime(document[key], _FORM).replace(tzinfo=UTC) for key in ("from", "to"))
        return ReferenceWindow(
            document["nodes"],
            int(begin.timestamp()) * 10**9,
            int(end.timestamp()) * 10**9,
            parse_duration_ns(document["every"]) if "every" in document else 0,
            parse_duration_ns(document["drain"]),
            document.get("for", {}),
        )

    def ends_after(self, at_ns: int) -> list[int]:
        """Return when the next spans end."""
        if not self.every_ns:
            return [self.end_ns] if self.end_ns > at_ns else []
        first = max(0, (at_ns - self.end_ns) // self.every_ns)
        ends = (self.end_ns + number * self.every_ns for number in range(first, first + _ENDS_MAX + 1))
        return [end_ns for end_ns in ends if end_ns > at_ns]

    def keeps(
        self, application: ReferenceApplication, ask: ReferenceAsk, node: ReferenceNode, at_ns: int
    ) -> bool:
        """Return whether an ask may not start on a node at a moment."""
        holders = self.holders
        is_for = application.user in holders.get("users", ()) or any(
            level.path in holders.get("queues", ()) for level in application.queue.path_up()
        )
        is_for = is_for or bool({*application.groups} & {*holders.get("groups", ())})
        if node.name not in self.nodes or is_for:
            return False
        runs_ns = self.drain_ns if ask.walltime_ns is None else ask.walltime_ns
        for number in count():
            begin_ns = self.begin_ns + number * self.every_ns
            if begin_ns >= at_ns + max(1, runs_ns):
                return False
            if self.end_ns + number * self.every_ns > at_ns:
                return True
            if not self.every_ns:
                return False
        raise AssertionError("numbers do not end")


def is_kept(
    life: ReferenceLife, application: ReferenceApplication, ask: ReferenceAsk, node: ReferenceNode
) -> bool:
    """Return whether a window keeps an ask from a node now."""
    return any(window.keeps(application, ask, node, life.now_ns) for window in life.windows)


def random_windows(rng: random.Random) -> list[dict[str, Any]]:
    """Return one window or two, of different nodes, that begin in the first minutes of the clock."""
    windows: list[dict[str, Any]] = []
    for number in range(1 + (rng.random() < 0.5)):
        begin = _START + timedelta(seconds=int(rng.random() * 300))
        window: dict[str, Any] = {
            "name": f"w{number}",
            "nodes": [f"n{each}" for each in range(number, _NODES_MAX, 2) if rng.random() < 0.7] or ["n1"],
            "from": begin.strftime(_FORM),
            "to": (begin + timedelta(seconds=1 + int(rng.random() * 120))).strftime(_FORM),
            "drain": one_of(rng, ("0s", "20s", "10m")),
        }
        if rng.random() < 0.3:
            window["every"] = "1d"
        users = [one_of(rng, [*USERS])]
        holders = one_of(rng, ({}, {}, {"users": users}, {"queues": ["root.a"]}, {"groups": ["cooks"]}))
        windows.append(window | ({"for": holders} if holders else {}))
    return windows
