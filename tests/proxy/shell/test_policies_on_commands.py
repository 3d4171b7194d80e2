"""`--policy` on commands: the queues name a policy, and a module of the current folder has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.proxy.command_runs import run

MODULE = """
class Bens:
    def application_key(self, application):
        return 0 if application.user == "ben" else 1
"""
QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: q, properties: {application.sort.policy: policy/bens}}]
"""
DAY = """
name: two users
nodes: [{prefix: n, count: 1, resources: {vcore: 1}}]
applications:
  - {name: ada, count: 3, queue: root.q, user: ada, tasks: [{count: 1, resources: {vcore: 1}, duration: 10m}]}
  - name: ben
    count: 1
    queue: root.q
    user: ben
    submit: 1m
    tasks: [{count: 1, resources: {vcore: 1}, duration: 1m}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a policy, queues and a day."""
    for name, text in {"bens_policy.py": MODULE, "queues.yaml": QUEUES, "day.yaml": DAY}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_configuration_is_valid_with_the_policies_that_it_names() -> None:
    """Without them it is not, and the place is named."""
    with_policy = run("validate", "queues.yaml", "--policy", "bens=bens_policy:Bens")
    without = run("validate", "queues.yaml")

    assert with_policy[0] == 0
    assert without[0] == 3
    assert "queues.yaml:7:66: " in without[1]
    assert "no policy 'bens' was given to the scheduler" in without[1]


def test_a_simulation_is_decided_by_a_policy(folder: Path) -> None:
    """The user whom it prefers waits for one task of the other one."""
    options = ("simulate", "day.yaml", "--config", "queues.yaml", "--jobs-jsonl", "jobs.jsonl")
    status, _, errors = run(*options, "--policy", "bens=bens_policy:Bens")

    assert (status, errors) == (0, "")
    jobs = [json.loads(line) for line in (folder / "jobs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [job["wait_ns"] for job in jobs if job["user"] == "ben"] == [540_000_000_000]
    assert run(*options)[0] == 2


@pytest.mark.usefixtures("folder")
def test_an_explanation_names_the_policy_that_decides() -> None:
    """At a moment of a simulation, and without the policy the queues are refused."""
    options = ("--input", "day.yaml", "--config", "queues.yaml", "--at", "2m")
    status, output, errors = run("explain", "ada-3", *options, "--policy", "bens=bens_policy:Bens")

    assert (status, errors) == (0, "")
    assert "the smaller key of policy bens" in output
    status, output, errors = run(
        *("dry-run", *options, "--user", "ben", "--queue", "root.q", "--resource", "vcore=1"),
        *("--policy", "bens=bens_policy:Bens"),
    )
    assert (status, errors) == (0, "")
    assert "root.q" in output
    assert run("explain", "ada-3", *options)[0] == 2


def test_a_transcript_is_replayed_and_recorded_with_a_policy(folder: Path) -> None:
    """The recording then replays without it, and with it; another one of that name answers otherwise."""
    core = {"resources": {"vcore": {"value": "1"}}}
    nodes = [{"nodeID": "n", "action": "CREATE", "schedulableResource": core}]
    asked = {"resourcePerAlloc": core}
    users = {"a": "ada", "b": "ben"}
    lines: list[dict[str, object]] = [{"register": {"rmID": "rm", "config": QUEUES}}]
    for name, user in users.items():
        application = {"applicationID": name, "queueName": "root.q", "ugi": {"user": user}}
        lines.append({"application": {"rmID": "rm", "new": [application]}})
        ask = {"allocationKey": name, "applicationID": name, **asked}
        lines.append({"allocation": {"rmID": "rm", "allocations": [ask]}})
    lines += [{"node": {"rmID": "rm", "nodes": nodes}}, {"schedule": "all"}]
    (folder / "day.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "other_policy.py").write_text(MODULE.replace("ben", "ada"), encoding="utf-8")
    policy = ("--policy", "bens=bens_policy:Bens")
    status, output, errors = run("replay", "day.jsonl", "--record", "kept", *policy)

    assert (status, errors) == (0, "")
    assert '"allocationKey": "b"' in output
    assert run("replay", "kept")[0] == 0
    assert run("replay", "kept", *policy)[0] == 0
    status, _, errors = run("replay", "kept", "--policy", "bens=other_policy:Bens")
    assert status == 2
    assert "policy bens.application_key about 'a': recorded is [1], its code answers [0]" in errors
    assert "transcript-000001.jsonl:" in errors
    assert "no policy 'bens' was given to the scheduler" in run("replay", "day.jsonl")[1]


@pytest.mark.usefixtures("folder")
def test_a_door_refuses_policies() -> None:
    """It says who has them."""
    status, _, errors = run("door", "--policy", "bens=bens_policy:Bens")

    assert status == 2
    assert "--worker-options '--policy NAME=module:Class'" in " ".join(errors.split())


def test_two_orders_are_compared(folder: Path) -> None:
    """The first come first, and a policy: who pays is named."""
    (folder / "fifo.yaml").write_text(QUEUES.replace("policy/bens", "fifo"), encoding="utf-8")
    files = ("compare", "fifo.yaml", "queues.yaml", "--input", "day.yaml")
    status, output, errors = run(*files, "--policy", "bens=bens_policy:Bens")

    assert (status, errors) == (0, "")
    assert "4 jobs: 2 later in B, by 2m in all; 1 earlier, by 20m in all" in output
    assert run(*files)[0] == 2
