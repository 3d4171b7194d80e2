"""A queue configuration that is given beside the input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.proxy.simulation_builders import written
from typer.testing import CliRunner

from licorne.proxy.shell.command_line import application

_SCENARIO = """\
nodes: [{prefix: n, resources: {vcore: 2}}]
applications: [{name: a, queue: root.q, user: u, tasks: [{resources: {vcore: 1}, duration: 1m}]}]
"""


def _transcript(*partitions: str) -> str:
    """Return a transcript with a node for each of some partitions."""
    nodes = [
        {
            "nodeID": f"n{number}",
            "action": "CREATE",
            "attributes": {"si/node-partition": name} if name else {},
        }
        for number, name in enumerate(partitions)
    ]
    lines = [{"register": {"rmID": "rm"}}, {"node": {"rmID": "rm", "nodes": nodes}}]
    return "\n".join(map(json.dumps, lines))


def _ran(folder: Path, command: list[str], name: str, text: str, partition: str) -> tuple[int, str, str]:
    path = written(folder / name, text)
    root = "{name: root, submitacl: '*', queues: [{name: q}]}"
    queues = f"partitions: [{{name: {partition}, queues: [{root}]}}]"
    config = written(folder / "queues.yaml", queues)
    result = CliRunner().invoke(application, [*command, str(path), "--config", str(config)])
    return result.exit_code, result.stdout, result.stderr.replace(f"{folder}/", "")


@pytest.mark.parametrize("command", [["simulate"], ["explain", "a-1", "--input"]])
def test_a_configuration_without_the_partition_is_refused_before_anything_runs(
    command: list[str], tmp_path: Path
) -> None:
    """The partitions that there are, are named."""
    said = (
        f"licorne {command[0]}: queues.yaml: there is no partition 'default', to which the nodes of the "
        "input come; the partitions are: defaults; did you mean 'defaults'?\n"
    )

    assert (2, "", said) == _ran(tmp_path, command, "s.yaml", _SCENARIO, "defaults")


@pytest.mark.parametrize("command", [["simulate"], ["explain", "a-1", "--input"]])
@pytest.mark.parametrize("partitions", [("",), ("[rm]gpu", "gpu")])
def test_a_transcript_needs_one_of_the_partitions_that_its_nodes_come_to(
    command: list[str], partitions: tuple[str, ...], tmp_path: Path
) -> None:
    """Whatever way it writes them."""
    status, _, errors = _ran(tmp_path, command, "t.jsonl", _transcript(*partitions), "other")

    assert 2 == status
    assert "queues.yaml: there is no partition" in errors


@pytest.mark.parametrize(
    ("name", "text", "partition"),
    [
        ("s.yaml", _SCENARIO, "default"),
        ("t.jsonl", _transcript(""), "default"),
        ("t.jsonl", _transcript("[rm]gpu"), "gpu"),
        ("t.jsonl", _transcript("other", "gpu"), "gpu"),
        ("t.jsonl", _transcript(), "other"),
    ],
)
def test_a_configuration_with_the_partition_is_used(
    name: str, text: str, partition: str, tmp_path: Path
) -> None:
    """One of several is enough: a transcript may say what is refused."""
    assert 0 == _ran(tmp_path, ["simulate"], name, text, partition)[0]


_MISSPELT = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: q, resources: {max: {vcroe: 4, tokens: 4}}}]
"""


@pytest.mark.parametrize(
    ("name", "text"), [("s.yaml", _SCENARIO), ("t.jsonl", '{"register": {"rmID": "rm"}}\n')]
)
def test_probable_mistakes_in_a_configuration_are_reported(name: str, text: str, tmp_path: Path) -> None:
    """Types that no node has among it: a simulation knows the nodes."""
    config = written(tmp_path / "queues.yaml", _MISSPELT)
    arguments = ["simulate", "--json", "--config", str(config), str(written(tmp_path / name, text))]
    notes = json.loads(CliRunner().invoke(application, arguments).stdout)["notes"]

    path = f"{config}:6:{{}}: partitions[0].queues[0].queues[0].resources.max"
    assert [
        f"{path.format(53)}.vcroe: the resource type 'vcroe' is not known; did you mean 'vcore'?",
        f"{path.format(64)}.tokens: the resource type 'tokens' is not known: no node has it",
    ] == [note["text"] for note in notes]


def test_probable_mistakes_in_a_scenario_are_reported_at_their_place(tmp_path: Path) -> None:
    """Unless another configuration takes the place of its own; its nodes say which types there are."""
    queues = (
        "queues: [{name: root, submitacl: '*', queues: [{name: q, resources: {max: {vcroe: 4, tpu: 4}}}]}]\n"
    )
    scenario = written(tmp_path / "s.yaml", queues + _SCENARIO.replace("vcore: 2", "vcore: 2, tpu: 1"))
    config = written(tmp_path / "queues.yaml", _MISSPELT.replace("vcroe: 4, tokens: 4", "vcore: 4"))

    def notes(*arguments: str) -> list[str]:
        ran = CliRunner().invoke(application, ["simulate", "--json", str(scenario), *arguments])
        return [note["text"] for note in json.loads(ran.stdout)["notes"]]

    place = f"{scenario}:1:83: queues[0].queues[0].resources.max.vcroe"
    assert [f"{place}: the resource type 'vcroe' is not known; did you mean 'vcore'?"] == notes()
    assert [] == notes("--config", str(config))
