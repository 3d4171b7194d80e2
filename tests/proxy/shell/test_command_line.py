"""The command `licorne`, run as a user would."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from support.proxy.command_runs import run
from support.proxy.manager_requests import TWO, application_request, ask_request, node_request
from support.waiting import WAIT_SECONDS
from typer.main import get_group

from licorne.proxy.play.transcripts.transcript import PredicateTable
from licorne.proxy.shell.command_line import application, directed
from licorne.proxy.si import si_pb2 as si

CONFORMANCE = Path(__file__).parents[2] / "conformance"
README = Path(__file__).parents[3] / "README.md"
COMMANDS = sorted(get_group(application).commands)
VALID = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n"
INVALID = "partitions:\n  - name: default\n    queue: []\n"


@pytest.fixture
def two_partitions(tmp_path: Path) -> str:
    """Write a transcript in which two asks wait in each of two partitions, and return its path."""
    registration = si.RegisterResourceManagerRequest(rmID="rm", policyGroup="queues", config=TWO)
    said: list[tuple[str, Message]] = [("register", registration)]
    for name in ("default", "second"):
        asks = ask_request(f"{name}-1", f"{name}-2", application=f"app-{name}", partition=name)
        said += [
            ("node", node_request(f"node-{name}", partition=name)),
            ("application", application_request(f"app-{name}", partition=name)),
            ("allocation", asks),
        ]
    path = tmp_path / "two.jsonl"
    lines = [json.dumps({verb: MessageToDict(message)}) for verb, message in said]
    path.write_text("\n".join([*lines, '{"schedule": "all"}']), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "lockcheck"])
def test_every_command_explains_itself(command: str) -> None:
    """`--help` says what a command is for and ends well; that of lockcheck has options of its own."""
    status, output, _ = run(command, "--help")

    assert 0 == status
    assert "Usage" in output


def test_the_help_lists_the_commands_by_groups_in_whole_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipe too; completion can be installed."""
    monkeypatch.setattr(application, "rich_markup_mode", None)
    _, output, _ = run("--help")
    titles = re.findall(r"^(\w.*):$", output, re.MULTILINE)

    assert "Options" == titles[0]
    assert 5 == len(titles)
    assert [] == [name for name in COMMANDS if not re.search(rf"^  {name} +[A-Z]", output, re.MULTILINE)]
    assert "..." not in output.partition(titles[1])[2]
    assert "--install-completion" in output


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "lockcheck"])
def test_the_help_names_no_type_of_python(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is called by what it is, such as FILE."""
    monkeypatch.setattr(application, "rich_markup_mode", None)
    _, output, _ = run(command, "--help")

    assert [] == re.findall(r"<.*?>|\bTEXT\b|\bINTEGER\b", output)


def test_the_readme_lists_every_command() -> None:
    """With the page that has more."""
    listed = re.findall(r"^\| `licorne ([\w-]+)", README.read_text(encoding="utf-8"), re.MULTILINE)

    assert COMMANDS == sorted(listed)


def test_a_replay_writes_one_json_object_a_line() -> None:
    """Each with the line that caused it."""
    status, output, _ = run("replay", str(CONFORMANCE / "app-states" / "life.jsonl"))

    rows = [json.loads(line) for line in output.splitlines()]
    assert 0 == status
    assert {"line": 2, "registered": {}} == rows[0]
    assert all("line" in row for row in rows)


def test_a_replay_reads_standard_input() -> None:
    """With `-` for the file."""
    status, output, _ = run("replay", "-", text='{"schedule": "all"}\n')

    assert 0 == status
    assert {"line": 1, "scheduled": 0} == json.loads(output)


@pytest.mark.parametrize(("word", "reserves"), [("T", False), ("F", True), ("yes", True), ("", True)])
def test_reservations_are_switched_off_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, word: str, *, reserves: bool
) -> None:
    """By a word for true; a node is reserved for the ask otherwise."""
    monkeypatch.setenv("DISABLE_RESERVATION", word)

    status, output, _ = run("replay", str(CONFORMANCE / "reservations" / "after-delay.jsonl"))

    assert (0, reserves) == (status, '"isReserved": true' in output)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense\n", "-:1:1: not JSON: expecting value"),
        ('{"schedule": 1}\n{"nod": {}}\n', "-:2: unknown verb 'nod'"),
        ('{"schedule": -1}\n', "-:1: schedule: neither a number of cycles nor 'all': -1"),
        ('{"advance": "fast"}\n', "-:1: advance: invalid duration"),
        ('{"node": {"nodes": [{"nodeId": 1}]}}\n', "-:1: node: "),
        ('{"snapshot": false}\n', "-:1: snapshot: not true: False"),
        ('{"confirm": "later"}\n', "-:1: confirm: neither 'auto' nor 'manual': 'later'"),
        (
            '{"predicates": {"deny": [1]}}\n',
            "-:1: predicates: expected a pair of allocationKey and nodeID, not 1",
        ),
        ("[]\n", "-:1: a line is an object with one key, its verb: '[]'"),
    ],
)
def test_a_malformed_transcript_is_refused_with_its_line(text: str, complaint: str) -> None:
    """Nothing is replayed then, not even the lines before."""
    status, output, errors = run("replay", "-", text=text)

    assert 2 == status
    assert "" == output
    assert complaint in errors


def test_a_missing_transcript_is_named() -> None:
    """With the status of bad input."""
    status, _, errors = run("replay", "/nowhere/t.jsonl")

    assert 2 == status
    assert "/nowhere/t.jsonl" in errors


def test_an_unknown_engine_is_refused() -> None:
    """And the engines that there are are named."""
    status, _, errors = run("replay", "-", "--engine", "warp", text="")

    assert 2 == status
    assert "engine 'warp' is unknown, there are actors, direct" in errors


@pytest.mark.parametrize("command", [["replay"], ["simulate"], ["explain", "app", "-i"]])
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--engine", "threads", "--threads", "0"], "threads=0: there must be one thread at least"),
        (["--engine", "actors", "--threads", "2"], "threads=2 is for the engine threads, not for actors"),
    ],
)
def test_a_number_of_threads_that_makes_no_sense_is_refused(
    command: list[str], options: list[str], complaint: str
) -> None:
    """By every command that has an engine, with the status of bad input, and before anything is done."""
    status, output, errors = run(*command, str(CONFORMANCE / "app-states" / "life.jsonl"), *options)

    assert (2, "") == (status, output)
    assert complaint in errors


@pytest.mark.parametrize("command", ["replay", "simulate"])
def test_several_partitions_are_worked_for_at_once(
    command: str, two_partitions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager answers only when it is asked by two threads, one for each of its partitions."""
    asked = threading.Barrier(2)

    def denies(*_: object) -> bool:
        asked.wait(WAIT_SECONDS)
        return False

    monkeypatch.setattr(PredicateTable, "denies", denies)
    status, output, _ = run(command, two_partitions, "--engine", "threads", "--threads", "2")

    assert 0 == status
    assert not asked.broken
    assert output


def test_the_number_of_threads_changes_nothing_in_a_replay(two_partitions: str) -> None:
    """The output is that of the engine `direct`, line for line."""
    direct = run("replay", two_partitions)

    for threads in ("1", "2", "5"):
        assert direct == run("replay", two_partitions, "--engine", "threads", "--threads", threads)
    assert 4 == direct[1].count("allocationKey")


def test_a_valid_configuration_is_called_valid(tmp_path: Path) -> None:
    """And the status is 0."""
    file = tmp_path / "queues.yaml"
    file.write_text(VALID, encoding="utf-8")

    assert (0, f"{file}: valid\n", "") == run("validate", str(file))


def test_an_invalid_configuration_is_explained_with_its_place(tmp_path: Path) -> None:
    """And the status is 3, also when another file is valid."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(VALID, encoding="utf-8")
    bad.write_text(INVALID, encoding="utf-8")

    status, output, _ = run("validate", str(bad), str(good))

    assert 3 == status
    assert f"{bad}:3:5: partitions[0].queue: unknown key 'queue'; did you mean 'queues'?" in output
    assert f"{good}: valid" in output


def test_the_findings_are_available_as_one_document(tmp_path: Path) -> None:
    """With `--json`: file by file, errors and warnings with their places."""
    bad = tmp_path / "bad.yaml"
    bad.write_text(INVALID, encoding="utf-8")

    status, output, _ = run("validate", "--json", str(bad))

    (document,) = json.loads(output)
    assert 3 == status
    assert (str(bad), False) == (document["file"], document["valid"])
    assert (3, 5) in [(error["line"], error["column"]) for error in document["errors"]]


def test_the_bound_on_starvation_is_a_note(tmp_path: Path) -> None:
    """As text and in the document: how often, and for how long, later comers may pass a promise."""
    properties = "{backfill.reservations: all, backfill.passes: 1, fair.half-life: 7d}"
    file = tmp_path / "queues.yaml"
    root = f"{{name: root, properties: {properties}, submitacl: '*', queues: [{{name: a}}]}}"
    file.write_text(f"partitions: [{{name: default, queues: [{root}]}}]", encoding="utf-8")

    note = "at most 1 later comer may delay a promised start by their shares, within 7d of the first"
    (document,) = json.loads(run("validate", "--json", str(file))[1])
    assert [note] == [each["text"] for each in document["notes"]]
    assert f"{note} (note)\n{file}: valid\n" in run("validate", str(file))[1]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    """With the status of bad input."""
    status, _, errors = run("validate", str(tmp_path / "none.yaml"))

    assert 2 == status
    assert "none.yaml" in errors


@pytest.mark.parametrize("command", [["replay"], ["simulate"], ["explain", "app", "-i"], ["validate"]])
def test_a_command_that_is_interrupted_ends_with_130(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a traceback, wherever it was."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "open", interrupted)
    status, output, errors = run(*command, "any.jsonl")

    assert (130, "", f"licorne {command[0]}: interrupted\n") == (status, output, errors)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay", "-", "--threads", "x"], "'--threads': expected a whole number, not 'x'"),
        (["simulate", "a", "--threads", "1_0"], "'--threads': expected a whole number, not '1_0'"),
        (["simulate", "a", "--seed", "1.5"], "'--seed': expected a whole number, not '1.5'"),
        (["explain", "a", "-i", "b", "--after", "x"], "'--after': expected a whole number, not 'x'"),
        (["dry-run", "-i", "b", "--priority", "high"], "'--priority': expected a whole number, not 'high'"),
        (["simulate", "a", "--first", "0"], "'--first': expected a whole number from 1 on, not '0'"),
        (["simulate", "a", "--first", "9" * 99], "'--first': expected a whole number from 1 on, not '9"),
    ],
)
def test_an_option_that_cannot_be_read_gives_an_error_of_ours(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name and its value, and not as a library says it."""
    monkeypatch.setattr(application, "rich_markup_mode", None)

    status, output, errors = run(*arguments)

    assert (2, "") == (status, output)
    assert f"Error: Invalid value for {said}" in errors
    assert "nput" not in errors


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("explain pod blue/p --context c", "kubernetes explain blue/p --context c"),
        ("explain pod --input day.jsonl", "explain pod --input day.jsonl"),
        ("explain pods -i day/x.jsonl", "explain pods -i day/x.jsonl"),
        ("explain pod", "explain pod"),
    ],
)
def test_the_explanation_of_a_pod_is_that_of_a_cluster(given: str, meant: str) -> None:
    """An application may be called `pod`."""
    assert meant.split() == directed(given.split())
