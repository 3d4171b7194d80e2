"""Summaries as JSON documents, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.lockcheck.lock_reports import summary_of_a_cycle

from licorne.lockcheck import Kind, LockUsageError
from licorne.lockcheck.reports.documents import document_of, from_json, read_document, to_json
from licorne.lockcheck.sessions.summaries import Summary

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "lockcheck" / "reports" / "report.schema.json").read_text(encoding="utf-8")
)


def test_a_document_read_back_is_the_same_summary() -> None:
    """Nothing is lost: stacks, orders and counts included."""
    summary = summary_of_a_cycle()

    assert summary == from_json(to_json(summary), "here")


@pytest.mark.parametrize("summary", [summary_of_a_cycle(), Summary("order")], ids=["full", "empty"])
def test_a_document_keeps_to_the_schema(summary: Summary) -> None:
    """That one is committed, and says which version it is of."""
    Draft202012Validator.check_schema(SCHEMA)

    assert [] == list(Draft202012Validator(SCHEMA).iter_errors(json.loads(to_json(summary))))


def test_the_schema_knows_every_kind_and_every_field() -> None:
    """A field that is missing or one too many is an error: the version has to go up then."""
    (finding, *_) = json.loads(to_json(summary_of_a_cycle()))["findings"]
    described = SCHEMA["$defs"]["finding"]

    assert set(described["required"]) == set(finding) == set(described["properties"])
    assert [kind.value for kind in Kind] == described["properties"]["kind"]["enum"]
    assert list(Draft202012Validator(SCHEMA).iter_errors({**document_of(Summary("full")), "more": 1}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "here: licorne.lockcheck.report of version 2 is not licorne.lockcheck.report of"),
        ({"version": True}, "here: version: expected a whole number from 0 on, got True"),
        ({"level": None}, "here: level: expected a string, got None"),
        ({"findings": {}}, "here: findings: expected a list, got {}"),
        ({"findings": [3]}, r"here: findings\[0\]: 3 is not an object"),
        ({"nestings": [{"held": 1}]}, r"here: nestings\[0\]: held: expected a string, got 1"),
        ({"orders": [{"text": ""}]}, r"here: orders\[0\]: steps is missing"),
        ({"faults": [1]}, r"here: faults: expected a list of strings, got \[1\]"),
    ],
)
def test_what_is_no_such_document_is_refused_with_its_place(change: dict[str, object], message: str) -> None:
    """The error begins with where the text came from."""
    document = {**document_of(Summary("full")), **change}

    with pytest.raises(LockUsageError, match=message):
        from_json(json.dumps(document), "here")


def test_a_name_that_stands_for_nothing_is_refused_with_what_would() -> None:
    """Such as a rung of a later version."""
    text = to_json(summary_of_a_cycle()).replace('"rung": "R2"', '"rung": "R9"')

    with pytest.raises(LockUsageError, match=r"here: findings\[0\]: rung: 'R9' is not one of RB, R0, R1, R2"):
        from_json(text, "here")


def test_files_that_cannot_be_read_are_refused_by_name(tmp_path: Path) -> None:
    """Missing ones, and those that hold something else."""
    path = tmp_path / "report.json"
    with pytest.raises(LockUsageError, match=r"report\.json: cannot be read"):
        read_document(str(path))
    path.write_text("[", encoding="utf-8")

    with pytest.raises(LockUsageError, match=r"report\.json:1:2: no JSON: "):
        read_document(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 200_000, "no JSON: it nests too deep"),
        ('{"format": ' + "9" * 5_000 + "}", "no JSON: a number has thousands of digits"),
        ('{"format": "' + "x" * 5_000_000 + '", "version": 1}', r"x\.\.\. of version 1 is not"),
        ('{"format": [' + "[" * 900 + "]" * 901 + "}", r"format: expected a string, got \[.*\.\.\..*"),
    ],
    ids=["deep", "digits", "megabytes", "deep enough for Python"],
)
def test_a_hostile_document_is_refused_in_a_line(text: str, message: str) -> None:
    """The error is ours, and shows of a value what somebody reads."""
    with pytest.raises(LockUsageError, match=message) as caught:
        from_json(text, "here")

    assert str(caught.value).startswith("here: ")
    assert len(str(caught.value)) < 200
