"""A stepped scheduler decides by predicates that are answered later as by those that answer at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet
from support.proxy.deferring import indexes_for, refusals_of
from support.transcripts.gang_transcripts import gang_transcript
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcript_witness import output_of

from licorne.model.values.predicate_questions import PredicateQuestion, PreemptionQuestion
from licorne.proxy.transcripts.player import PlayedManager

RECORDED: Final = Path(__file__).parents[2] / "conformance"
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
