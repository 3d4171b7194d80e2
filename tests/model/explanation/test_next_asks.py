"""Which asks are tried next: as the cycles then try them, and nothing is changed by the question."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.model.builders import TEN, a_resource
from support.model.harness import Harness, a_partition
from support.transcripts.simulated_transcripts import simulated_transcript

import licorne.model.partition as partitions
from licorne.model.applications.asks import ApplicationAsks
from licorne.model.explanation.dry_run import NEXT_ASKS_MAX, next_asks
from licorne.model.scheduling import giving, reserved_pass
from licorne.model.scheduling.cycle import CycleOutcome, run_cycle
from licorne.model.state.partition_state import PartitionState
from licorne.model.values.allocation import PlacementHalt, RefusalReason
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript

SEEDS: Final = (*range(7), 8)


def listed(harness: Harness, count: int = 20) -> list[str]:
    return [found.ask.allocation_key for found in next_asks(harness.state, count).asks]


def passes(harness: Harness) -> list[tuple[str, str]]:
    return [(found.ask.allocation_key, found.trying_pass.name) for found in next_asks(harness.state, 20).asks]


def test_asks_are_listed_as_they_are_placed() -> None:
    """By queue, application, priority and age; each placement may change the order of the rest."""
    harness = Harness("- {name: busy}\n- {name: idle}")
    harness.nodes("n1", capacity=a_resource(memory=1000))
    for name, queue in (("a", "root.busy"), ("b", "root.idle"), ("c", "root.idle")):
        harness.submit(name, queue)
    harness.ask("a1", "a2", application_id="a")
    harness.ask("b1", "b2", application_id="b", priority=1)
    harness.ask("b3", application_id="b", priority=7)
    harness.ask("c1", application_id="c", priority=7)
    placed: list[str] = []
    for _ in range(6):
        (first,) = listed(harness, 1)
        harness.cycle()
        assert first in harness.placements
        placed.append(first)

    assert {"a1", "a2", "b1", "b2", "b3", "c1"} == set(placed)
    assert [] == listed(harness)


def test_the_question_does_not_bring_the_orders_up_to_date() -> None:
    """What has changed since the last walk is listed at its new place, and has its old one still."""
    harness = Harness()
    harness.submit("old")
    harness.submit("new")
    harness.ask("o", application_id="old")
    harness.ask("n", application_id="new", priority=3)
    assert [] == list(harness.queue().entries._waiting)

    assert ["n", "o"] == listed(harness)
    assert [] == list(harness.queue().entries._waiting)


def test_what_no_cycle_tries_is_left_out() -> None:
    """An application that may not start, and members of a gang before a placeholder is placed."""
    harness = Harness("- {name: leaf, maxapplications: 1}")
    harness.nodes("n1", capacity=a_resource(memory=20))
    harness.submit("gang", placeholder_ask=TEN)
    harness.submit("late")
    harness.ask("holder", application_id="gang", task_group_name="group", placeholder=True)
    harness.ask("member", application_id="gang", task_group_name="group")
    assert [("holder", "REGULAR")] == passes(harness)

    harness.cycle()
    harness.ask("waits", application_id="late")

    assert [("member", "PLACEHOLDER")] == passes(harness)


def test_asks_with_a_reservation_go_first_and_stand_once() -> None:
    """With their node."""
    harness = a_partition("n1", "n2")
    harness.ask_and_run("r1", "r2", resource=a_resource(memory=6))
    harness.ask("large", resource=a_resource(memory=8))
    harness.wait(3)
    harness.ask("urgent", resource=a_resource(memory=1), priority=5)

    found = next_asks(harness.state, 20).asks
    assert [("large", "n1"), ("urgent", "")] == [
        (each.ask.allocation_key, each.reserved_node) for each in found
    ]


def test_why_nothing_is_tried_is_said() -> None:
    """For the whole partition; the order is that of the time when it goes on."""
    harness = a_partition()
    harness.ask("ask")
    found = next_asks(harness.state, 1)

    assert [RefusalReason.NO_CAPACITY] == [blocker.reason for blocker in found.blockers]
    harness.nodes("n1")
    assert () == next_asks(harness.state, 1).blockers
    harness.halt = PlacementHalt(reason=RefusalReason.CONGESTED, since_ns=0)
    assert ["ask"] == listed(harness)


@pytest.mark.parametrize("seed", SEEDS)
def test_cycles_ask_and_run_in_the_order_that_was_listed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has happened: random transcripts, with the question before each cycle."""
    tried: list[str] = []
    asked: list[int] = []
    for module, name, place in (
        (giving, "commit", 2),
        (reserved_pass, "_begin", 2),
    ):
        monkeypatch.setattr(module, name, recording(getattr(module, name), tried, place))
    find = ApplicationAsks.next_candidate

    def next_candidate(asks: ApplicationAsks, *rest: Any) -> object:
        candidate = find(asks, *rest)
        if candidate is not None and not candidate.reserved_node:
            tried.append(candidate.ask.allocation_key)
        return candidate

    monkeypatch.setattr(ApplicationAsks, "next_candidate", next_candidate)

    def cycle(state: PartitionState) -> CycleOutcome:
        keys = [found.ask.allocation_key for found in next_asks(state, NEXT_ASKS_MAX).asks]
        tried.clear()
        outcome = run_cycle(state)
        found = list(dict.fromkeys(tried))
        assert found == [key for key in keys if key in found], f"{found} are tried, {keys} were listed"
        asked.append(len(found))
        return outcome

    monkeypatch.setattr(partitions, "run_cycle", cycle)
    replay = Replay(Scheduler(engine="direct"), lambda _: None)
    with replay.scheduler:
        replay.run(read_transcript("\n".join(simulated_transcript(seed)), "transcript"))
    assert sum(asked) >= 5, "hardly anything was tried"


def recording(function: Any, tried: list[str], place: int) -> Any:
    def recorded(*arguments: Any) -> object:
        tried.append(key_in(arguments[place]))
        return function(*arguments)

    return recorded


def key_in(given: Any) -> str:
    """Return the key of an ask, or of the ask in an offer to replace a placeholder."""
    key: str = getattr(given, "ask", given).allocation_key
    return key


def test_a_long_list_is_cut() -> None:
    """Each question has a bound."""
    harness = a_partition()
    harness.ask(*(f"ask-{number:03d}" for number in range(300)))

    assert NEXT_ASKS_MAX == len(listed(harness, NEXT_ASKS_MAX))
    with pytest.raises(AssertionError, match="251 asks are too many"):
        next_asks(harness.state, NEXT_ASKS_MAX + 1)
