"""Recordings with policies: they replay without the code, and the code can be asked whether it agrees."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.manager_requests import ONE, configuration_request, node_request
from support.proxy.recorded_traffic import Hearing, callbacks_in, recorded_lines, replayed
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcripts_with_policies import policy_options, with_policies

from licorne import LicorneError, Recording, Scheduler, policies
from licorne.model.policies.answers import PolicyAnswerError
from licorne.model.policies.interface import Wait
from licorne.model.policies.policies import GivenPolicies
from licorne.model.resources.resource import EMPTY
from licorne.proxy.base.files.plugins import given_policies
from licorne.proxy.core.recording.observer import ReplayDifferenceError
from licorne.proxy.core.recording.policy_answers import (
    PlayedAnswers,
    read_answer,
    read_policies,
    written_answer,
    written_policies,
)
from licorne.proxy.core.recording.recorder import AnonymousLines
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.transcripts.replay import Replay, replay_recording
from licorne.proxy.play.transcripts.transcript import (
    read_recording,
    read_transcript,
    recording_files,
    rows_of_files,
)

TRIED: Final = ("Broken", "Impure", "Later", "Apart", "Oldest", "Fewest", "Guess", "Widest", "Sized")
"""Policies of all points: one fails at times, one counts its questions, one holds starts until a time."""
DECIDING: Final = {"impure.node_key", "broken.application_key", "later.may_start", "apart.refuses"} | {
    "fewest.queue_key"
}
ENDING: Final = {"oldest.victim_cost", "oldest.spares"}


def record(
    folder: Path,
    lines: Iterable[str],
    *names: str,
    engine: EngineName = "direct",
    anonymize: bool = False,
) -> list[dict[str, Any]]:
    """Record a transcript whose configurations name policies; return the callbacks."""
    options = policy_options(*names)
    text = "\n".join(with_policies(lines, options))
    output: list[str] = []
    recording = Recording(folder, anonymize=anonymize)
    with Scheduler(
        engine=engine, stepped=True, record=recording, policies=given_policies(options)
    ) as scheduler:
        Replay(scheduler, output.append).run(read_transcript(text, "transcript"))
    documents = [json.loads(row) for row in output]
    others = {"registered", "scheduled", "error", "snapshot"}
    return [document for document in documents if not others & document.keys()]


def replay_with(folder: Path, *names: str) -> None:
    """Replay a recording, and ask the code of its policies as well."""
    lines = read_recording(rows_of_files(recording_files(folder)), lambda _: None)
    replay_recording(lines, "direct", lambda _: None, policies=given_policies(policy_options(*names)))


def answers_in(folder: Path) -> dict[str, list[Any]]:
    """Return all answers of a recording, by policy and method."""
    found: dict[str, list[Any]] = {}
    for line in recorded_lines(folder):
        for question, answers in line.get("policies", {}).items():
            found.setdefault(question, []).extend(answers)
    return found


@pytest.mark.parametrize("engine", ["direct", "actors"])
@pytest.mark.parametrize(
    ("lines", "asked"),
    [(simulated_transcript(0, 80), DECIDING), (preemption_transcript(10), DECIDING | ENDING)],
    ids=["simulated", "preempting"],
)
def test_the_replay_says_the_same_without_the_code(
    lines: list[str], asked: set[str], engine: EngineName, tmp_path: Path
) -> None:
    """Byte for byte: also where a policy has failed, and where asking it again would give another answer."""
    heard = record(tmp_path, lines, *TRIED, engine=engine)

    assert callbacks_in(heard) == callbacks_in(replayed(tmp_path))
    answers = answers_in(tmp_path)
    assert asked <= answers.keys()
    assert any("failed" in each for each in answers["broken.application_key"])
    assert any(each is not None and each["until"] > 0 for each in answers["later.may_start"])


def test_readers_between_turns_change_nothing(tmp_path: Path) -> None:
    """What they ask policies is not recorded, and the next turn asks as if they had not."""
    text = "\n".join(with_policies(simulated_transcript(1, 60), policy_options(*TRIED)))
    output: list[str] = []
    given = given_policies(policy_options(*TRIED))
    with Scheduler(engine="direct", record=tmp_path, policies=given) as scheduler:
        replay = Replay(scheduler, output.append)
        for line in read_transcript(text, "transcript"):
            replay.run([line])
            snapshot: Any = scheduler.snapshot()
            for applications in snapshot["applications"].values():
                for each in applications:
                    scheduler.explain(each["applicationID"])
            scheduler.next_asks()
    documents = [json.loads(row) for row in output]

    heard = [each for each in documents if not {"registered", "scheduled", "error", "snapshot"} & each.keys()]
    assert callbacks_in(heard) == callbacks_in(replayed(tmp_path))


def test_an_explanation_after_a_replay_has_the_last_answer(tmp_path: Path) -> None:
    """Without the code, a policy that held an application holds it still."""
    record(tmp_path, simulated_transcript(0, 80), "Later")
    rows = read_recording(rows_of_files(recording_files(tmp_path)), lambda _: None)
    with Scheduler(engine="direct") as scheduler:
        replay = Replay(scheduler, lambda _: None)
        for line in rows:
            replay.run([line])
            if line.recorded is not None and any(line.recorded.policies.get("later.may_start", ())):
                break
        snapshot: Any = scheduler.snapshot()
        names = [each["applicationID"] for each in snapshot["applications"]["default"]]
        held = [blocker.detail for name in names for blocker in scheduler.explain(name).blockers]

    assert "later: not yet" in held


class Numbered:
    """Counts its questions."""

    def __init__(self) -> None:
        self.number = 0

    def node_key(self, _: policies.NodeView) -> float:
        self.number += 1
        return self.number


ORDERED: Final = ONE.replace("default\n", "default\n    nodesortpolicy: {type: policy/numbered}\n")


def test_a_reload_keeps_what_it_asked(tmp_path: Path) -> None:
    """Another order of nodes asks about all of them, in the line of the reload."""
    with Scheduler(engine="direct", record=tmp_path, policies={"numbered": Numbered}) as scheduler:
        scheduler.register("rm", Hearing(), configuration=ONE)
        scheduler.update_node(node_request("n1", "n2"))
        scheduler.update_configuration(configuration_request(ORDERED))
    (change,) = [line for line in recorded_lines(tmp_path) if "configuration" in line]

    assert change["policies"] == {"numbered.node_key": [1.0, 2.0]}
    replayed(tmp_path)


def test_a_reload_that_is_undone_after_it_has_asked_ends_the_recording(
    tmp_path: Path, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy may answer otherwise the next time; what was recorded before can be replayed."""
    with Scheduler(engine="direct", record=tmp_path, policies={"numbered": Numbered}) as scheduler:
        scheduler.register("rm", Hearing(), configuration=ONE)
        scheduler.update_node(node_request("n1", "n2"))
        with monkeypatch.context() as broken:
            broken.setattr(scheduler._managers, "enter", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                scheduler.update_configuration(configuration_request(ORDERED))
        scheduler.update_node(node_request("n3"))

    assert "n3" not in str(recorded_lines(tmp_path))
    assert any("a reload was undone after policies had been asked" in line for line in logged)
    replayed(tmp_path)


def test_code_that_answers_the_same_is_accepted(tmp_path: Path) -> None:
    record(tmp_path, simulated_transcript(0, 80), "Packing", "Broken", "Later")

    replay_with(tmp_path, "Packing", "Broken")


def test_an_impure_policy_is_named_with_its_line(tmp_path: Path) -> None:
    """The first answer that differs ends the replay, with both answers."""

    class Counting:
        number = 0

        def node_key(self, _: policies.NodeView) -> float:
            Counting.number += 1
            return Counting.number

    options = policy_options("Packing")
    text = "\n".join(with_policies(simulated_transcript(0, 60), options))
    with Scheduler(engine="direct", record=tmp_path, policies={"packing": Counting}) as scheduler:
        Replay(scheduler, lambda _: None).run(read_transcript(text, "transcript"))
    places = [
        f"transcript-000001.jsonl:{number}: "
        for number, line in enumerate(recorded_lines(tmp_path), start=1)
        if "policies" in line
    ]
    lines = read_recording(rows_of_files(recording_files(tmp_path)), lambda _: None)
    with pytest.raises(ReplayDifferenceError) as differs:
        replay_recording(lines, "direct", lambda _: None, policies={"packing": Counting})

    assert places[0] in str(differs.value)
    assert "policy packing.node_key about " in str(differs.value)
    assert "recorded is 1.0, its code answers " in str(differs.value)


def test_a_recording_with_pseudonyms_replays(tmp_path: Path) -> None:
    """Texts in keys are in their order; reasons are gone. Code would see other names, and is not asked."""
    heard = record(tmp_path, preemption_transcript(10), *TRIED, anonymize=True)

    assert len(heard) == len(replayed(tmp_path))
    assert "a bug" not in json.dumps(recorded_lines(tmp_path))
    assert "not yet" not in json.dumps(recorded_lines(tmp_path))
    with pytest.raises(LicorneError, match="pseudonyms"):
        replay_with(tmp_path, "Later")


def test_pseudonyms_of_keys_are_in_the_order_of_the_keys() -> None:
    """Numbers stay."""
    lines = AnonymousLines()
    names = ["turing", "ada", "hopper", "", "ada"]
    line: Any = lines.hidden({"policies": {"p.application_key": [[name, 0] for name in names]}})
    hidden = [key[0] for key in line["policies"]["p.application_key"]]

    assert not set(names) - {""} & set(hidden)
    assert [*map(names.index, sorted(names))] == [*map(hidden.index, sorted(hidden))]
    assert hidden[1] == hidden[4]
    assert all(key[1] == 0 for key in line["policies"]["p.application_key"])


def test_a_recording_has_the_policies_that_it_was_made_with(tmp_path: Path) -> None:
    """Code of others is refused, and without the recorded answers nothing goes on."""
    record(tmp_path, simulated_transcript(0, 80), "Packing")
    (header, *_) = recorded_lines(tmp_path)

    assert header["recording"]["policies"] == {
        "packing": {
            "class": "support.fuzz.tried_policies:Packing",
            "methods": ["node_key"],
            "dependsOn": ["object"],
        }
    }
    with pytest.raises(LicorneError, match="the recording has no policy 'later'; it has: packing"):
        replay_with(tmp_path, "Later")
    (file,) = recording_files(tmp_path)
    rows = [json.loads(row) for row in file.read_text(encoding="utf-8").splitlines()]
    place = next(number for number, row in enumerate(rows) if "policies" in row)
    del rows[place]["policies"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(ReplayDifferenceError, match=rf":{place + 1}: .* was recorded"):
        replayed(tmp_path)


# --------------------------------------------------------------------------------------------- the format


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        (1.5, 1.5),
        ((1, "a", 2.5), [1, "a", 2.5]),
        (None, None),
        (True, True),
        ("no licence", "no licence"),
        (Wait("later"), {"wait": "later"}),
        (Wait("later", 5), {"wait": "later", "until": 5}),
    ],
)
def test_an_answer_is_read_as_it_was_given(answer: object, written: object) -> None:
    assert written_answer(answer) == written
    assert read_answer(json.loads(json.dumps(written))) == answer


