"""The blockers that are limits: of queues, users and groups, in resources and in numbers of applications.

The checks are those of the cycle, one a level: `Queue.has_room` and `Queue.has_place_for` from the leaf
upwards, and the blockers of `UserLimits` from the root downwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..limits.limits import HolderKind
from ..limits.usage_tree import NOTHING_HELD
from ..queues.lending import Withheld, kept_beside, withheld_from
from ..queues.queue import Queue
from ..resources.resource import EMPTY, add, subtract
from ..state.charges import held_of_holders
from ..state.claims import PreemptionClaim
from ..state.partition_state import PartitionState
from ..values.allocation import Ask
from ..values.refusals import RefusalReason
from ..values.users import User
from .blockers import APPLICATIONS, Blocker, Lack, SubjectKind, lacks_of

_HELD: Final = "a part is kept for asks that have preempted"
_KEPT_BACK: Final = "others keep a part of their guarantees back"
_WITHHELD_MAX: Final = 3
"""How many of the queues that keep back a type are named, those that keep most."""


def queue_quota_blockers(
    leaf: Queue, levels: Sequence[Queue], ask: Ask, claim: PreemptionClaim | None
) -> Iterator[Blocker]:
    """Walk those of some queues above a leaf that have no room for an ask of it.

    What the claim of the ask holds is room.
    """
    resource = ask.resource
    beside = kept_beside(leaf)
    for level in levels:
        maximum = level.maximum
        own = EMPTY if claim is None else claim.held_in(level)
        kept = beside.get(level, EMPTY)
        if maximum is None or level.has_room(resource, own, kept):
            continue
        is_root = level.parent is None
        held = subtract(level.held, own)
        used = add(add(level.allocated, held), kept)
        lacks = lacks_of(resource, maximum, used, level.positions, "max", is_closed=is_root)
        is_held = any(held.get(lack.name) > 0 for lack in lacks)
        withheld = _withheld(leaf, level, lacks) if len(kept) else ()
        yield Blocker(
            reason=RefusalReason.QUEUE_QUOTA,
            kind=SubjectKind.QUEUE,
            subject=level.path,
            lacks=lacks,
            setting="max",
            detail=_detail(is_held=is_held, is_withheld=bool(withheld), is_root=is_root),
            withheld=withheld,
        )


def _detail(*, is_held: bool, is_withheld: bool, is_root: bool) -> str:
    if is_held:
        return _HELD
    if is_withheld:
        return _KEPT_BACK
    return "the nodes together have no more" if is_root else ""


def _withheld(leaf: Queue, level: Queue, lacks: Sequence[Lack]) -> tuple[Withheld, ...]:
    """Return which queues keep back most of the types that lack in a queue above a leaf."""
    return tuple(each for lack in lacks for each in withheld_from(leaf, level, lack.name)[:_WITHHELD_MAX])


def user_quota_blockers(
    state: PartitionState, queue_path: str, application_id: str, user: User, ask: Ask
) -> Iterator[Blocker]:
    """Walk the limits that an ask does not fit under: the user's first, each from the root down."""
    holder = (queue_path, application_id, user)
    held = (
        held_of_holders(state, *holder, ask.allocation_key)
        if state.claims.by_key
        else (NOTHING_HELD, NOTHING_HELD)
    )
    resource = ask.resource
    for found in state.limits.blockers(*holder, resource, held):
        yield Blocker(
            reason=RefusalReason.USER_QUOTA,
            kind=_kind(found.kind),
            subject=found.name,
            queue_path=found.queue_path,
            lacks=lacks_of(resource, found.limit, found.used, found.positions, found.key),
            setting=found.key,
            position=found.position,
        )


def application_count_blockers(
    state: PartitionState, leaf: Queue, application_id: str, user: User
) -> Iterator[Blocker]:
    """Walk the limits to the number of applications that do not let one start."""
    for level in leaf.above:
        if not level.has_place_for(application_id):
            limit = level.max_applications
            running = level.running + len(level.accepted_allocating)
            position = level.positions.get("maxapplications")
            lack = Lack(name=APPLICATIONS, asked=1, available=limit - running, limit=limit, position=position)
            yield Blocker(
                reason=RefusalReason.QUEUE_APPLICATIONS,
                kind=SubjectKind.QUEUE,
                subject=level.path,
                lacks=(lack,),
            )
    for found in state.limits.application_blockers(leaf.path, application_id, user):
        lack = Lack(
            name=APPLICATIONS,
            asked=1,
            available=found.limit - found.running,
            limit=found.limit,
            position=found.positions.get("maxapplications", found.position),
        )
        yield Blocker(
            reason=RefusalReason.USER_APPLICATIONS,
            kind=_kind(found.kind),
            subject=found.name,
            queue_path=found.queue_path,
            lacks=(lack,),
        )


def _kind(kind: HolderKind) -> SubjectKind:
    return SubjectKind.USER if kind == "user" else SubjectKind.GROUP
