"""A stepped scheduler decides by predicates that are answered later as by those that answer at once."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet
from support.proxy.deferring import indexes_for, refusals_of
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcript_lines import (
    RM_ID,
    Json,
    allocations_line,
    line,
    node_line,
    releases_line,
    resource,
)
from support.transcripts.transcript_witness import output_of

from licorne.model.values.messages import PredicateQuestion, PreemptionQuestion
from licorne.proxy.play.transcripts.player import PlayedManager

_STEPS: Final = 25
_GANGS_MAX: Final = 30
_MEMBERS_MAX: Final = 6
_NODES_MAX: Final = 12
_REFUSED: Final = 0.3
"""How many pairs of an ask and a node the RM refuses."""
_WALLTIMES: Final = ("1s", "10s", "1m")


def gang_transcript(seed: int) -> list[str]:
    """Make the lines of a transcript; every third seed promises starts to one job, three or all."""
    promises = ("all", "3", "1")[seed // 3 % 3] if seed % 3 == 0 else "0"
    return _GangTranscript(random.Random(f"gangs {seed}"), promises).lines  # noqa: S311 - no secret


class _GangTranscript:
    """The lines that were said so far, and dice."""

    def __init__(self, dice: random.Random, promises: str) -> None:
        self._dice = dice
        self._gangs: dict[str, list[str]] = {}
        """The keys of each application that may run."""
        self._nodes = 0
        queues: list[Json] = [
            {"name": "a", "resources": {"max": {"memory": "25"}}},
            {"name": "b", "properties": {"gang.placing": "whole"}},
        ]
        root: dict[str, Json] = {"name": "root", "submitacl": "*", "queues": queues}
        root["properties"] = {"backfill.reservations": promises}
        text = json.dumps({"partitions": [{"name": "default", "queues": [root]}]})
        self.lines = [line("register", {"rmID": RM_ID, "policyGroup": "queues", "config": text})]
        for _ in range(3):
            self._add_node()
        self._refuse()
        steps = [self._begin, self._begin, self._begin, self._end, self._end, self._wait, self._change]
        for _ in range(_STEPS):
            dice.choice(steps)()
            self.lines.append(line("schedule", dice.choice((1, 2, "all", "all"))))
        self.lines += [line("schedule", "all"), line("snapshot", True)]

    def _add_node(self) -> None:
        if self._nodes < _NODES_MAX:
            self._nodes += 1
            size = {"memory": self._dice.randint(4, 12)}
            self.lines.append(node_line(f"n{self._nodes}", "default", "CREATE", size))

    def _begin(self) -> None:
        """Submit a gang, or an application that is none, with its asks."""
        if len(self._gangs) < _GANGS_MAX:
            dice = self._dice
            name = f"g{len(self._gangs)}"
            sizes = dice.sample((1, 2, 2, 3, 4, 5), dice.randint(1, 3))
            members = [dice.choice(sizes) for _ in range(dice.randint(1, _MEMBERS_MAX))]
            tags: dict[str, Json] = {"walltime": dice.choice(_WALLTIMES)} if dice.random() < 0.7 else {}
            has_placeholders = dice.random() < 0.4
            body: dict[str, Json] = {
                "applicationID": name,
                "queueName": dice.choice(("root.a", "root.b")),
                "ugi": {"user": "ada"},
                "tags": tags,
            }
            if has_placeholders:
                tags["gangPlacing"] = "whole"
                body["placeholderAsk"] = resource({"memory": sum(members)})
            elif dice.random() < 0.8:
                tags["gangSize"] = str(max(1, len(members) - dice.randint(0, 1)))
            self.lines.append(line("application", {"rmID": RM_ID, "new": [body]}))
            self._ask(name, members, placeholders=has_placeholders)

    def _ask(self, name: str, members: Sequence[int], *, placeholders: bool) -> None:
        keys = [f"{name}-{number}" for number in range(len(members))]
        self._gangs[name] = keys
        bodies: list[dict[str, Json]] = [
            {"allocationKey": key, "applicationID": name, "resourcePerAlloc": resource({"memory": size})}
            for key, size in zip(keys, members, strict=True)
        ]
        for body in bodies if placeholders else ():
            body |= {"placeholder": True, "taskGroupName": "members"}
        self.lines.append(allocations_line(bodies))

    def _end(self) -> None:
        """End some of what an application has, or may have."""
        names = [name for name, keys in self._gangs.items() if keys]
        if names:
            name = self._dice.choice(names)
            keys = self._gangs[name]
            ended = self._dice.sample(keys, self._dice.randint(1, len(keys)))
            self._gangs[name] = [key for key in keys if key not in ended]
            ends = [(key, "STOPPED_BY_RM") for key in ended]
            self.lines.append(releases_line(name, "default", ends))

    def _wait(self) -> None:
        self.lines.append(line("advance", self._dice.choice(("10ms", "1s", "11s"))))

    def _change(self) -> None:
        """Add, remove or drain a node, or let the RM refuse other pairs."""
        node_id = f"n{self._dice.randint(1, self._nodes)}"
        match self._dice.randrange(5):
            case 0:
                self.lines.append(node_line(node_id, "default", "DRAIN_NODE"))
            case 1:
                self.lines.append(node_line(node_id, "default", "DECOMISSION"))
            case 2:
                self._refuse()
            case _:
                self._add_node()

    def _refuse(self) -> None:
        """Let the RM refuse some pairs, and say that its answers have changed."""
        pairs: list[Json] = [
            {"allocationKey": f"g{gang}-{member}", "nodeID": f"n{node}"}
            for gang in range(_GANGS_MAX)
            for member in range(_MEMBERS_MAX)
            for node in range(1, _NODES_MAX + 1)
            if self._dice.random() < _REFUSED
        ]
        self.lines += [line("predicates", {"deny": pairs}), line("reconsider", {"rmId": RM_ID})]


RECORDED: Final = Path(__file__).parents[3] / "conformance"
AREAS: Final = ("gang", "limits", "predicates", "preemption", "required-node", "reservations")
SEEDS: Final = range(24)
GANG_SEEDS: Final = (*range(12, 24), 27)


def _scenarios() -> list[ParameterSet]:
    """Return the recorded transcripts; those of areas where predicates matter less are for the soak."""
    paths = sorted(path for path in RECORDED.glob("*/*.jsonl") if not path.name.endswith(".expected.jsonl"))
    return [
        pytest.param(
            path,
            id=f"{path.parent.name}/{path.stem}",
            marks=[] if path.parent.name in AREAS else [pytest.mark.soak],
        )
        for path in paths
    ]


@pytest.fixture
def defer(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Give a function that has the RMs of transcripts answer their predicates inside the call that asks."""

    def ask_predicates(
        manager: PlayedManager, questions: Sequence[PredicateQuestion], answer: Callable[[Any], None]
    ) -> None:
        answer(refusals_of(manager, questions))

    def ask_preemption_predicates(
        manager: PlayedManager, questions: Sequence[PreemptionQuestion], answer: Callable[[Any], None]
    ) -> None:
        answer(indexes_for(manager, questions))

    def apply() -> None:
        for function in (ask_predicates, ask_preemption_predicates):
            monkeypatch.setattr(PlayedManager, function.__name__, function, raising=False)

    return apply


