"""Windows: spans of time for which nodes are reserved, for maintenance or for some users; and their rules.

A window that breaks a rule is noted and left out. Windows that may have a node in common may not be at the
same time: such are windows that name the same node, and windows whose attributes include those of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from .durations import DurationError, parse_duration_ns, short_duration_text
from .names import is_group_name, is_user_name
from .problems import NOWHERE, Position, RuleFinding
from .recurrence import DAY_NS, Recurrence, Spans, TimeError, find_zone, parse_time

if TYPE_CHECKING:  # Pydantic is loaded where a configuration is read.
    from .documents import YamlWindow

_T = TypeVar("_T")
_UTC: Final = "UTC"
_COMPARED_NS: Final = 400 * DAY_NS
"""For how long after their first begin repeated windows are compared."""


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowConfig:
    """One window.

    `nodes` are the names of its nodes, `attributes` those of its nodes with their values; one of them is
    empty. It is for whom one of the other lists names; where all are empty, for no one. Queues are those
    below as well.
    """

    name: str
    when: Recurrence
    nodes: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=_nothing)
    drain_ns: int = DAY_NS
    """How long before it asks of unknown run time may not start."""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    position: Position = field(default=NOWHERE, compare=False)

    def has(self, node_id: str, attributes: Mapping[str, str]) -> bool:
        """Return whether a node is reserved by it."""
        if self.nodes:
            return node_id in self.nodes
        return all(attributes.get(name) == value for name, value in self.attributes.items())

    def is_for(self, user: str, groups: Sequence[str], application_id: str, levels: Sequence[str]) -> bool:
        """Return whether an application is one of those that it is for.

        Args:
            user: The name of its user.
            groups: The groups of its user.
            application_id: Its id.
            levels: The paths of its queue and of those above.
        """
        return (
            user in self.users
            or application_id in self.applications
            or not {*groups}.isdisjoint(self.groups)
            or not {*levels}.isdisjoint(self.queues)
        )


def build_windows(documents: Sequence[YamlWindow], findings: list[RuleFinding]) -> tuple[WindowConfig, ...]:
    """Build the windows of a partition; those that break a rule are noted and left out."""
    windows: list[WindowConfig] = []
    for document in documents:
        found = [*_broken_rules(document, [window.name for window in windows])]
        when, drain_ns = _when(document, found), _drain_ns(document, found)
        findings.extend(found)
        if when is None or drain_ns is None or found:
            continue
        holders = document.holders
        windows.append(
            WindowConfig(
                name=document.name,
                when=when,
                nodes=document.nodes,
                attributes=MappingProxyType(document.attributes),
                drain_ns=drain_ns,
                users=holders.users,
                groups=holders.groups,
                applications=holders.applications,
                queues=tuple(path.lower() for path in holders.queues),
                position=document.position,
            )
        )
    findings.extend(_overlaps(windows))
    return tuple(windows)


def _broken_rules(document: YamlWindow, names: Sequence[str]) -> Iterator[RuleFinding]:
    """Yield what is wrong with a window, except its times."""
    name, positions = document.name, document.positions()
    window = f"window {name!r}"
    if not name:
        yield RuleFinding(document.position, "a window has a name, as firmware is")
    elif name in names:
        yield RuleFinding(positions["name"], f"{window}: another window of the partition has this name")
    if bool(document.nodes) == bool(document.attributes):
        which = "not both" if document.nodes else "one of both"
        text = f"{window} is for nodes by their names or by their attributes, {which}"
        yield RuleFinding(document.position, text)
    for key, values in (("nodes", document.nodes), ("for.applications", document.holders.applications)):
        for index, value in enumerate(values):
            if not value or value in values[:index]:
                why = "is written twice" if value else "is no name"
                yield RuleFinding(positions[f"{key}[{index}]"], f"{window}: {value!r} {why}")
    checks: tuple[tuple[str, tuple[str, ...], Callable[[str], bool]], ...] = (
        ("user", document.holders.users, is_user_name),
        ("group", document.holders.groups, is_group_name),
        ("queue", document.holders.queues, _is_path),
    )
    for kind, values, is_valid in checks:
        for index, value in enumerate(values):
            if not is_valid(value):
                position = positions[f"for.{kind}s[{index}]"]
                yield RuleFinding(position, f"{window}: {value!r} cannot be the name of a {kind}")


def _is_path(text: str) -> bool:
    return text.lower() == "root" or text.lower().startswith("root.")


def _when(document: YamlWindow, found: list[RuleFinding]) -> Recurrence | None:
    """Return the times of a window; what is wrong with them is noted."""
    positions, window = document.positions(), f"window {document.name!r}"
    zone = document.zone or _UTC

    def read(key: str, parse: Callable[[str], _T], text: str) -> _T | None:
        try:
            return parse(text)
        except (TimeError, DurationError) as error:
            found.append(RuleFinding(positions.get(key, document.position), f"{window}: {key}: {error}"))
            return None

    def local(text: str) -> datetime:
        time = parse_time(text)
        if time.tzinfo is None:
            return time
        if document.zone:
            raise TimeError(f"{text!r} with an offset from UTC, and the window has the zone {zone}")
        return time.astimezone(UTC).replace(tzinfo=None)

    is_zone = read("zone", find_zone, zone) is not None
    begin, end = read("from", local, document.begin), read("to", local, document.end)
    every_ns = read("every", parse_duration_ns, document.every) if document.every else 0
    if begin is None or end is None or every_ns is None or not is_zone:
        return None
    length = end - begin
    if length <= timedelta(0):
        text = f"{window}: it ends at {document.end}, and begins at {document.begin}"
        found.append(RuleFinding(positions["to"], text))
    if document.every and (every_ns <= 0 or every_ns % DAY_NS):
        text = f"{window}: every is {document.every!r}, and must be a number of days as 1d or 7d"
        found.append(RuleFinding(positions["every"], text))
    elif document.every and length > timedelta(days=every_ns // DAY_NS):
        lasts = short_duration_text(length // timedelta(microseconds=1) * 1000)
        text = f"{window}: it lasts {lasts}, longer than the {document.every} after which it is repeated"
        found.append(RuleFinding(positions["every"], text))
    return Recurrence(begin, end, zone, every_ns // DAY_NS)


def _drain_ns(document: YamlWindow, found: list[RuleFinding]) -> int | None:
    if not document.drain:
        return DAY_NS
    try:
        drain_ns = parse_duration_ns(document.drain)
    except DurationError:
        drain_ns = -1
    if drain_ns < 0:
        text = f"window {document.name!r}: drain is {document.drain!r}, and must be a duration as 24h"
        found.append(RuleFinding(document.positions()["drain"], text))
        return None
    return drain_ns


def _overlaps(windows: Sequence[WindowConfig]) -> Iterator[RuleFinding]:
    """Refuse windows at the same time that have a node in common."""
    for one, other in combinations(windows, 2):
        if _shares_node(one, other):
            at_ns = _common_ns(one.when, other.when)
            if at_ns is not None:
                text = (
                    f"window {other.name!r} overlaps window {one.name!r} on the same nodes at "
                    f"{one.when.local_text(at_ns)}"
                )
                yield RuleFinding(other.position, text)


def _shares_node(one: WindowConfig, other: WindowConfig) -> bool:
    if one.nodes or other.nodes:
        return not {*one.nodes}.isdisjoint(other.nodes)
    some, more = one.attributes.items(), other.attributes.items()
    return some <= more or more <= some


def _common_ns(one: Recurrence, other: Recurrence) -> int | None:
    """Return the first moment that is in spans of both, `None` if none was found."""
    firsts = [first for first in (one.span(0), other.span(0)) if first is not None]
    if len(firsts) < 2:
        return None
    at_ns = max(first[0] for first in firsts)
    last_ns = at_ns + _COMPARED_NS
    spans = Spans(one), Spans(other)
    while at_ns < last_ns:
        found = [span for span in (each.after(at_ns) for each in spans) if span is not None]
        if len(found) < 2:
            return None
        begin_ns = max(at_ns, *(span[0] for span in found))
        if begin_ns < min(span[1] for span in found):
            return begin_ns
        at_ns = max(at_ns, min(span[1] for span in found))
    return None


def past_windows(
    windows: Sequence[WindowConfig], before: Sequence[WindowConfig], now_ns: int
) -> Iterator[RuleFinding]:
    """Refuse windows that come with a change of the configuration, and are over.

    Those that were there before may be over: a scheduler may start again with its configuration.

    Args:
        windows: The windows of a partition.
        before: Those that the partition had.
        now_ns: The time.
    """
    for window in windows:
        span = window.when.span(0)
        if window not in before and not window.when.every_days and span is not None and span[1] <= now_ns:
            text = f"window {window.name!r} is in the past: it ended at {window.when.local_text(span[1])}"
            yield RuleFinding(window.position, text)
