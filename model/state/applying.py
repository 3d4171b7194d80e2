"""What a partition does with the answer of an application: order, timers and the RM follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..applications.effects import StateEntered, TimerSet
from ..applications.state import ApplicationState
from ..resources.comparisons import is_zero
from ..resources.resource import EMPTY
from ..values.messages import AllocationsReleased, ApplicationChanged, Release
from .charges import drop_reservations
from .surroundings import ApplicationTimer

if TYPE_CHECKING:
    from ..applications.effects import Answer, ReleaseWanted
    from ..queues.seat import Seat
    from .partition_state import PartitionState

__all__ = ["announce_state", "apply"]

_TERMINATED = (ApplicationState.COMPLETED, ApplicationState.FAILED)


def apply(state: PartitionState, seat: Seat, answer: Answer) -> None:
    """Bring order, timers and the RM up to date with what an application answered."""
    seat.facts = answer.facts
    queue = seat.queue
    if answer.effects:
        _follow(state, seat, answer)
    if seat.application_id in state.seats:
        queue.seats.refresh(seat)
        state.tree.refresh(queue)


def _follow(state: PartitionState, seat: Seat, answer: Answer) -> None:
    releases = []
    terminated = False
    for effect in answer.effects:
        if isinstance(effect, StateEntered):
            _entered(state, seat, effect)
            terminated = effect.entered in _TERMINATED
        elif isinstance(effect, TimerSet):
            serial = state.serials[seat.application_id]
            timer = ApplicationTimer(seat.application_id, serial, effect.kind, effect.generation)
            (state.expiries.add if terminated else state.timers.start)(effect.due_ns, timer)
        else:
            releases.append(_release(state, seat, effect))
    if releases:
        state.around.announce(AllocationsReleased(tuple(releases)))
    if terminated:
        _retire(state, seat)


def _entered(state: PartitionState, seat: Seat, effect: StateEntered) -> None:
    queue = seat.queue
    if effect.left is ApplicationState.RUNNING:
        state.changes += 1
        for level in queue.above:
            level.count_running(seat.application_id, -1)
    if effect.entered is ApplicationState.RUNNING:
        for level in queue.above:
            level.count_running(seat.application_id, 1)
    if effect.entered is ApplicationState.COMPLETING:
        _give_place_back(state, seat)
    queue.seats.rest = None
    announce_state(state, seat.application_id, effect)


def announce_state(state: PartitionState, application_id: str, effect: StateEntered) -> None:
    """Tell the RM of a state that an application has entered."""
    state.around.announce(
        ApplicationChanged(application_id, effect.entered.value, effect.time_ns, effect.text)
    )


def _release(state: PartitionState, seat: Seat, effect: ReleaseWanted) -> Release:
    return Release(
        partition=state.name,
        application_id=seat.application_id,
        allocation_key=effect.allocation_key,
        termination=effect.termination,
        message=effect.text,
    )


def _retire(state: PartitionState, seat: Seat) -> None:
    """Move an application that has terminated to the completed ones."""
    answer = seat.application.finish(state.now_ns())
    for record in answer.asks:
        if not record.placed:
            seat.remove_pending(record.ask)
    drop_reservations(state, answer.reservations)
    if answer.summary is not None:
        state.around.summarise(answer.summary)
    state.completed[state.serials[seat.application_id]] = seat.application
    state.unseat(seat)


def _give_place_back(state: PartitionState, seat: Seat) -> None:
    """Let another application of the user start in the place of one that is Completing and has nothing left.

    It ended with an allocation, or with the withdrawal of an ask. Placeholders keep its place: they use the
    user's quota.
    """
    if is_zero(seat.facts.allocated) and is_zero(seat.facts.placeholder_allocated):
        path = seat.queue.path
        state.limits.decrease(path, seat.application_id, seat.user, EMPTY, remove_application=True)
        state.changes += 1