@pytest.fixture
def defer_to_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Give a function that has them answer on other threads, each question by itself, in random order."""
    with ThreadPoolExecutor(3) as pool:

        def ask(manager: PlayedManager, questions: Sequence[Any], answer: Callable[[Any], None]) -> None:
            refuse: Any = refusals_of if hasattr(questions[0], "node_ids") else indexes_for
            positions = list(range(len(questions)))
            random.Random(len(questions)).shuffle(positions)  # noqa: S311 - dice, no secret
            answers = refuse(manager, questions)
            for position in positions:
                pool.submit(answer, {position: answers[position]})

        def apply() -> None:
            for name in ("ask_predicates", "ask_preemption_predicates"):
                monkeypatch.setattr(PlayedManager, name, ask, raising=False)

        yield apply


@pytest.mark.parametrize("path", _scenarios())
def test_a_recorded_transcript_is_decided_as_with_answers_at_once(
    path: Path, defer: Callable[[], None]
) -> None:
    """Reservations, swaps, preemption and required nodes included."""
    text = path.read_text(encoding="utf-8")
    at_once = output_of(text, "direct")
    defer()

    assert at_once == output_of(text, "direct")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_transcript_is_decided_as_with_answers_at_once(seed: int, defer: Callable[[], None]) -> None:
    """And each engine writes the same, byte for byte."""
    text = "\n".join(simulated_transcript(seed))
    at_once = output_of(text, "direct")
    defer()
    direct = output_of(text, "direct")

    assert at_once == direct
    assert direct == output_of(text, "actors", check_direction=True)
    assert direct == output_of(text, "threads")
    assert direct == output_of(text, "threads", threads=2)


@pytest.mark.parametrize("seed", GANG_SEEDS)
def test_whole_gangs_are_decided_as_with_answers_at_once(seed: int, defer: Callable[[], None]) -> None:
    """Of one size and of several, beside promises too; and each engine writes the same."""
    text = "\n".join(gang_transcript(seed))
    at_once = output_of(text, "direct")
    defer()
    direct = output_of(text, "direct")

    assert at_once == direct
    assert direct == output_of(text, "actors", check_direction=True)
    assert direct == output_of(text, "threads", threads=2)


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_answers_on_other_threads_in_any_order_change_nothing(
    engine: Any, defer_to_threads: Callable[[], None]
) -> None:
    """They are kept back until all are there."""
    text = (RECORDED / "fuzz" / "seed-060.jsonl").read_text(encoding="utf-8")
    at_once = output_of(text, "direct")
    defer_to_threads()

    assert at_once == output_of(text, engine)
