"""The examples of pages in `docs/`: read from the page, replayed, and written down as the page does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript

DOCS: Final = Path(__file__).parents[3] / "docs"
_EXAMPLE: Final = re.compile(r"^### (.+?)\n(.*?)(?=^##)", re.DOTALL | re.MULTILINE)
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)

Row = dict[str, object]


class Example(NamedTuple):
    """One example: the configuration, what the RM says, and the blocks with what follows."""

    name: str
    queues: str
    said: str
    follows: tuple[str, ...]

    @property
    def done(self) -> list[str]:
        """What the page says that the scheduler does, line by line."""
        return self.follows[0].splitlines()


def examples_of(page: Path, kinds: list[str]) -> list[Example]:
    """Read the examples of a page, in their order; each has code blocks of these kinds."""
    _, _, text = page.read_text(encoding="utf-8").partition("\n## Examples\n")
    found = []
    for name, body in _EXAMPLE.findall(text):
        blocks = _BLOCK.findall(body)
        assert kinds == [kind for kind, _ in blocks], f"{name}: the blocks are not {kinds}"
        queues, said, *follows = [content for _, content in blocks]
        found.append(Example(name, queues, said, tuple(follows)))
    return found


def placed_in(response: dict[str, list[dict[str, str]]]) -> Row:
    """Return what an answer about allocations says was placed, and where, as pages write it."""
    placed = {entry["allocationKey"]: entry["nodeID"] for entry in response.get("new", ())}
    return {"placed": placed} if placed else {}


def replayed(example: Example, in_short: Callable[[Row], Row], engine: EngineName = "direct") -> list[str]:
    """Replay an example; return what happened, each row with the number of the line that caused it.

    Args:
        example: The example.
        in_short: Writes a row of the output as the page does; what it leaves out is empty.
        engine: The engine to run it on.
    """
    heard: list[str] = []
    replay = Replay(Scheduler(engine=engine, stepped=True), heard.append)
    with replay.scheduler:
        replay.run(read_transcript(_transcript(example), example.name))
    shortened = ((row["line"] - 1, in_short(row)) for row in map(json.loads, heard))
    return [json.dumps({"line": line, **short}) for line, short in shortened if short]


def _transcript(example: Example) -> str:
    """Put the registration before the lines: these count from two then, and from one on the page."""
    partition, _, queues = example.queues.partition("queues:\n")
    head = "partitions:\n- name: default\n" + "".join(f"  {line}\n" for line in partition.splitlines())
    head += "  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n"
    configuration = head + "".join(f"    {line}\n" for line in queues.splitlines())
    registration = {"register": {"rmID": "rm", "policyGroup": "queues", "config": configuration}}
    return "\n".join([json.dumps(registration), *example.said.splitlines()])
