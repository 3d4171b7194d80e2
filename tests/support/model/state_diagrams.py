"""The state machines as diagrams, drawn from the very tables that run: they cannot say anything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, TypeVar

from licorne.model.applications.effects import TRANSITIONS, ApplicationState
from licorne.model.values.states import MANAGER_TRANSITIONS, OBJECT_TRANSITIONS, ManagerState, ObjectState
from licorne.proxy.kubernetes.running.life import APPLICATION_TABLE, TASK_TABLE
from licorne.proxy.kubernetes.running.tasks import PodApplicationPhase, TaskState
from licorne.proxy.wire.client.recovery_parts import RECOVERY_TRANSITIONS, RecoveryState

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)

_HEAD: Final = "stateDiagram-v2"
_END: Final = "[*]"
"""Mermaid's name for where a life begins, and for where it ends."""


def application_states() -> str:
    """Draw the life of an application, as the text of a mermaid diagram without a line's end at its end."""
    return _drawn(TRANSITIONS, ApplicationState.NEW)


def object_states() -> str:
    """Draw the life of a queue or a partition, in the same way."""
    return _drawn(OBJECT_TRANSITIONS, ObjectState.ACTIVE)


def manager_states() -> str:
    """Draw the life of a resource manager, in the same way."""
    return _drawn(MANAGER_TRANSITIONS, ManagerState.INIT)


def recovery_states() -> str:
    """Draw the life of a recovery, in the same way."""
    return _drawn(RECOVERY_TRANSITIONS, RecoveryState.NEW)


def task_states() -> str:
    """Draw the life of a pod, in the same way, without the events that keep a state."""
    return _drawn(_changes(TASK_TABLE), TaskState.NEW)


def pod_application_states() -> str:
    """Draw the life of the application of pods, in the same way."""
    return _drawn(_changes(APPLICATION_TABLE), PodApplicationPhase.WAITING)


def _changes(
    table: Mapping[tuple[State, Event], tuple[State, object]],
) -> Mapping[tuple[State, Event], State]:
    return {key: target for key, (target, _) in table.items() if target is not key[0]}


def _drawn(transitions: Mapping[tuple[State, Event], State], first: State) -> str:
    return "\n".join([_HEAD, *(f"    {line}" for line in _lines(transitions, first))])


def _lines(transitions: Mapping[tuple[State, Event], State], first: State) -> Iterator[str]:
    """Give one line a transition, in the order of the table, between the beginning and the ends."""
    yield f"{_END} --> {first.value}"
    for (state, event), target in transitions.items():
        yield f"{state.value} --> {target.value}: {event.value}"
    left = {state for state, _ in transitions}
    for target in dict.fromkeys(transitions.values()):
        if target not in left:
            yield f"{target.value} --> {_END}"
