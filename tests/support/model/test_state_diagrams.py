"""The diagrams of the state machines say what the tables say, and nothing else."""

from __future__ import annotations

from support.model.state_diagrams import application_states, manager_states, object_states, recovery_states

from licorne.model.applications.effects import TRANSITIONS
from licorne.model.values.states import MANAGER_TRANSITIONS, OBJECT_TRANSITIONS


def arrows(diagram: str) -> list[str]:
    """Return what a diagram draws, without its first line."""
    head, *lines = diagram.splitlines()
    assert head == "stateDiagram-v2"
    assert all(line.startswith("    ") for line in lines)
    return [line.strip() for line in lines]


def test_an_application_begins_as_new_and_ends_as_expired() -> None:
    """Only Expired leads nowhere."""
    lines = arrows(application_states())

    assert lines[0] == "[*] --> New"
    assert ["Expired --> [*]"] == [line for line in lines if line.endswith("[*]")]


def test_every_transition_of_an_application_is_one_arrow() -> None:
    """In the order of the table; an event that changes nothing is drawn as well."""
    lines = arrows(application_states())

    assert len(TRANSITIONS) + 2 == len(lines)
    assert "Accepted --> Running: runApplication" in lines
    assert "Running --> Running: runApplication" in lines
    assert [f"{a.value} --> {b.value}: {event.value}" for (a, event), b in TRANSITIONS.items()] == lines[1:-1]


def test_a_queue_begins_active_and_never_ends() -> None:
    """Every state of a queue can be left again."""
    lines = arrows(object_states())

    assert lines[0] == "[*] --> Active"
    assert len(OBJECT_TRANSITIONS) + 1 == len(lines)
    assert "Draining --> Active: Start" in lines
    assert [] == [line for line in lines if line.endswith("[*]")]


def test_a_resource_manager_begins_as_init_and_may_always_register() -> None:
    """Also one that has stopped: its life has no end."""
    lines = arrows(manager_states())

    assert lines[0] == "[*] --> Init"
    assert len(MANAGER_TRANSITIONS) + 1 == len(lines)
    assert "Stopped --> Running: Register" in lines
    assert [] == [line for line in lines if line.endswith("[*]")]


def test_a_recovery_begins_as_new_and_ends_when_it_fails() -> None:
    """One that runs may begin anew with a further list."""
    lines = arrows(recovery_states())

    assert lines[0] == "[*] --> New"
    assert ["Failed --> [*]"] == [line for line in lines if line.endswith("[*]")]
