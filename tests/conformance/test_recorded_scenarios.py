"""Scenarios that were recorded from the public core: the same transcript ends in the same state here.

Two lists name the scenarios that are allowed to differ: `docs/deviations.md`, on purpose, and
`open.txt` beside this file, not yet. A scenario that is listed and agrees is an error: take it off.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet

from licorne.proxy.play.transcripts.replay import replay

HERE: Final = Path(__file__).parent
DEVIATIONS: Final = HERE.parents[1] / "docs" / "deviations.md"
OPEN: Final = HERE / "open.txt"
_ROW: Final = re.compile(r"\|\s*`([^`/]+/[^`/]+)`\s*\|")


class DifferenceError(AssertionError):
    """A scenario came out otherwise than it was recorded; a crash is another matter."""


def _load_comparison() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recorded_comparison", HERE / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPARISON: Final = _load_comparison()


def read_deviations(text: str) -> dict[str, str]:
    """Return the scenarios of a table whose first column is a name in backticks."""
    rows = [match[1] for line in text.splitlines() if (match := _ROW.match(line))]
    return dict.fromkeys(rows, "listed in docs/deviations.md")


def read_open(text: str) -> dict[str, str]:
    """Return the scenarios of a list, one a line: a name, then the reason."""
    lines = [
        line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")
    ]
    return {words[0]: f"listed in open.txt: {' '.join(words[1:])}" for words in lines}


def _listed() -> dict[str, str]:
    deviations = read_deviations(DEVIATIONS.read_text(encoding="utf-8")) if DEVIATIONS.exists() else {}
    still_open = read_open(OPEN.read_text(encoding="utf-8")) if OPEN.exists() else {}
    return deviations | still_open


LISTED: Final = _listed()
NAMES: Final = [
    f"{path.parent.name}/{path.name.removesuffix('.expected.jsonl')}"
    for path in sorted(HERE.glob("*/*.expected.jsonl"))
]


def _scenarios() -> list[ParameterSet]:
    """Return all scenarios; one that is listed has to differ, and not by a crash."""
    return [
        pytest.param(
            name,
            marks=[pytest.mark.xfail(reason=LISTED[name], raises=DifferenceError, strict=True)]
            if name in LISTED
            else [],
        )
        for name in NAMES
    ]


def difference(name: str) -> str | None:
    """Replay a scenario and return the first difference from what was recorded, `None` if there is none."""
    output: list[str] = []
    replay((HERE / f"{name}.jsonl").read_text(encoding="utf-8"), name, "direct", output.append)
    return first_difference(name, output)


def first_difference(name: str, output: list[str]) -> str | None:
    """Compare an output with what was recorded."""
    expected: dict[int, Any] = COMPARISON.read_expected(HERE / f"{name}.expected.jsonl")
    aggregate = any("aggregate" in answers for answers in expected.values())
    actual = COMPARISON.canonical(COMPARISON.load("\n".join(output)), aggregate)
    found: str | None = COMPARISON.compare(expected, actual, "state")
    return found


@pytest.mark.parametrize("name", _scenarios())
def test_a_recorded_scenario_ends_as_it_was_recorded(name: str) -> None:
    """Callbacks, outcomes and the state in snapshots are those of the recorded core."""
    found = difference(name)

    if found is not None:
        raise DifferenceError(f"{name}: {found}")


def test_the_lists_name_recorded_scenarios_alone() -> None:
    """A misspelled name would excuse nothing and go unnoticed."""
    rows = (HERE / "configs.jsonl").read_text(encoding="utf-8").splitlines()
    configurations = {f"configs/{json.loads(row)['name']}" for row in rows}

    assert set() == LISTED.keys() - set(NAMES) - configurations


def test_the_lists_are_read_as_they_are_written() -> None:
    """Other columns and other tables do not matter; a reason may be a whole sentence."""
    table = "| scenario | why |\n|---|---|\n| `gang/replace` | it may |\n\nSee `gang/larger`.\n"

    assert ["gang/replace"] == list(read_deviations(table))
    assert {"gang/larger": "listed in open.txt: not yet done"} == read_open(
        "# a\n\ngang/larger  not yet done\n"
    )


def test_another_outcome_is_a_difference() -> None:
    """The comparison can fail."""
    assert first_difference("gang/replace", []) is not None
