"""The windows that keep an ask from nodes now: what the checks of nodes and the explanations ask."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..nodes.entry import NodeEntry
from ..nodes.windows import KeepingWindows, WindowRefusal, Windows
from ..predicates.avoided_nodes import AvoidedNodes
from ..queues.queue import Queue
from ..values.allocation import Ask
from ..values.messages import User
from .partition_state import PartitionState


def keep_windows(state: PartitionState) -> None:
    """Have the checks of nodes refuse those of the windows of the configuration, while it has some."""
    if state.windows.configs != state.config.windows:
        state.windows = Windows.of(state.config.windows, state.nodes)
    if state.windows.all or isinstance(state.node_checks, AvoidedNodes):
        checks = state.avoided_nodes()
        checks.windows, checks.window_refusal = state.windows, partial(window_refusal, state)


def window_refusal(state: PartitionState, ask: Ask) -> WindowRefusal | None:
    """Return the windows that keep an ask from their nodes now, `None` if none does; that is noted."""
    entry = state.entries.get(ask.application_id)
    if entry is None or not state.windows.all:
        return None
    refusal = refusal_for(state, ask, entry.queue, entry.user, entry.tags)
    if refusal is not None:
        state.windows.note_refusal(refusal.now_ns)
    return refusal


def window_on_node(state: PartitionState, ask: Ask, node: NodeEntry | None) -> KeepingWindows | None:
    """Return what keeps an ask from a node now, `None` if no window does; that is noted."""
    refusal = None if node is None else window_refusal(state, ask)
    return None if node is None or refusal is None else refusal.on((node,))


def are_kept(state: PartitionState, ask: Ask) -> bool:
    """Return whether windows keep an ask from all nodes with room; there is one with room."""
    refusal = window_refusal(state, ask) if state.windows.all else None
    return refusal is not None and all(
        refusal.text_for(node.node_id) for node in state.nodes.fitting(ask.resource)
    )


def refusal_for(
    state: PartitionState, ask: Ask, leaf: Queue, user: User, tags: Mapping[str, str]
) -> WindowRefusal | None:
    """Return the windows that keep an ask from their nodes now, `None` if none does.

    Args:
        state: The partition.
        ask: The ask; its application may be unknown.
        leaf: The queue of its application.
        user: The user of its application.
        tags: The tags of its application.
    """
    if not state.windows.all:
        return None
    binding = state.windows.binding(user, ask.application_id, [level.path for level in leaf.above])
    if not binding:
        return None
    now_ns, run_ns = state.now_ns(), state.ends.run_times.of(ask, tags, leaf)
    refusing = tuple(each for each in binding if each.free_from_ns(now_ns, run_ns) != now_ns)
    return WindowRefusal(refusing, run_ns, now_ns) if refusing else None
