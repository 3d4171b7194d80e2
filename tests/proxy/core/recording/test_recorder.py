"""The recorder: in what order lines are written and announcements passed on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.model.builders import a_configuration, a_host

from licorne.model.partition import Partition
from licorne.model.policies.policies import GivenPolicies
from licorne.model.values.messages import NodeAction, NodesAnswered, NodeUpdate, Rejection
from licorne.proxy.core.recording.observer import NewPartition
from licorne.proxy.core.recording.recorder import TurnRecorder
from licorne.proxy.core.recording.recording import Recording
from licorne.proxy.si.older_generation import Delivery, Generation, InGeneration

RM: Final = "rm"


class Announced:
    """A manager's link: what is announced, and when it is flushed."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def announce(self, announcement: Delivery) -> None:
        assert isinstance(announcement, InGeneration)
        answer = announcement.announcement
        assert isinstance(answer, NodesAnswered)
        self.order += [*answer.accepted, *(rejection.subject_id for rejection in answer.rejected)]

    def flush(self) -> None:
        self.order.append("flush")


class Recorded:
    """A recorder that lets lines wait for a flush, on a clock that stands at 7."""

    def __init__(self, folder: Path) -> None:
        self.link = Announced()
        self.recorder = TurnRecorder(
            Recording(folder),
            now_ns=lambda: 7,
            may_hold=True,
            reservations_on=True,
            policies=GivenPolicies({}),
        )

    def partition(self, name: str = "default") -> Partition:
        """Make a partition in the change that is under way."""
        host = a_host(now_ns=lambda: 8, announce=self.link.announce, flush=self.link.flush)
        return self.recorder.make_partition(
            NewPartition(
                incarnation=f"[{RM}]{name}#1",
                name=f"[{RM}]{name}",
                rm_id=RM,
                config=a_configuration(),
                host=host,
                generation=Generation(),
            )
        )

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines that are written, without the first one."""
        assert self.recorder.folder is not None
        (file,) = self.recorder.folder.iterdir()
        return [json.loads(row) for row in file.read_text().splitlines()][1:]

    def verbs(self) -> list[str]:
        """Return the verbs of the lines."""
        known = ("register", "configuration", "node", "step", "answer")
        return [next(key for key in line if key in known) for line in self.lines()]


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    """Give a recorder."""
    recorded = Recorded(tmp_path)
    yield recorded
    recorded.recorder.close()


def registered(recorded: Recorded) -> Partition:
    """Register a manager with one partition."""
    with recorded.recorder.change("register", RM, "text"):
        partition = recorded.partition()
    recorded.link.order.clear()
    return partition


def create(partition: Partition, node_id: str) -> None:
    update = NodeUpdate(node_id=node_id, action=NodeAction.CREATE, attributes={}, resource=None)
    partition.update_nodes([update])


def refusal(node_id: str) -> NodesAnswered:
    return NodesAnswered((), (Rejection(node_id, "no partition"),))


def test_turns_wait_for_the_flush(recorded: Recorded) -> None:
    """Until then neither is a line written nor the manager announced anything."""
    partition = registered(recorded)
    create(partition, "one")
    create(partition, "two")

    assert (["register"], []) == (recorded.verbs(), recorded.link.order)
    partition.host.flush()
    assert ["register", "node", "node"] == recorded.verbs()
    assert ["one", "two", "flush"] == recorded.link.order


def test_a_step_that_is_waited_for_writes_what_was_held(recorded: Recorded) -> None:
    """Its caller does not flush."""
    partition = registered(recorded)
    create(partition, "one")
    partition.watch_quotas()

    assert ["register", "node", "step"] == recorded.verbs()
    assert ["one"] == recorded.link.order


def test_turns_under_a_change_come_after_its_line(recorded: Recorded) -> None:
    """What they announce is delivered then, without another turn."""
    partition = registered(recorded)
    with recorded.recorder.change("configuration", RM, "text"):
        partition.reconfigure(a_configuration())
        create(partition, "one")
        partition.host.flush()
        assert ["register"] == recorded.verbs()
        recorded.link.order.clear()

    assert ["register", "configuration", "node"] == recorded.verbs()
    assert ["one", "flush"] == recorded.link.order


def test_turns_before_a_change_come_before_its_line(recorded: Recorded) -> None:
    """Also if they were held until then."""
    partition = registered(recorded)
    create(partition, "one")
    with recorded.recorder.change("configuration", RM, "text"):
        partition.reconfigure(a_configuration())

    assert ["register", "node", "configuration"] == recorded.verbs()


def test_turns_of_a_partition_that_has_not_changed_yet_do_not_wait(recorded: Recorded) -> None:
    """They are made under the configuration before."""
    partition = registered(recorded)
    with recorded.recorder.change("configuration", RM, "text"):
        create(partition, "one")
        partition.host.flush()
        assert ["register", "node"] == recorded.verbs()


def test_an_answer_to_a_manager_waits_for_its_registration(recorded: Recorded) -> None:
    """In the replay it would not be known yet; one to another manager does not wait."""
    with recorded.recorder.change("register", RM, "text"):
        recorded.partition()
        recorded.recorder.answer(RM, refusal("one"), recorded.link.announce, older=False)
        recorded.recorder.answer("other", refusal("two"), recorded.link.announce, older=False)
        assert ["two"] == recorded.link.order

    assert ["answer", "register", "answer"] == recorded.verbs()
    assert ["two", "one", "flush"] == recorded.link.order


def test_an_answer_that_is_not_sent_has_no_line(recorded: Recorded) -> None:
    """It has no entries."""
    recorded.recorder.answer(RM, NodesAnswered((), ()), recorded.link.announce, older=False)

    assert [] == recorded.verbs()


def test_what_a_dropped_partition_did_is_dropped(recorded: Recorded) -> None:
    """Its registration has not happened; an answer to its manager has."""

    def fail() -> None:
        with recorded.recorder.change("register", RM, "text"):
            partition = recorded.partition()
            create(partition, "one")
            partition.host.flush()
            recorded.recorder.answer(RM, refusal("two"), recorded.link.announce, older=False)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert ["answer"] == recorded.verbs()
    assert recorded.recorder.is_open


def test_the_time_stands_still_in_a_turn(recorded: Recorded) -> None:
    """A change has one time for all its partitions, a turn its own."""
    registered(recorded).watch_quotas()

    assert [7, 8] == [line["at"] for line in recorded.lines()]


def test_nothing_is_written_after_the_end(recorded: Recorded) -> None:
    """What is held then is written first; announcements go on."""
    partition = registered(recorded)
    create(partition, "one")
    recorded.recorder.close()
    assert ["register", "node"] == recorded.verbs()
    create(partition, "two")
    partition.host.flush()

    assert ["register", "node"] == recorded.verbs()
    assert ["one", "two", "flush"] == recorded.link.order
    assert not recorded.recorder.is_open


def test_a_line_that_cannot_be_made_ends_the_recording(recorded: Recorded, logged: list[str]) -> None:
    """Scheduling goes on, and the log asks for a report."""
    partition = registered(recorded)
    attributes: Any = {"rack": {2}}
    update = NodeUpdate(node_id="x", action=NodeAction.UPDATE, attributes=attributes, resource=None)
    partition.update_nodes([update])
    create(partition, "one")
    partition.host.flush()

    assert ["register"] == recorded.verbs()
    assert "one" in recorded.link.order
    assert any("a turn cannot be written, please report" in text for text in logged)
