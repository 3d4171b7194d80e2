"""Recordings of stepped schedulers, which all of time and all timers go through."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.proxy.recorded_traffic import callbacks_in, recorded, recorded_lines, replayed
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne.proxy.core.scheduler.engine_names import EngineName

SEEDS: Final = [*range(6), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(6, 200)]]
SCENARIOS: Final = sorted(
    path
    for path in (Path(__file__).parents[3] / "conformance").glob("*/*.jsonl")
    if not path.name.endswith(".expected.jsonl")
)


@pytest.mark.parametrize("make", [simulated_transcript, preemption_transcript])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("engine", "other"), [("direct", "actors"), ("actors", "direct")])
def test_the_replay_makes_the_decisions_of_any_traffic(
    make: Callable[[int], list[str]], seed: int, engine: EngineName, other: EngineName, tmp_path: Path
) -> None:
    """Gangs, timers, reloads, preemption: every callback comes again, on either engine."""
    heard = recorded("\n".join(make(seed)), engine, tmp_path)

    assert heard
    assert callbacks_in(heard) == callbacks_in(replayed(tmp_path, other))


@pytest.mark.parametrize("scenario", SCENARIOS[::5], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_replay_makes_the_decisions_of_recorded_scenarios(scenario: Path, tmp_path: Path) -> None:
    """What the scheduler said while it was recorded, the replay says too."""
    heard = recorded(scenario.read_text(encoding="utf-8"), "direct", tmp_path)

    assert callbacks_in(heard) == callbacks_in(replayed(tmp_path))


def test_a_replay_shows_the_state_where_a_snapshot_is_asked_for(tmp_path: Path) -> None:
    """Lines without a time may follow a recording: then the ordinary rules apply."""
    text = "\n".join(simulated_transcript(1))
    recorded(text, "direct", tmp_path)
    last = max(tmp_path.glob("*/*.jsonl"))
    last.write_text(last.read_text() + '{"snapshot": true}\n')

    assert "queues" in replayed(tmp_path)[-1]["snapshot"]


def test_a_refused_registration_leaves_no_line(tmp_path: Path) -> None:
    """Nothing has changed, so there is nothing to replay."""
    text = json.dumps({"register": {"rmID": "rm", "config": "partitions: [{name: default}]"}})
    recorded(text, "direct", tmp_path)

    assert [{"recording"}] == [set(line) for line in recorded_lines(tmp_path)]