def test_a_failure_fails_again() -> None:
    with pytest.raises(PolicyAnswerError, match=r"^RuntimeError: a bug$"):
        read_answer(written_answer(RuntimeError("a bug")))


@pytest.mark.parametrize(
    "row", [1, {}, {"class": "m:C", "methods": ["unknown"], "dependsOn": []}, {"methods": []}]
)
def test_what_a_newer_program_has_written_is_refused(row: Any) -> None:
    with pytest.raises(LicorneError, match="policies: p: expected class, dependsOn, and methods of node_key"):
        read_policies({"policies": {"p": row}})


def test_what_a_policy_depends_on_is_read_again() -> None:
    """The replay asks as often as the recorded scheduler did."""

    class Hourly:
        depends_on = frozenset({"time", "submission"})
        every_ns = 3_600_000_000_000
        version = "1.2"

        def application_key(self, _: policies.ApplicationView) -> float:
            return 1.0

    given = GivenPolicies({"hourly": Hourly})
    read = read_policies(json.loads(json.dumps(written_policies(given))))

    assert read == given.facts
    assert read["hourly"].version == "1.2"
    assert PlayedAnswers(read, GivenPolicies({})).given.facts["hourly"][:3] == given.facts["hourly"][:3]


def test_the_last_answer_is_kept_for_each_pair_of_an_ask_and_a_node() -> None:
    """A filter answers about both."""

    class Filter:
        def refuses(self, ask: policies.AskView, node: policies.NodeView) -> str | None:
            raise NotImplementedError

    facts = GivenPolicies({"filter": Filter}).facts
    played = PlayedAnswers(facts, GivenPolicies({}))
    asked = played.given.make(lambda *_: None).named("policy/filter")
    ask = policies.AskView("key", "app", EMPTY, 0, 0, {}, False, "", None)
    nodes = [policies.NodeView(name, {}, EMPTY, EMPTY) for name in ("n1", "n2")]
    played.begin({"filter.refuses": ["too old", None]})
    answers = [asked.refuses(ask, node) for node in nodes]

    assert played.end() == ""
    assert answers == [asked.refuses(ask, node) for node in nodes] == ["too old", None]
