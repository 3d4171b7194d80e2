"""The same transcript gives the same output, byte for byte, whatever runs it."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark import ParameterSet
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcript_witness import output_of

from licorne.model import partition
from licorne.model.scheduling.cycle import ConcurrentOutcome, CycleOutcome, place_concurrently, run_cycle
from licorne.model.state.partition_state import PartitionState
from licorne.proxy.core.scheduler.managers import managers

RECORDED: Final = Path(__file__).parents[3] / "conformance"
BIG_AREAS: Final = ("mixes",)
SEEDS: Final = range(40)
SOAK_SEEDS: Final = range(1_000, 2_000)


def _scenarios() -> list[ParameterSet]:
    """Return all recorded transcripts; the big ones are for the soak."""
    paths = sorted(path for path in RECORDED.glob("*/*.jsonl") if not path.name.endswith(".expected.jsonl"))
    return [
        pytest.param(
            path,
            id=f"{path.parent.name}/{path.stem}",
            marks=[pytest.mark.soak] if path.parent.name in BIG_AREAS else [],
        )
        for path in paths
    ]


def assert_agreement(text: str) -> None:
    """Replay on all engines; the actors' one checks that every ask goes down."""
    direct = output_of(text, "direct")
    assert direct == output_of(text, "actors", check_direction=True)
    assert direct == output_of(text, "threads")


@pytest.mark.parametrize("path", _scenarios())
def test_engines_agree_on_a_recorded_transcript(path: Path) -> None:
    """Actors decide exactly what plain objects decide, and every ask between them goes down."""
    assert_agreement(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", SEEDS)
def test_engines_agree_on_a_random_transcript(seed: int) -> None:
    """Also where a resource manager talks nonsense."""
    assert_agreement("\n".join(simulated_transcript(seed)))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_engines_agree_on_many_random_transcripts(seed: int) -> None:
    """The same with seeds that the usual run has no time for."""
    assert_agreement("\n".join(simulated_transcript(seed)))


@pytest.mark.parametrize(
    "seed", [*range(6), *[pytest.param(n, marks=pytest.mark.soak) for n in range(6, 200)]]
)
def test_several_threads_decide_what_one_does(seed: int) -> None:
    """Three managers with one partition or more each, worked for at once; their callbacks are in order."""
    text = "\n".join(instrumented([simulated_transcript(3 * seed + number) for number in range(3)]))

    assert output_of(text, "direct") == output_of(text, "threads", threads=3)


def placed_concurrently(text: str) -> int:
    """Replay without predicates: by cycles alone, and with each trying first what it may beside others.

    Returns:
        How often that was enough.
    """
    placed: list[ConcurrentOutcome] = []

    def try_concurrently(state: PartitionState) -> CycleOutcome:
        outcome = place_concurrently(state)
        if outcome is not ConcurrentOutcome.PLACED:
            return run_cycle(state)
        placed.append(outcome)
        return CycleOutcome.RESULT

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(managers, "predicates_of", lambda *_, **__: None)
        alone = output_of(text, "direct")
        patch.setattr(partition, "run_cycle", try_concurrently)
        assert alone == output_of(text, "threads")
    return len(placed)


def test_what_is_placed_beside_others_is_what_a_cycle_places() -> None:
    """Threads that share a partition decide as one that has it alone, if they take turns."""
    assert sum(placed_concurrently("\n".join(simulated_transcript(seed))) for seed in (1, *SEEDS[::2])) > 50


@pytest.mark.parametrize("path", _scenarios())
def test_recorded_transcripts_are_replayed_beside_others(path: Path) -> None:
    """As above."""
    placed_concurrently(path.read_text(encoding="utf-8"))


def instrumented(transcripts: list[list[str]]) -> list[str]:
    """Have as many resource managers speak in turns as there are transcripts."""
    spoken = [
        [line.replace('"rmID": "rm"', f'"rmID": "rm-{number}"') for line in lines]
        for number, lines in enumerate(transcripts)
    ]
    return [line for row in zip_longest(*spoken) for line in row if line is not None]


def test_the_same_transcript_gives_the_same_output_again() -> None:
    """Nothing in the output depends on memory addresses, hashes or the wall clock."""
    text = "\n".join(simulated_transcript(3))

    assert output_of(text, "actors") == output_of(text, "actors")


def test_a_replay_says_something() -> None:
    """Two engines that stay silent would agree as well."""
    assert len(output_of("\n".join(simulated_transcript(3)), "direct")) > 20
