"""`licorne explain` and `licorne dry-run`, as a user would run them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from support.proxy.command_runs import run

CONFIGURATION: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [\n"
    "  {name: a, resources: {max: {memory: 10}}}]}]}]"
)
COLUMN: Final = CONFIGURATION.split("\n")[1].index("10}") + 1
"""Where the maximum begins, in line 2."""
SCENARIO: Final = """\
nodes:
  - {prefix: n, count: 2, resources: {vcore: 2}}
queues:
  - name: root
    submitacl: "*"
    queues:
      - name: a
        resources:
          max: {vcore: 3}
applications:
  - name: app
    queue: root.a
    user: ada
    submit: 1m
    tasks:
      - {count: 2, resources: {vcore: 2}, duration: 10m}
"""

BACKFILLED: Final = """\
nodes:
  - {prefix: n, count: 1, resources: {vcore: 2}}
queues:
  - name: root
    submitacl: "*"
    properties: {backfill.reservations: "1", runtime.default: 10m}
    queues: [{name: a}]
applications:
  - name: app
    queue: root.a
    user: ada
    submit: 1m
    tasks:
      - {count: 2, resources: {vcore: 2}, duration: 10m}
"""


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    """Return a transcript in which the second task lacks room in its queue."""
    node = {"nodeID": "n1", "action": "CREATE", "schedulableResource": size(100)}
    asks = [
        {"allocationKey": key, "applicationID": "app", "resourcePerAlloc": size(8)} for key in ("t1", "t2")
    ]
    new = {"applicationID": "app", "queueName": "root.a", "ugi": {"user": "ada"}}
    lines = [
        {"register": {"rmID": "rm", "config": CONFIGURATION}},
        {"node": {"rmID": "rm", "nodes": [node]}},
        {"application": {"rmID": "rm", "new": [new]}},
        {"allocation": {"rmID": "rm", "allocations": asks}},
        {"schedule": "all"},
        {"advance": "1m"},
        {"advance": "1m"},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """Return a scenario in which the second task lacks room in its queue."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def size(memory: int) -> dict[str, object]:
    return {"resources": {"memory": {"value": memory}}}


# ------------------------------------------------------------------------------------------- explain


def test_the_setting_of_a_transcript_is_named_by_the_line_that_configured(transcript: str) -> None:
    """The file, its line, and the place in the text of the configuration."""
    status, output, _ = run("explain", "app", "-i", transcript)

    assert 0 == status
    assert f"memory: asked 8, left 2 of 10 ({transcript}:1, configuration 2:{COLUMN})" in output


def test_another_configuration_takes_the_place_of_that_of_the_transcript(
    transcript: str, tmp_path: Path
) -> None:
    """Its file is named then."""
    queues = tmp_path / "queues.yaml"
    queues.write_text(CONFIGURATION.replace("10}", "9}"), encoding="utf-8")

    _, output, _ = run("explain", "app", "-i", transcript, "--config", str(queues))

    assert f"memory: asked 8, left 1 of 9 ({queues}:2:{COLUMN})" in output


def test_a_replay_stops_after_a_line(transcript: str) -> None:
    """Nothing has been scheduled then."""
    _, output, _ = run("explain", "app", "-i", transcript, "--after", "4")

    assert "at 0s, after line 4" in output
    assert "t1, t2 wait for 0s" in output


@pytest.mark.parametrize(
    ("at", "moment"), [("90s", "at 1m30s, after line 7"), ("1m", "at 1m, after line 6"), ("1h", "at 2m")]
)
def test_a_replay_stops_at_a_moment(transcript: str, at: str, moment: str) -> None:
    """In the middle of a line, at its end, or at the end of the transcript."""
    _, output, _ = run("explain", "app", "-i", transcript, "--at", at)

    assert output.startswith(moment)


@pytest.mark.parametrize("engine", ["direct", "actors"])
def test_a_simulation_stops_at_a_moment(scenario: str, engine: str) -> None:
    """The setting is named by its place in the scenario."""
    _, output, _ = run("explain", "app-1", "-i", scenario, "--at", "2m", "--engine", engine)

    assert output.startswith("at 2m\n")
    assert f"vcore: asked 2, left 1 of 3 ({scenario}:9:24)" in output


def test_a_simulation_goes_to_its_end_by_itself(scenario: str) -> None:
    """The application has ended then."""
    _, output, _ = run("explain", "app-1", "-i", scenario)

    assert "Complet" in output


def test_an_application_is_not_known_before_it_is_submitted(scenario: str) -> None:
    """The moment has not come."""
    status, _, errors = run("explain", "app-1", "-i", scenario, "--at", "59s")

    assert 2 == status
    assert "application 'app-1' is not known" in errors


