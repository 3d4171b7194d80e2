"""Two schedulers with a half of the partitions each decide what one scheduler with all of them decides."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne import Scheduler
from licorne.model.values.messages import full_partition_name, short_partition_name
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript

TESTS: Final = Path(__file__).parents[3]
PARTITIONS: Final = ("default", "gpu", "large", "spot")
HALVES: Final = (frozenset({"default", "large"}), frozenset({"gpu", "spot"}))
SEEDS: Final = range(16)
SOAK_SEEDS: Final = range(1_000, 1_500)
KEPT: Final = {
    "found/refused-reload-half-applied.jsonl": (frozenset({"default"}), frozenset({"gpu"})),
    "conformance/registration/partition-removed.jsonl": (frozenset({"default"}), frozenset({"gone"})),
}
SNAPSHOT: Final = '{"snapshot": true}'

Row = dict[str, Any]


def replayed(lines: Sequence[str]) -> dict[int, list[Row]]:
    """Return what a scheduler answers to the lines of a transcript, by their numbers."""
    rows: dict[int, list[Row]] = defaultdict(list)

    def note(text: str) -> None:
        row = json.loads(text)
        rows[row.pop("line")].append(row)

    with Scheduler(engine="direct") as scheduler:
        Replay(scheduler, note).run(read_transcript("\n".join(lines), "test"))
        scheduler.validate()
    return rows


# ----------------------------------------------------------------------------- a half of a transcript


def half_of(
    lines: Sequence[str], scheduled: Mapping[int, int], half: frozenset[str], owns: Callable[[str], bool]
) -> list[str]:
    """Return the lines of a transcript for a scheduler with a half of the partitions, with the same numbers.

    Args:
        lines: The whole transcript.
        scheduled: By the number of each line `schedule`, how many cycles of the whole gave a result.
        half: The names of the partitions.
        owns: Says whether what names a partition is for this scheduler.
    """
    found = []
    for number, text in enumerate(lines, start=1):
        row: Row | None = json.loads(text) if text.strip() and not text.startswith("#") else None
        if row is not None:
            (verb,) = row
            if verb == "register":
                row["only"] = sorted(half)
            elif verb == "schedule" and row[verb] == "all":
                row[verb] = scheduled[number] + 1  # As many cycles as the partitions had together.
            elif verb in ("node", "application", "allocation"):
                row = _entries_of(row[verb], verb, owns)
        found.append("#" if row is None else json.dumps(row))
    return found


def _entries_of(body: Row, verb: str, owns: Callable[[str], bool]) -> Row | None:
    """Return a request with the entries of one scheduler, `None` if it has none."""

    def kept(value: Any) -> Any:
        if isinstance(value, list):
            return [each for each in value if owns(_partition_of(each))]
        return {name: kept(each) for name, each in value.items()} if isinstance(value, dict) else value

    lists = {name: kept(value) for name, value in body.items()}
    entries = [each for name, each in lists.items() if name != "rmID"]
    is_empty = not any(any(each.values()) if isinstance(each, dict) else each for each in entries)
    return None if is_empty else {verb: lists}


def _partition_of(entry: Row) -> str:
    name = entry.get("partitionName") or entry.get("attributes", {}).get("si/node-partition") or ""
    return short_partition_name(full_partition_name(name, "rm"))


# ------------------------------------------------------------------------------------- the comparison


def merged(one: Row, other: Row) -> Row:
    """Return the snapshot of all partitions of two schedulers."""
    snapshot = {key: {**one[key], **other[key]} for key in one.keys() - {"partitions"}}
    partitions = [*(one["partitions"] or []), *(other["partitions"] or [])]
    return snapshot | {"partitions": sorted(partitions, key=lambda each: each["name"])}


def decided(rows: Sequence[Row]) -> list[str]:
    """Return what partitions have said, as text."""
    return [json.dumps(row) for row in rows if not row.keys() & {"scheduled", "registered", "snapshot"}]


def is_in_order(some: Sequence[str], among: Sequence[str]) -> bool:
    """Return whether some texts are among others, in the same order."""
    rest = iter(among)
    return all(text in rest for text in some)


def compare(lines: Sequence[str], halves: tuple[frozenset[str], frozenset[str]]) -> tuple[int, int]:
    """Compare what one scheduler decides, line by line, with two; return how many placements each had."""
    whole = replayed(lines)
    scheduled = {
        number: row["scheduled"] for number, rows in whole.items() for row in rows if "scheduled" in row
    }
    first = replayed(half_of(lines, scheduled, halves[0], lambda name: name not in halves[1]))
    second = replayed(half_of(lines, scheduled, halves[1], lambda name: name in halves[1]))
    for number, text in enumerate(lines, start=1):
        rows = whole[number]
        said, of_first, of_second = map(decided, (rows, first[number], second[number]))
        of_both = sorted(of_first + of_second)
        where = f"line {number}: {text}"
        if any("error" in row for row in rows):  # What both are sent, both refuse.
            assert set(said) == set(of_both), where
            continue
        assert sorted(said) == of_both, where
        assert is_in_order(of_first, said), where
        assert is_in_order(of_second, said), where
        if text == SNAPSHOT:
            (row,), (one,), (other,) = rows, first[number], second[number]
            both = merged(one["snapshot"], other["snapshot"])
            assert json.dumps(row["snapshot"], sort_keys=True) == json.dumps(both, sort_keys=True), where
    return placements(first), placements(second)


def placements(answers: Mapping[int, Sequence[Row]]) -> int:
    """Return how many allocations were placed."""
    return sum(
        len(row.get("allocationResponse", {}).get("new", [])) for rows in answers.values() for row in rows
    )


def with_snapshots(lines: Sequence[str]) -> list[str]:
    """Return a transcript with the whole state after every third cycle, and at the end."""
    found: list[str] = []
    cycles = 0
    for text in lines:
        found.append(text)
        cycles += '"schedule"' in text
        if '"schedule"' in text and cycles % 3 == 0:
            found.append(SNAPSHOT)
    return [*found, SNAPSHOT]


def a_transcript(seed: int, length: int = 60) -> list[str]:
    """Return a transcript with four partitions.

    A scheduler answers a resource manager (RM) in the older generation of `si.v1` once it has spoken that in
    any partition, so lines in that generation are left out.
    """
    lines = simulated_transcript(seed, length, PARTITIONS)
    return with_snapshots([text for text in lines if '"asks": ' not in text])


@pytest.mark.parametrize("seed", SEEDS)
def test_two_halves_decide_what_one_scheduler_decides(seed: int) -> None:
    """Nodes, applications, placements, releases and timers of a partition do not depend on the others."""
    compare(a_transcript(seed), HALVES)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_two_halves_decide_the_same_with_many_seeds(seed: int) -> None:
    """The same with seeds that the usual run has no time for."""
    compare(a_transcript(seed, length=100), HALVES)


def test_both_halves_place_something() -> None:
    """Transcripts that place in one half alone would compare little."""
    first, second = map(sum, zip(*(compare(a_transcript(seed), HALVES) for seed in SEEDS[:4]), strict=True))

    assert first > 20
    assert second > 20


@pytest.mark.parametrize("path", KEPT)
def test_two_halves_decide_the_same_of_kept_transcripts(path: str) -> None:
    """A reload that is refused, and one that ends a partition."""
    compare(with_snapshots((TESTS / path).read_text(encoding="utf-8").splitlines()), KEPT[path])
