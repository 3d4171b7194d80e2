"""Configurations that the recorded core accepted or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from licorne.model.configuration.reader import ConfigurationError, load

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "configs.jsonl").read_text(encoding="utf-8").splitlines()
]


def is_accepted(text: str) -> bool:
    try:
        load(text)
    except ConfigurationError:
        return False
    return True


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_configuration_is_accepted_as_it_was_at_registration(row: dict[str, str | bool]) -> None:
    """The outcome is that of a registration with this text; the words of a refusal are our own."""
    assert row["accepted"] is is_accepted(str(row["config"]))


def test_both_outcomes_were_recorded() -> None:
    """A reader that accepts or refuses everything would not do."""
    assert {row["accepted"] for row in ROWS} == {True, False}
