"""Recordings and transcripts of a resource manager (RM) that has a part of its partitions made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.proxy.recorded_traffic import Hearing, callbacks_in, recorded_lines, replayed

from licorne import Recording, Scheduler
from licorne.proxy.scheduler.engine_names import EngineName
from licorne.proxy.transcripts.replay import replay
from licorne.proxy.transcripts.transcript import TranscriptError, read_transcript

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
        "registration of RM failed: the configuration has no partition 'other', which is to be made",
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
