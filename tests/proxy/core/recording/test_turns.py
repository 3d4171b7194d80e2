"""What becomes of the turns of partitions: lines, times, answers, and changes of several partitions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
    older_ask_request,
)
from support.proxy.recorded_traffic import Hearing, JudgingHearing, callbacks_in, recorded_lines, replayed

from licorne import Scheduler
from licorne.model.marks import marked_methods
from licorne.model.partition import Partition
from licorne.model.state.partition_state import BrokenKind
from licorne.proxy.core.recording.observer import ReplayDifferenceError
from licorne.proxy.core.recording.partition_turns import STEPS, RecordedPartition
from licorne.proxy.core.resolvers.resolver import StaticResolver
from licorne.proxy.si import si_pb2 as si


def recorded(
    tmp_path: Path, traffic: Callable[[Scheduler], object], manager: Hearing | None = None
) -> list[dict[str, Any]]:
    """Record traffic after a registration, and replay it; return the lines that come after that."""
    manager = manager or Hearing()
    with Scheduler(
        engine="direct", record=tmp_path, resolver=StaticResolver({"bob": ("cooks",)})
    ) as scheduler:
        scheduler.register("rm", manager, configuration=ONE)
        traffic(scheduler)
        scheduler.deliver()
    assert manager.callbacks == callbacks_in(replayed(tmp_path)), "a replay says something else"
    return recorded_lines(tmp_path)[2:]


def verbs(lines: list[dict[str, Any]]) -> list[str]:
    known = ("configuration", "node", "step", "retire")
    return [next(key for key in line if key in known) for line in lines]


def test_every_method_that_changes_a_partition_is_recorded() -> None:
    """One that is new and not overridden would be missing in the replay."""
    changing = {name for name, mark in marked_methods(Partition).items() if mark == "writes"}
    not_here = {"place_concurrently"}  # For an engine that cannot be recorded.

    assert changing - not_here == {name for name in changing if name in vars(RecordedPartition)}
    assert set(STEPS) <= changing


def test_a_method_inside_of_another_one_is_no_turn(tmp_path: Path) -> None:
    """The replay of the outer one does it again."""
    (line,) = recorded(tmp_path, lambda scheduler: scheduler._cluster.partitions()[0].work(3))

    assert (3, {"at", "partition", "schedule"}) == (line["schedule"], set(line))


def test_the_groups_that_were_found_are_in_the_line(tmp_path: Path) -> None:
    """A replay has no resolver that would find them again."""
    (line,) = recorded(tmp_path, lambda scheduler: scheduler.update_application(application_request("app")))

    assert {"bob": ["cooks"]} == line["groups"]


def test_the_answers_of_predicates_are_in_the_line(tmp_path: Path) -> None:
    """In order, those that refuse as texts."""
    manager = JudgingHearing()

    def traffic(scheduler: Scheduler) -> None:
        scheduler.update_node(node_request("n1", "n2", "n3"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request(*(f"k{number}" for number in range(20))))
        scheduler.run_until_idle()

    lines = recorded(tmp_path, traffic, manager)
    answers = [answer for line in lines for answer in line.get("answers", ())]

    assert manager.questions == len(answers)
    assert {None} < set(answers)


def test_a_quarantine_is_in_the_recording(tmp_path: Path) -> None:
    """What broke is not scheduled in the replay either."""

    def traffic(scheduler: Scheduler) -> None:
        scheduler.update_node(node_request("n1"))
        scheduler._cluster.partitions()[0].quarantine(BrokenKind.NODE, "n1", "odd")
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("one"))
        scheduler.run_until_idle()

    line = recorded(tmp_path, traffic)[1]

    assert {"kind": "node", "name": "n1", "reason": "odd"} == line["quarantine"]


def test_a_turn_that_breaks_breaks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what it raised, and the replay goes on behind it."""

    def fail(_: object) -> None:
        raise ZeroDivisionError("odd")

    def traffic(scheduler: Scheduler) -> None:
        with pytest.raises(ZeroDivisionError):
            scheduler._cluster.partitions()[0].run_until_idle()
        scheduler.update_node(node_request("n1"))

    monkeypatch.setattr("licorne.model.partition.run_cycle", fail)
    lines = recorded(tmp_path, traffic)

    assert "ZeroDivisionError('odd')" == lines[0]["failed"]


def test_an_answer_that_comes_from_no_partition_is_recorded(tmp_path: Path) -> None:
    """A request may name a partition that does not exist."""
    lines = recorded(tmp_path, lambda scheduler: scheduler.update_node(node_request("n1", partition="other")))

    assert "rm" == lines[0]["answer"]["rmID"]


