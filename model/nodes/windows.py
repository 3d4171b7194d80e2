"""The windows of a partition: which nodes they have, and when an ask may start on such a node.

An ask may start on the node of a window that is not for it only if it ends before the window begins, as far
as its run time is known. One of unknown run time may not start in the time before the window that is set as
`drain`. Nothing ends because a window begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, final

from ..configuration.durations import short_duration_text
from ..configuration.recurrence import Spans
from ..configuration.windows import WindowConfig
from ..values.messages import User
from .entry import NodeEntry

_NAMES_MAX: Final = 3
_TRIES_MAX: Final = 64
"""How often windows of one node may follow each other before a search between them ends."""


@final
class Window:
    """A window with its nodes. Owned by the windows of its partition.

    Args:
        config: Its configuration.
    """

    __slots__ = ("config", "node_ids", "spans")

    def __init__(self, config: WindowConfig) -> None:
        self.config = config
        self.node_ids: dict[str, None] = {}
        self.spans = Spans(config.when)

    def free_from_ns(self, at_ns: int, run_ns: int | None) -> int | None:
        """Return the first moment, from one on, at which an ask may start that the window is not for.

        Args:
            at_ns: The moment.
            run_ns: How long the ask runs, `None` if that is not known.

        Returns:
            The same moment, or the end of a span; `None` if the ask runs longer than there is time between.
        """
        return self.spans.free_from_ns(at_ns, self.config.drain_ns if run_ns is None else run_ns)

    def text(self, now_ns: int, run_ns: int | None) -> str:
        """Return why an ask may not start on its nodes now."""
        span = self.spans.after(now_ns)
        assert span is not None, f"window {self.config.name} refuses nothing: please report"
        when = self.config.when
        reserved = f"reserved for {self.config.name}"
        if span[0] <= now_ns:
            return f"{reserved} until {when.local_text(span[1])}"
        needs = "how long this runs is not known" if run_ns is None else f"this needs {_text(run_ns)}"
        return f"{reserved} from {when.local_text(span[0])}; {needs}"


def _text(duration_ns: int) -> str:
    """Return a duration of whole seconds, rounded up: it is what must fit."""
    return short_duration_text(-(-duration_ns // 10**9) * 10**9)


class KeepingWindows(NamedTuple):
    """The nodes with room that windows keep from an ask."""

    by_text: Mapping[str, Sequence[str]]
    """Their names, by the reasons."""
    until_ns: int | None
    """When time alone lets it start on the first of them, `None` for never."""

    @property
    def text(self) -> str:
        """Why the nodes are refused: the names of a few, with the reasons."""
        return "; ".join(f"{_names(node_ids)} {text}" for text, node_ids in self.by_text.items())


def _names(node_ids: Sequence[str]) -> str:
    if len(node_ids) == 1:
        return f"{node_ids[0]} is"
    more = f" and {len(node_ids) - _NAMES_MAX} more" if len(node_ids) > _NAMES_MAX else ""
    return f"{', '.join(node_ids[:_NAMES_MAX])}{more} are"


class WindowRefusal(NamedTuple):
    """The windows that keep an ask from nodes now."""

    windows: tuple[Window, ...]
    run_ns: int | None
    """How long the ask runs, `None` if that is not known."""
    now_ns: int

    @property
    def node_ids(self) -> Iterator[str]:
        """Walk the nodes, some of them twice."""
        return chain.from_iterable(window.node_ids for window in self.windows)

    def text_for(self, node_id: str) -> str:
        """Return why a node is refused, the empty text if it is not."""
        for window in self.windows:
            if node_id in window.node_ids:
                return window.text(self.now_ns, self.run_ns)
        return ""

    def on(self, nodes: Iterable[NodeEntry]) -> KeepingWindows | None:
        """Return what is refused of some nodes, `None` if nothing is."""
        by_windows: dict[tuple[Window, ...], list[str]] = {}
        for node in nodes:
            windows = tuple(window for window in self.windows if node.node_id in window.node_ids)
            if windows:
                by_windows.setdefault(windows, []).append(node.node_id)
        if not by_windows:
            return None
        starts = [free_from_ns(windows, self.now_ns, self.run_ns) for windows in by_windows]
        return KeepingWindows(
            {windows[0].text(self.now_ns, self.run_ns): ids for windows, ids in by_windows.items()},
            min((start_ns for start_ns in starts if start_ns is not None), default=None),
        )


@final
class Windows:
    """The windows of a partition. Owned by the partition.

    Args:
        configs: Their configuration.
    """

    __slots__ = ("all", "configs", "due_ns", "is_refusing")

    def __init__(self, configs: Sequence[WindowConfig] = ()) -> None:
        self.configs = tuple(configs)
        self.all = tuple(Window(config) for config in configs)
        self.is_refusing = False
        """A window has kept an ask from its nodes since one ended last."""
        self.due_ns: int | None = None
        """When the first window ends after that: then the ask may start."""

    @staticmethod
    def of(configs: Sequence[WindowConfig], nodes: Iterable[NodeEntry]) -> Windows:
        """Return the windows of nodes that are there already."""
        windows = Windows(configs)
        for node in nodes:
            windows.add(node.node_id, node.attributes)
        return windows

    def add(self, node_id: str, attributes: Mapping[str, str]) -> None:
        """Add a node."""
        for window in self.all:
            if window.config.has(node_id, attributes):
                window.node_ids[node_id] = None

    def remove(self, node_id: str) -> None:
        """Remove a node."""
        for window in self.all:
            window.node_ids.pop(node_id, None)

    def binding(self, user: User, application_id: str, levels: Sequence[str]) -> tuple[Window, ...]:
        """Return the windows that an application has to leave room for: all that are not for it.

        Args:
            user: Its user.
            application_id: Its id.
            levels: The paths of its queue and of those above.
        """
        return tuple(
            window
            for window in self.all
            if window.node_ids and not window.config.is_for(user.name, user.groups, application_id, levels)
        )

    def note_refusal(self, now_ns: int) -> None:
        """Note that a window has kept an ask from its nodes."""
        if not self.is_refusing:
            self.is_refusing = True
            self.due_ns = next_end_ns(self.all, now_ns)

    def has_ended(self, now_ns: int) -> bool:
        """Return whether a window has ended since one kept an ask from its nodes; that is noted."""
        if self.due_ns is None or now_ns < self.due_ns:
            return False
        self.is_refusing, self.due_ns = False, None
        return True


def next_end_ns(windows: Sequence[Window], at_ns: int) -> int | None:
    """Return when the first of some windows ends after a moment, `None` if none does."""
    spans = [window.spans.after(at_ns) for window in windows]
    return min((span[1] for span in spans if span is not None), default=None)


def free_from_ns(windows: Sequence[Window], at_ns: int, run_ns: int | None) -> int | None:
    """Return the first moment, from one on, at which all windows let an ask start, `None` for never."""
    start_ns = at_ns
    for _ in range(_TRIES_MAX):
        before_ns = start_ns
        for window in windows:
            found_ns = window.free_from_ns(start_ns, run_ns)
            if found_ns is None:
                return None
            start_ns = found_ns
        if start_ns == before_ns:
            return start_ns
    return None
