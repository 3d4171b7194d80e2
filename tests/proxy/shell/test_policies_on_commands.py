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


def test_two_orders_are_compared(folder: Path) -> None:
    """The first come first, and a policy: who pays is named."""
    (folder / "fifo.yaml").write_text(QUEUES.replace("policy/bens", "fifo"), encoding="utf-8")
    files = ("compare", "fifo.yaml", "queues.yaml", "--input", "day.yaml")
    status, output, errors = run(*files, "--policy", "bens=bens_policy:Bens")

    assert (status, errors) == (0, "")
    assert "4 jobs: 2 later in B, by 2m in all; 1 earlier, by 20m in all" in output
    assert run(*files)[0] == 2
