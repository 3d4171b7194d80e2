"""The examples of docs/preemption.md are true: what the page says is what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from licorne.proxy.replay import Replay
from licorne.proxy.transcript import read_transcript

PAGE: Final = Path(__file__).parents[2] / "docs" / "preemption.md"
EXAMPLE: Final = re.compile(r"^### (.+?)\n(.*?)(?=^##)", re.DOTALL | re.MULTILINE)
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
KINDS: Final = ["yaml", "jsonl", "jsonl", "text"]


class Example(NamedTuple):
    """One example: the queues, what the RM says, what follows, and the explanation."""

    name: str
    queues: str
    said: str
    done: str
    explained: str


def examples() -> list[Example]:
    """Read the examples of the page, in their order."""
    _, _, text = PAGE.read_text(encoding="utf-8").partition("\n## Examples\n")
    found = []
    for name, body in EXAMPLE.findall(text):
        blocks = BLOCK.findall(body)
        assert [kind for kind, _ in blocks] == KINDS, f"{name}: the blocks are not {KINDS}"
        found.append(Example(name, *[content for _, content in blocks]))
    return found


def run(example: Example) -> tuple[list[str], list[str]]:
    """Replay an example; return what happened, line by line, and the explanation."""
    head = "partitions:\n- name: default\n  queues:\n  - name: root\n    submitacl: '*'\n"
    configuration = head + "".join(f"    {line}\n" for line in example.queues.splitlines())
    registration = {"register": {"rmID": "rm", "policyGroup": "queues", "config": configuration}}
    # The registration stands before the block: the lines of the block count from two, and from one below.
    text = "\n".join([json.dumps(registration), *example.said.splitlines()])
    heard: list[str] = []
    replay = Replay("direct", heard.append)
    with replay.scheduler:
        replay.run(read_transcript(text, example.name))
        (inner,) = replay.scheduler._cluster.partitions()
        explained = [line for record in inner._state.preemptions for line in record.explain()]
    return [line for line in map(in_short, heard) if line], explained


def in_short(line: str) -> str:
    """Write a line of output as the page does; the empty text for what it leaves out."""
    row = json.loads(line)
    body = row.get("allocationResponse")
    if body is None:
        return ""
    short: dict[str, object] = {"line": row["line"] - 1}
    if "new" in body:
        short["placed"] = {entry["allocationKey"]: entry["nodeID"] for entry in body["new"]}
    if "released" in body:
        short["preempted"] = [entry["allocationKey"] for entry in body["released"]]
    return json.dumps(short)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_does_what_the_page_says(example: Example) -> None:
    """Every placement and every preemption, at the line that causes it, and no others."""
    done, _ = run(example)

    assert example.done.splitlines() == done


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_is_explained_as_the_page_says(example: Example) -> None:
    """The log of the partition in sentences."""
    _, explained = run(example)

    assert example.explained.splitlines() == explained


def test_the_page_has_three_examples() -> None:
    """An example that is not found would not be tested."""
    assert len(examples()) == 3
