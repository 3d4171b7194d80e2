"""The tables of the life of pods and applications: what each event does in each state."""

from __future__ import annotations

from itertools import product

from support.kubernetes.stepped_cluster import PODS, SteppedCluster

from licorne.proxy.kubernetes.running.life import (
    APPLICATION_ROWS,
    APPLICATION_TABLE,
    TASK_ROWS,
    TASK_TABLE,
)
from licorne.proxy.kubernetes.running.tasks import (
    PhaseEvent,
    PodApplicationPhase,
    TaskEvent,
    TaskState,
)


def test_a_state_and_an_event_have_one_row() -> None:
    """A second row would replace the first one without a word."""
    assert len(TASK_TABLE) == sum(len(states) for states, *_ in TASK_ROWS)
    assert len(APPLICATION_TABLE) == sum(len(states) for states, *_ in APPLICATION_ROWS)


def test_each_event_has_a_row_and_each_state_is_reached() -> None:
    """Except the first states: nothing else in the tables is without use."""
    assert set(TaskEvent) == {event for _, event in TASK_TABLE}
    assert set(PhaseEvent) == {event for _, event in APPLICATION_TABLE}
    assert set(TaskState) == {target for target, _ in TASK_TABLE.values()}
    assert set(PodApplicationPhase) == {target for target, _ in APPLICATION_TABLE.values()}


def test_each_state_ends_and_no_event_changes_what_has_ended() -> None:
    """A pod may be deleted at any time, and its application with the last one."""
    assert set(TaskState) - {TaskState.ENDED} == {
        state for state, _ in TASK_TABLE if (state, TaskEvent.END) in TASK_TABLE
    }
    assert set(PodApplicationPhase) - {PodApplicationPhase.ENDED} == {
        phase for phase, event in APPLICATION_TABLE if event is PhaseEvent.DROP
    }
    assert {TaskState.ENDED} == set(TaskState) - {state for state, _ in TASK_TABLE}


def test_an_event_without_a_row_changes_nothing() -> None:
    """It comes too late: the state stays, and the scheduler hears nothing."""
    cluster = SteppedCluster()
    uid = cluster.add_pod()
    cluster.settle()
    parts, task = cluster.parts().shared, cluster.task(uid)
    for state, event in set(product(TaskState, TaskEvent)) - TASK_TABLE.keys():
        task.state = state
        parts.task_event(task, event)

        assert (state, []) == (task.state, parts.requests.take())

    for phase, change in set(product(PodApplicationPhase, PhaseEvent)) - APPLICATION_TABLE.keys():
        task.application.phase = phase
        parts.application_event(task.application, change)

        assert (phase, []) == (task.application.phase, parts.requests.take())


def test_a_pod_takes_the_states_of_the_table() -> None:
    """From the first sight to the end, as the page on it says."""
    cluster = SteppedCluster()
    uid = cluster.add_pod()
    seen: list[str] = []
    cluster.stub.before("POST", f"{PODS}/p/binding", lambda: seen.append(cluster.task(uid).state.value))
    cluster.settle()
    task = cluster.task(uid)
    seen.append(task.state.value)
    cluster.add_node()
    cluster.settle()
    seen.append(task.state.value)
    cluster.end_pod()
    cluster.settle()
    seen.append(task.state.value)

    assert ["Asked", "Binding", "Bound", "Ended"] == seen
