"""Configurations that the recorded core accepted or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.reader import DEFAULT_CONFIGURATION, load

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "configs.jsonl").read_text(encoding="utf-8").splitlines()
]


LISTED = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text(encoding="utf-8")


def is_accepted(text: str) -> bool:
    try:
        load(text or DEFAULT_CONFIGURATION)
    except ConfigurationError:
        return False
    return True


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_configuration_is_accepted_as_it_was_at_registration(row: dict[str, str | bool]) -> None:
    """The outcome is that of a registration with this text; the words of a refusal are our own.

    One that is listed among the deviations has the other outcome.
    """
    differs = f"| `configs/{row['name']}` |" in LISTED

    assert (row["accepted"] is not differs) is is_accepted(str(row["config"]))


def test_both_outcomes_were_recorded() -> None:
    """A reader that accepts or refuses everything would not do."""
    assert {row["accepted"] for row in ROWS} == {True, False}
