"""Recordings of resource managers that pause, stop, register again, or have a part of their partitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

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
from support.proxy.recorded_traffic import Hearing, callbacks_in, recorded_lines, replayed

from licorne import LicorneError, Recording, RequestError, Scheduler
from licorne.model.state.host import RetryAsks
from licorne.proxy.core.explanation.text import what_blocks
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.transcripts.replay import Replay, replay
from licorne.proxy.play.transcripts.transcript import (
    TranscriptError,
    read_recording,
    read_transcript,
    recording_files,
    rows_of_files,
)

SECOND_NS: Final = 1_000_000_000


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Scheduler]:
    """Give a recorded scheduler with two managers, each with an ask that waits."""
    with Scheduler(engine="direct", record=tmp_path) as scheduler:
        for rm_id in ("rm", "other"):
            scheduler.register(rm_id, Hearing(), configuration=ONE)
            scheduler.update_node(node_request(f"{rm_id}-node", rm_id=rm_id, memory=1))
            scheduler.update_application(application_request(f"{rm_id}-app", rm_id=rm_id))
            scheduler.update_allocation(
                ask_request("waits", rm_id=rm_id, application=f"{rm_id}-app", memory=2)
            )
        scheduler.run_until_idle()
        yield scheduler


def shown(scheduler: Scheduler) -> dict[str, list[str]]:
    """Return the states of the managers, and what blocks the application of each."""
    texts = {}
    for status in scheduler.resource_managers():
        explanation = scheduler.explain(f"{status.rm_id}-app", rm_id=status.rm_id)
        blocked = [what_blocks(blocker, explanation.time_ns) for blocker in explanation.blockers]
        texts[status.rm_id] = [status.state.value, status.reason, str(status.since_ns), *blocked]
    return texts


def at_the_end(folder: Path) -> Scheduler:
    """Return the scheduler of a replay, after the last line."""
    scheduler = Scheduler(engine="direct")
    Replay(scheduler, lambda _: None).run(
        read_recording(rows_of_files(recording_files(folder)), lambda _: None)
    )
    return scheduler


@pytest.mark.parametrize("life", ["pause_manager", "stop_manager"])
def test_a_moment_of_a_replay_says_that_a_manager_is_not_there(
    recorded: Scheduler, life: str, tmp_path: Path
) -> None:
    """Since when and why, also when a halted turn of it comes last; it says so of no other one."""
    before = shown(recorded)
    getattr(recorded, life)("rm", "the stream broke")
    at_once = shown(recorded)
    assert at_once == shown(at_the_end(tmp_path))

    recorded._cluster.partitions()[0].on_timer(RetryAsks())
    recorded.run_until_idle()
    (line,) = [line for line in recorded_lines(tmp_path) if "manager" in line]

    assert at_once == shown(recorded) == shown(at_the_end(tmp_path))
    assert before["other"] == at_once["other"]
    assert "the stream broke" in at_once["rm"][-1]
    assert {"rmID": "rm", "state": at_once["rm"][0], "reason": "the stream broke"} == line["manager"]


def test_a_change_that_does_not_happen_has_no_line(recorded: Scheduler, tmp_path: Path) -> None:
    """It is paused or stopped already, or has registered again."""
    done = [recorded.pause_manager("rm", "late", callback=Hearing()), recorded.pause_manager("rm", "first")]
    done += [recorded.pause_manager("rm", "second"), recorded.stop_manager("rm", "third")]
    done += [recorded.stop_manager("rm", "fourth"), recorded.pause_manager("rm", "fifth")]

    assert [False, True, False, True, False, False] == done
    assert ["first", "third"] == [
        line["manager"]["reason"] for line in recorded_lines(tmp_path) if "manager" in line
    ]


@pytest.mark.parametrize("life", ["pause_manager", "stop_manager"])
def test_a_manager_that_has_registered_again_runs_in_the_replay(
    recorded: Scheduler, life: str, tmp_path: Path
) -> None:
    """What it had before ends there as well."""
    getattr(recorded, life)("rm", "the stream broke")
    recorded.run_until_idle()
    manager = Hearing()
    recorded.register("rm", manager, configuration=ONE)
    recorded.update_node(node_request("new"))
    recorded.update_application(application_request("rm-app"))
    recorded.update_allocation(ask_request("ask", application="rm-app"))
    recorded.run_until_idle()
    recorded.deliver()
    last = max(document["registeredAt"] for document in replayed(tmp_path))

    assert any('"ask"' in callback for callback in manager.callbacks)
    assert manager.callbacks == callbacks_in(
        [document for document in replayed(tmp_path) if document["registeredAt"] == last]
    )
    assert shown(recorded) == shown(at_the_end(tmp_path))


def test_a_manager_that_has_stopped_may_ask_for_nothing_after_the_recording(
    recorded: Scheduler, tmp_path: Path
) -> None:
    """Its timers have ended, too."""
    recorded.update_application(application_request("app"))
    recorded.update_allocation(older_ask_request("limited", 60_000))
    recorded.run_until_idle()
    timer_ns = at_the_end(tmp_path).next_timer_ns()
    recorded.stop_manager("other", "gone")
    recorded.stop_manager("rm", "gone")
    replay = at_the_end(tmp_path)

    assert timer_ns is not None
    assert replay.next_timer_ns() is None
    with pytest.raises(RequestError, match="has stopped: gone"):
        replay.update_node(node_request("more"))


def test_the_reason_is_not_in_an_anonymous_recording(tmp_path: Path) -> None:
    """It is a text for people."""
    with Scheduler(engine="direct", record=Recording(tmp_path, anonymize=True)) as scheduler:
        scheduler.register("rm", Hearing(), configuration=ONE)
        scheduler.pause_manager("rm", "a secret")

    assert {"rmID": "rm", "state": "Paused", "reason": ""} == recorded_lines(tmp_path)[-1]["manager"]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"rmID": "rm"}, {"rmID": "rm", "state": "Running", "reason": ""}, None),
        *(
            {"rmID": 1, "state": "Paused", "reason": ""},
            {"rmID": "", "state": "Paused", "reason": "", "x": 1},
        ),
    ],
)
def test_what_is_no_state_of_a_manager_is_not_read(wrong: Any) -> None:
    """The message says what is wanted."""
    text = json.dumps({"at": 1, "manager": wrong})
    with pytest.raises(LicorneError, match=r"expected an rmID, a state .* and a reason"):
        read_transcript(text, "x")


# ------------------------------------------------------------------------------------ partition subsets


REGISTER: Final = {"rmID": "rm", "config": TWO}


@pytest.mark.parametrize("engine", ["direct", "actors"])
def test_a_recording_is_replayed_with_the_same_partitions(engine: EngineName, tmp_path: Path) -> None:
    """Through updates which end the partition and make it again; its line names it as the RM does."""
    listener = Hearing()
    with Scheduler(engine=engine, stepped=True, record=tmp_path) as scheduler:
        scheduler.register("rm", listener, configuration=TWO, partitions=["second"])
        for name, text in (("n1", ONE), ("n2", TWO), ("n3", TWO)):
            scheduler.update_node(node_request(name, partition="second"))
            scheduler.run_until_idle()
            scheduler.update_configuration(configuration_request(text))
        scheduler.update_application(application_request("app", partition="second"))
        scheduler.update_allocation(ask_request("ask", application="app", partition="second"))
        scheduler.run_until_idle()
    lines = recorded_lines(tmp_path)

    assert [["second"]] == [line["only"] for line in lines if "register" in line]
    assert [["[rm]second"], ["[rm]second"]] == [
        [*line["partitions"]] for line in lines if "partitions" in line
    ]
    assert listener.callbacks == callbacks_in(replayed(tmp_path), "rm")
    assert "placed ask" in listener.heard


def test_an_anonymous_recording_keeps_the_names_of_partitions(tmp_path: Path) -> None:
    """As it does everywhere; it is replayed with the same ones."""
    with Scheduler(engine="direct", record=Recording(tmp_path, anonymize=True)) as scheduler:
        scheduler.register("rm", Hearing(), configuration=TWO, partitions=["second"])
        scheduler.update_node(node_request("n1", partition="second"))
        scheduler.run_until_idle()
    names = [line["only"] for line in recorded_lines(tmp_path) if "register" in line]

    assert [["second"]] == names
    assert 1 == len(replayed(tmp_path))


def test_a_transcript_names_the_partitions_to_make() -> None:
    """Two registrations, of which the second has all of them."""
    lines = [
        {"register": REGISTER, "only": ["second"]},
        {"snapshot": True},
        {"register": REGISTER},
        {"snapshot": True},
        {"register": REGISTER, "only": ["other"]},
        {"register": REGISTER, "only": []},
    ]
    output: list[str] = []
    replay("\n".join(map(json.dumps, lines)), "transcript", "direct", output.append)
    rows = [json.loads(row) for row in output]

    assert [["second"], ["default", "second"]] == [
        [*row["snapshot"]["queues"]] for row in rows if "snapshot" in row
    ]
    assert [
        "registration of RM failed: the configuration has no partition 'other', which `partitions` names",
        "the list of partitions to make is empty: name some, or leave it out for all",
    ] == [row["error"] for row in rows if "error" in row]


MALFORMED: Final = {
    "at another verb": {"configuration": {"rmID": "rm"}, "only": ["second"]},
    "no list": {"register": REGISTER, "only": "second"},
    "a line of a recording, at another verb": {"at": 1, "configuration": {"rmID": "rm"}, "only": ["second"]},
}


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_names_that_make_no_sense_are_refused(line: dict[str, object]) -> None:
    with pytest.raises(TranscriptError, match="t:1: `only` is a list of partitions, beside `register`"):
        read_transcript(json.dumps(line), "t")


def test_a_line_of_names_alone_has_no_verb() -> None:
    with pytest.raises(TranscriptError, match="t:1: a line is an object with one key, its verb"):
        read_transcript('{"only": ["second"]}', "t")