def test_an_explanation_is_available_as_a_document(transcript: str) -> None:
    """With raw numbers and the same sentences."""
    status, output, _ = run("explain", "app", "-i", transcript, "--ask", "t2", "--json")

    document = json.loads(output)
    (ask,) = document["asks"]
    (blocker,) = ask["blockers"]
    assert (0, 120 * 10**9, 7) == (status, document["elapsed"], document["line"])
    assert ("QUEUE_QUOTA", "queue", "root.a") == (blocker["reason"], blocker["kind"], blocker["subject"])
    (lack,) = blocker["lacks"]
    assert (8, 2, 10, 6) == (lack["asked"], lack["available"], lack["limit"], lack["missing"])
    assert lack["path"].endswith("resources.max.memory")
    assert ["memory 6 must end in root.a, or max.memory of root.a must rise from 10 to 16"] == (
        blocker["changes"]
    )
    assert ["app", "root.a"] == [place["subject"] for place in document["places"]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--after", "9"], "has no line 9, the last is 7"),
        (["--after", "1", "--at", "1s"], "a moment (--at) and a line (--after) are two ends"),
        (["--at", "soon"], "invalid duration: 'soon'"),
        (["--at", "-1s"], "--at -1s: a time before the start"),
        (["--engine", "warp"], "engine 'warp' is unknown, there are actors, direct, threads"),
        (["--threads", "2"], "threads=2 is for the engine threads, not for direct"),
        (["--ask", "t22"], "application app has no ask or allocation 't22'; did you mean 't2'?"),
        (["--partition", "gpu"], "there is no partition [any]gpu; the partitions are: [rm]default"),
    ],
)
def test_what_cannot_be_answered_ends_with_status_two(
    transcript: str, options: list[str], complaint: str
) -> None:
    """And nothing is printed."""
    status, output, errors = run("explain", "app", "-i", transcript, *options)

    assert (2, "") == (status, output)
    assert complaint in errors


def test_only_a_transcript_has_lines(scenario: str) -> None:
    """A simulation has moments."""
    status, _, errors = run("explain", "app-1", "-i", scenario, "--after", "3")

    assert 2 == status
    assert f"{scenario} has no lines to stop after" in errors


@pytest.mark.parametrize("kind", ["transcript", "scenario"])
def test_a_file_can_give_users_their_groups(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As in a replay or a simulation."""
    users = tmp_path / "users.yaml"
    users.write_text("ada: [dev, admin]", encoding="utf-8")
    options = ["-i", request.getfixturevalue(kind), "--users", str(users)]

    _, output, _ = run("dry-run", *options, "--user", "ada", "--queue", "root.a", "--json")

    assert ["dev", "admin"] == json.loads(output)["groups"]


def test_a_missing_input_is_named() -> None:
    """With the status of bad input."""
    status, _, errors = run("explain", "app", "-i", "/nowhere/t.jsonl")

    assert 2 == status
    assert "/nowhere/t.jsonl" in errors


# ------------------------------------------------------------------------------------------- dry-run


def test_a_dry_run_is_available_as_a_document(transcript: str) -> None:
    """The queue, the rules, and the node."""
    options = ["--user", "eve", "--queue", "root.a", "-r", "memory=2", "--json"]
    status, output, _ = run("dry-run", "-i", transcript, *options)

    document = json.loads(output)
    assert (0, "root.a", "n1", True) == (
        status,
        document["queueName"],
        document["nodeID"],
        document["isNew"],
    )
    assert ["it leads to queue root.a"] == [rule["why"] for rule in document["rules"]]
    assert 2 == document["place"]["number"]


def test_both_say_when_an_ask_is_expected_to_start(tmp_path: Path) -> None:
    """In a queue that backfills, as data; what runs has no such field."""
    path = tmp_path / "b.yaml"
    path.write_text(BACKFILLED, encoding="utf-8")
    _, explained, _ = run("explain", "app-1", "-i", str(path), "--at", "2m", "--json")
    options = ["--of", "app-1", "-r", "vcore=2"]
    _, tried, _ = run("dry-run", "-i", str(path), "--at", "2m", *options, "--json")

    waiting, running = json.loads(explained)["asks"]
    start = waiting["plannedStart"]
    assert ("n-1", True, None) == (start["nodeID"], start["isPromised"], start["whyNot"])
    assert "plannedStart" not in running
    assert start["time"] < json.loads(tried)["ask"]["plannedStart"]["time"]


def test_a_dry_run_without_an_ask_ends_with_the_queue(transcript: str) -> None:
    """Nothing is to be placed."""
    _, output, _ = run("dry-run", "-i", transcript, "--user", "eve", "--queue", "a", "--group", "dev")

    assert output.endswith("  queue: root.a\n")


def test_an_ask_for_one_node_learns_whether_it_has_room(scenario: str) -> None:
    """In a simulation as well."""
    options = ["--of", "app-1", "-r", "vcore=1", "--required-node", "n-2", "--priority", "3"]
    _, output, _ = run("dry-run", "-i", scenario, "--at", "2m", *options)

    assert "  node: n-2\n" in output
    assert "dry-run: place 1 of 2 in app-1" in output


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "name the user of a new application (--user), or an application (--of)"),
        (["--of", "app", "--user", "eve"], "application app has its user, queue and tags"),
        (
            ["--of", "app"],
            "expected the resources of an ask of application app, such as --resource vcore=1, got none",
        ),
        (["--user", "eve", "-r", "vcore"], "--resource vcore: expected NAME=VALUE"),
        (["--user", "eve", "-r", "vcore=much"], "--resource: invalid quantity: 'much'"),
        (["--user", "eve", "--tag", "=x"], "--tag =x: expected NAME=VALUE"),
        (["--of", "nobody", "-r", "vcore=1"], "application 'nobody' is not active in [rm]default"),
    ],
)
def test_a_dry_run_that_makes_no_sense_is_refused(
    transcript: str, options: list[str], complaint: str
) -> None:
    """With status two, and words that say what to do."""
    status, output, errors = run("dry-run", "-i", transcript, *options)

    assert (2, "") == (status, output)
    assert complaint in errors
