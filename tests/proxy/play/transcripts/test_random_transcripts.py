"""Whatever a resource manager says, and in whatever order, the scheduler keeps its books and its word."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from support.programs import run_python
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcript_witness import Witness

SEEDS: Final = range(80)
SOAK_SEEDS: Final = range(1_000, 3_000)
LONG_SEEDS: Final = range(5_000, 5_100)
TESTS: Final = Path(__file__).parents[3]
FOUND: Final = sorted((TESTS / "found").glob("*.jsonl"))


def watch(lines: list[str]) -> list[dict[str, Any]]:
    """Replay with every check, and return the output."""
    with Witness() as witness:
        witness.watch(lines)
        return [json.loads(row) for row in witness.output]


def watch_to_the_end(seed: int, length: int = 30) -> None:
    """Replay what a seed gives; all is released at its end, and nothing may be left."""
    with Witness() as witness:
        witness.watch(simulated_transcript(seed, length))
        witness.check_empty()


@pytest.mark.parametrize("seed", SEEDS)
def test_any_transcript_leaves_a_consistent_state(seed: int) -> None:
    """After every line the invariants hold, nothing outgrows its maximum, and no key is placed twice."""
    watch_to_the_end(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_many_transcripts_leave_a_consistent_state(seed: int) -> None:
    """The same with seeds that the usual run has no time for."""
    watch_to_the_end(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", LONG_SEEDS)
def test_long_transcripts_leave_a_consistent_state(seed: int) -> None:
    """The same with transcripts in which much has happened before."""
    watch_to_the_end(seed, length=200)


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_what_was_found_once_stays_mended(path: Path) -> None:
    """Each transcript broke something once; its first line says what is to happen instead."""
    watch(path.read_text(encoding="utf-8").splitlines())


# ------------------------------------------------------------------------------------ the transcripts


def test_a_seed_gives_the_same_transcript_every_time() -> None:
    """In each process, so a seed in a report is enough to see the same again."""
    program = (
        "import json\n"
        "from support.transcripts.simulated_transcripts import simulated_transcript\n"
        "print(json.dumps([simulated_transcript(seed) for seed in range(8)]))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "42", "LOGURU_LEVEL": "CRITICAL"}
    path = os.pathsep.join(filter(None, (str(TESTS), *sys.path)))
    elsewhere = run_python("-c", program, environment=environment | {"PYTHONPATH": path})

    assert [simulated_transcript(seed) for seed in range(8)] == json.loads(elsewhere.stdout)
    assert simulated_transcript(7) != simulated_transcript(8)


def _outcomes(answer: dict[str, Any]) -> list[str]:
    allocations = answer.get("allocationResponse", {})
    applications = answer.get("applicationResponse", {})
    outcomes = [release.get("terminationType", "") for release in allocations.get("released", [])]
    outcomes += ["placed" for _ in allocations.get("new", [])]
    outcomes += ["allocation rejected" for _ in allocations.get("rejectedAllocations", [])]
    outcomes += ["application rejected" for _ in applications.get("rejected", [])]
    outcomes += [update["state"] for update in applications.get("updated", [])]
    outcomes += ["refused" for _ in [answer] if "error" in answer]
    outcomes += ["waits" for _ in [answer] if "schedulingState" in answer]
    return outcomes


def test_the_transcripts_reach_what_they_are_made_for() -> None:
    """A generator that never gets an application started would pass every check."""
    outcomes: Counter[str] = Counter()
    for seed in range(25):
        with Witness() as witness:
            witness.replay_unwatched(simulated_transcript(seed))
            for row in witness.output:
                outcomes.update(_outcomes(json.loads(row)))

    wanted = {"placed": 200, "STOPPED_BY_RM": 100, "PLACEHOLDER_REPLACED": 10, "TIMEOUT": 5, "waits": 20}
    wanted |= {"Running": 20, "Completing": 20, "Completed": 10, "Failed": 1}
    wanted |= {"allocation rejected": 20, "application rejected": 10, "refused": 3}
    assert {} == {name: count for name, count in wanted.items() if outcomes[name] < count}