def test_the_generation_of_an_answer_is_that_of_its_turn(tmp_path: Path) -> None:
    """What was announced before the first older ask has no older names, whenever it is delivered."""
    manager = Hearing()

    def traffic(scheduler: Scheduler) -> None:
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("new"))
        scheduler._cluster.partitions()[0].cycle()
        scheduler.update_allocation(older_ask_request("older", 0))
        scheduler._cluster.partitions()[0].cycle()

    recorded(tmp_path, traffic, manager)
    placed = [callback for callback in manager.callbacks if '"new": [' in callback]

    assert ["UUID" in callback for callback in placed] == [False, True]


def test_a_change_of_two_partitions_is_one_line(tmp_path: Path) -> None:
    """It names the partitions that it made."""
    lines = recorded(tmp_path, lambda scheduler: scheduler.update_configuration(configuration_request(TWO)))

    assert [{"[rm]second": 2}] == [line["partitions"] for line in lines]


def test_a_partition_that_ends_does_so_where_it_ended(tmp_path: Path) -> None:
    """Its last turns come after the line of the change."""

    def traffic(scheduler: Scheduler) -> None:
        scheduler.update_configuration(configuration_request(TWO))
        scheduler.update_node(node_request("n2", partition="second"))
        scheduler.update_configuration(configuration_request(ONE))

    lines = recorded(tmp_path, traffic)

    assert ["configuration", "step", "retire"] == verbs(lines[-3:])


def test_a_change_that_is_undone_leaves_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next change has one, and the recording goes on."""
    manager = Hearing()

    def traffic(scheduler: Scheduler) -> None:
        scheduler.update_configuration(configuration_request(TWO))
        with monkeypatch.context() as broken:
            broken.setattr(scheduler._managers, "enter", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                scheduler.update_configuration(configuration_request(ONE))
        scheduler.update_node(node_request("n1"))

    lines = recorded(tmp_path, traffic, manager)

    assert ["configuration", "node"] == verbs(lines)


def test_a_change_that_is_undone_after_a_partition_worked_with_it_ends_the_recording(
    tmp_path: Path, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No replay could do that: it is logged, and what was recorded before can be replayed."""

    def traffic(scheduler: Scheduler) -> None:
        def work_and_fail(_: object) -> None:
            scheduler._cluster.partitions()[0].work(1)
            raise ZeroDivisionError

        with monkeypatch.context() as broken:
            broken.setattr(scheduler._managers, "enter", work_and_fail)
            with pytest.raises(ZeroDivisionError):
                scheduler.update_configuration(configuration_request(TWO))

    assert [] == recorded(tmp_path, traffic)
    assert any("a reload was undone after a partition had worked with it" in line for line in logged)


def test_what_is_announced_waits_for_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the line is written the manager has heard nothing."""
    manager = Hearing()
    waiting: list[int] = []
    write = os.write

    def traffic(scheduler: Scheduler) -> None:
        assert scheduler._outbox is not None
        outbox = scheduler._outbox

        def look(file: int, content: bytes | memoryview) -> int:
            waiting.append(len(outbox._waiting))
            return write(file, content)

        monkeypatch.setattr(os, "write", look)
        scheduler.update_node(node_request("n1"))
        waiting.append(len(outbox._waiting))

    recorded(tmp_path, traffic, manager)

    assert [0, 1] == waiting[:2]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"answers":[null]', '"answers":[null,"no"]', "1 of the recorded answers .* not asked for: .* 'no'"),
        ('"answers":[null]', '"answers":[]', "no answer was recorded to whether 'one' may run on 'n1'"),
        ('"answers":[null]', '"answers":[7]', "7 was recorded for 'one' on 'n1': no reason"),
        ('{"[rm]default":1}', "{}", "recorded partitions: none; made: .rm.default"),
    ],
)
def test_a_replay_that_differs_ends(before: str, after: str, said: str, tmp_path: Path) -> None:
    """The error says where, and in what."""

    def traffic(scheduler: Scheduler) -> None:
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("one"))
        scheduler.run_until_idle()

    recorded(tmp_path, traffic, AgreeingHearing())
    (file,) = tmp_path.glob("*/*")
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))

    with pytest.raises(ReplayDifferenceError, match=said):
        replayed(tmp_path)


class AgreeingHearing(Hearing):
    """Is asked about each node, and agrees."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Agree."""
