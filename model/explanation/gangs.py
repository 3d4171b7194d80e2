"""What blocks a gang that is placed whole: what is missing of it, quotas, or room for all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..applications.gang import whole_members
from ..configuration.positions import Position
from ..configuration.queue_properties import GANG_PLACING
from ..nodes.gang_room import plan_on, slots, usable_rooms
from ..queues.application_entry import ApplicationEntry
from ..resources.quantity_texts import resource_text
from ..resources.resource import total_of
from ..state.partition_state import PartitionState
from ..values.allocation import Ask
from ..values.refusals import RefusalReason
from .blockers import Blocker, SubjectKind
from .quotas import queue_quota_blockers, user_quota_blockers

__all__ = ["gang_blockers"]


def gang_blockers(state: PartitionState, entry: ApplicationEntry) -> Iterator[Blocker]:
    """Walk what blocks all asks of an application because its gang is placed whole, or not at all."""
    waiting = [record.ask for record in entry.application.asks.waiting()]
    members = whole_members(entry.application.gang_settings, waiting)
    if not members:
        yield _blocker(entry, RefusalReason.GANG_INCOMPLETE, _missing(entry, waiting))
        return
    leaf = entry.queue
    whole = members[0].resized(total_of(ask.resource for ask in members))
    quotas = (
        *user_quota_blockers(state, leaf.path, entry.application_id, entry.user, whole),
        *queue_quota_blockers(leaf, leaf.above, whole, None),
    )
    yield from quotas
    if not quotas:
        yield from _node_blockers(state, entry, members)


def _node_blockers(
    state: PartitionState, entry: ApplicationEntry, members: Sequence[Ask]
) -> Iterator[Blocker]:
    def may_run(member: int, node_id: str) -> bool:
        return members[member].required_node in {"", node_id}

    if plan_on(state.nodes, [ask.resource for ask in members], may_run) is None:
        yield _blocker(entry, RefusalReason.GANG_ROOM, _rooms_text(state, members))
        return
    for refusal in entry.application.asks.refusals():
        if refusal.reason is RefusalReason.PREDICATES:
            yield Blocker(
                reason=refusal.reason,
                kind=SubjectKind.NODES,
                subject=refusal.subject,
                detail=refusal.detail,
                until_ns=refusal.until_ns,
            )


def _rooms_text(state: PartitionState, members: Sequence[Ask]) -> str:
    """Return for how many members of each kind there is room, where they may run, if there are no others."""
    rooms = usable_rooms(state.nodes)
    kinds = Counter((ask.task_group_name, ask.resource, ask.required_node) for ask in members)
    texts = []
    has_each_room = True
    for (name, size, needed), count in kinds.items():
        room = slots(size, [each for each in rooms if needed in {"", each.node_id}])
        where = f" on {needed}, which it needs" if needed else ""
        texts.append(f"{name or resource_text(size)}{where}: room for {room} of {count}")
        has_each_room = has_each_room and room >= count
    return "; ".join((*texts, "not together") if has_each_room else texts)


def _blocker(entry: ApplicationEntry, reason: RefusalReason, detail: str) -> Blocker:
    return Blocker(
        reason=reason,
        kind=SubjectKind.APPLICATION,
        subject=entry.application_id,
        detail=detail,
        position=_setting(entry),
    )


def _setting(entry: ApplicationEntry) -> Position | None:
    """Return where the configuration says that gangs are placed whole, `None` if the application says it."""
    tags = entry.application.tags
    if "gangSize" in tags or "gangPlacing" in tags:
        return None
    key = f"properties.{GANG_PLACING}"
    return next((level.positions[key] for level in entry.queue.above if key in level.positions), None)


def _missing(entry: ApplicationEntry, waiting: Sequence[Ask]) -> str:
    """Return how much of a gang has been asked for."""
    settings = entry.application.gang_settings
    if settings.size:
        count = sum(not ask.placeholder for ask in waiting)
        return f"{count} of {settings.size} asks wait"
    asked = total_of(ask.resource for ask in waiting if ask.placeholder)
    return f"placeholders for {resource_text(asked)} of {resource_text(settings.placeholder_ask)} wait"
