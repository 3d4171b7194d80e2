"""Recordings of resource managers that answer their predicates later."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.deferring import DeferringListener
from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    keys,
    node_request,
)
from support.proxy.recorded_traffic import Hearing, LaterHearing, callbacks_in, recorded_lines, replayed
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.simulated_transcripts import simulated_transcript
from support.waiting import WAIT_SECONDS, wait_until

from licorne import LicorneError, Recording, Scheduler
from licorne.model.values.messages import NoAnswer, NodesAnswer, PredicateAnswer, VictimsAnswer
from licorne.proxy.core.recording.observer import ReplayDifferenceError
from licorne.proxy.core.recording.turn_documents import (
    AskedLater,
    TakenAnswer,
    read_how_asked,
    read_taken,
    written_how_asked,
    written_taken,
)
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.transcripts.player import PlayedManager, TranscriptPlayer, TranscriptRules
from licorne.proxy.play.transcripts.transcript import read_transcript

SEEDS: Final = [*range(6), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(6, 100)]]


class DeferringHearing(DeferringListener, Hearing):
    """Answers when the test says so, and keeps its callbacks as a replay writes them."""


class PlayedLater(LaterHearing, PlayedManager):
    """A manager of a transcript that answers its predicates later; it confirms nothing by itself."""

    def __init__(self, rm_id: str, seed: int) -> None:
        LaterHearing.__init__(self, seed)
        self.rm_id = rm_id
        self._rules = TranscriptRules(is_confirming=False)


def played(text: str, seed: int, **options: Any) -> list[str]:
    """Play a transcript to a stepped scheduler; return what its managers heard."""
    managers: list[PlayedLater] = []

    def join(rm_id: str, _: TranscriptRules) -> PlayedManager:
        managers.append(PlayedLater(rm_id, seed))
        return managers[-1]

    with Scheduler(stepped=True, predicate_timeout_seconds=0.001, **options) as scheduler:
        player = TranscriptPlayer(scheduler, join)
        for line in read_transcript(text, "transcript"):
            if line.verb == "schedule":
                scheduler.schedule(line.cycles() or 5)
            elif line.verb == "advance":
                scheduler.advance_to(scheduler.now_ns() + line.duration_ns())
            else:
                try:
                    player.play(line)
                except LicorneError:
                    continue  # Some of it is refused.
            scheduler.deliver()
    return [callback for manager in managers for callback in manager.callbacks]


@pytest.mark.parametrize("make", [simulated_transcript, preemption_transcript])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("engine", "other"), [("direct", "actors"), ("actors", "direct")])
def test_the_replay_of_a_stepped_scheduler_makes_the_same_decisions(
    make: Callable[[int], list[str]], seed: int, engine: EngineName, other: EngineName, tmp_path: Path
) -> None:
    """No ask overtakes another there, which the replay heeds."""
    heard = played("\n".join(make(seed)), seed, engine=engine, record=tmp_path)
    asked = [line["predicates"] for line in recorded_lines(tmp_path) if "partitions" in line]

    assert heard
    assert {"timeout": 1_000_000, "overtaking": False} == asked[0]
    assert heard == callbacks_in(replayed(tmp_path, other))


def deferred(folder: Path, *, anonymize: bool = False) -> DeferringHearing:
    """Record asks that overtake others: those that are answered first are placed first."""
    rm = DeferringHearing()
    rm.refused |= {(key, "node"): "secret reason" for key in keys(20)[::3]}
    with Scheduler(
        record=Recording(folder, anonymize=anonymize), predicate_timeout_seconds=WAIT_SECONDS
    ) as scheduler:
        scheduler.register("rm", rm, configuration=ONE)
        scheduler.update_node(node_request("node", "other"))
        scheduler.update_application(application_request("app"))
        rm.wait_for("accepted app")
        scheduler.update_allocation(ask_request(*keys(20)))
        rm.wait_for_questions(20)
        for number, key in enumerate(reversed(keys(20)), start=1):
            rm.answer(key)
            rm.wait_for_count("placed ", number)
    return rm


def test_the_answers_of_a_running_scheduler_are_in_the_lines_of_the_cycles_that_took_them(
    tmp_path: Path,
) -> None:
    """The replay has the asks overtake each other in the same order."""
    rm = deferred(tmp_path)
    lines = recorded_lines(tmp_path)
    taken = [answer for line in lines for answer in line.get("taken", ())]

    assert [*reversed(keys(20))] == rm.all("placed ")
    assert {"timeout": WAIT_SECONDS * 10**9, "overtaking": True} == lines[1]["predicates"]
    assert list(range(20, 0, -1)) == [answer["question"] for answer in taken]
    assert 7 == sum(answer["refused"] == {"node": "secret reason"} for answer in taken)
    assert rm.callbacks == callbacks_in(replayed(tmp_path))


def test_a_question_without_an_answer_has_none_in_the_replay(tmp_path: Path) -> None:
    """The ask counts as refused, and is placed when the RM was asked again and answered in time."""
    rm = DeferringHearing()
    with Scheduler(record=tmp_path, predicate_timeout_seconds=0.01) as scheduler:
        scheduler.register("rm", rm, configuration=ONE)
        scheduler.update_node(node_request("node"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("ask"))
        rm.wait_for_questions(1)
        wait_until(lambda: "no answer" in json.dumps(scheduler.snapshot()))
        rm._open.clear()  # No answer ever comes to the first question.
        numbers = count()

        def is_placed() -> bool:
            scheduler.update_node(node_request(f"more-{next(numbers)}"))  # The ask is tried again.
            rm.answer()
            return bool(rm.all("placed "))

        wait_until(is_placed)

    assert ["ask"] == rm.all("placed ")
    assert rm.callbacks == callbacks_in(replayed(tmp_path))


def test_the_nodes_and_reasons_of_answers_have_pseudonyms(tmp_path: Path) -> None:
    """The nodes those of their own, and asks are placed on the same ones."""
    rm = deferred(tmp_path, anonymize=True)
    lines = recorded_lines(tmp_path)
    names = [node["nodeID"] for node in lines[2]["node"]["nodes"]]
    refused = [answer["refused"] for line in lines for answer in line.get("taken", ())]
    placed = [
        names.index(new["nodeID"])
        for row in replayed(tmp_path)
        for new in row.get("allocationResponse", {}).get("new", [])
    ]

    assert "secret" not in json.dumps(lines)
    assert [{}, {names[0]: "refused"}] == [refused[0], refused[1]]
    assert placed == [
        ["node", "other"].index(new["nodeID"])
        for row in map(json.loads, rm.callbacks)
        for new in row.get("allocationResponse", {}).get("new", [])
    ]


def test_an_answer_that_no_cycle_takes_ends_the_replay(tmp_path: Path) -> None:
    """It belongs to a cycle that the recorded scheduler ran, and this one does not."""
    deferred(tmp_path)
    (file,) = tmp_path.glob("*/*.jsonl")
    file.write_text(file.read_text().replace('"taken":[{"question"', '"taken":[{"cycle":99,"question"', 1))

    with pytest.raises(ReplayDifferenceError, match="not taken: the next one is for cycle 99 of the turn"):
        replayed(tmp_path)


@pytest.mark.parametrize(
    ("cycle", "answer"),
    [
        (0, NodesAnswer(1, {})),
        (3, NodesAnswer(2, {"b": "x", "a": "\ud800"})),
        (0, VictimsAnswer(3, None)),
        (1, VictimsAnswer(4, 0)),
        (0, NoAnswer(5)),
    ],
)
def test_an_answer_is_read_as_it_was_written(cycle: int, answer: PredicateAnswer) -> None:
    """All kinds, the refused nodes in order."""
    read = read_taken(json.loads(json.dumps(written_taken(cycle, answer))))

    assert TakenAnswer(cycle, answer) == read
    if isinstance(answer, NodesAnswer) and isinstance(read.answer, NodesAnswer):
        assert [*answer.refused] == [*read.answer.refused]


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, 1, "x", [], {}, {"question": True}, {"question": -1}, {"question": 1, "cycle": "0"}),
        *({"question": 1, "refused": {"n": 1}}, {"question": 1, "refused": []}, {"question": 1, "more": 1}),
        *({"question": 1, "victims": -1}, {"question": 1, "victims": 1, "refused": {}}),
    ],
)
def test_what_is_no_answer_is_not_read(wrong: Any) -> None:
    """The message quotes it."""
    with pytest.raises(ValueError, match="no answer that a cycle took"):
        read_taken(wrong)


@pytest.mark.parametrize(
    "asked", [False, True, AskedLater(5, may_overtake=True), AskedLater(0, may_overtake=False)]
)
def test_how_predicates_are_asked_is_read_as_it_was_written(asked: AskedLater | bool) -> None:  # noqa: FBT001 - one of its values
    """At once, later, or not at all."""
    assert asked == read_how_asked(json.loads(json.dumps(written_how_asked(asked))))


@pytest.mark.parametrize("wrong", [None, 1, {}, {"timeout": 1}, {"timeout": "1", "overtaking": True}])
def test_predicates_are_asked_in_no_other_way(wrong: Any) -> None:
    """The message names the key and the value."""
    with pytest.raises(ValueError, match="neither true nor false"):
        read_how_asked(wrong)
    text = json.dumps({"at": 1, "register": {"rmID": "rm"}, "predicates": wrong})
    with pytest.raises(LicorneError, match="predicates: neither true nor false"):
        read_transcript(text, "x")
