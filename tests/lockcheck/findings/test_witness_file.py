"""Witnesses as files: what they keep, what they survive, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from support.lockcheck.lock_corpus import RECORD
from support.lockcheck.steered_threads import nests_of, witnesses

from licorne.lockcheck import Frame, Kind, LockUsageError, Rung, RWLock, session, unit
from licorne.lockcheck.checking.acquisition_checks import witness_of
from licorne.lockcheck.confirming.confirmation import finding_of
from licorne.lockcheck.findings.findings import (
    SchedulingPoint,
    SourcePlace,
    Witness,
    WitnessLock,
    waiting_order,
)
from licorne.lockcheck.findings.json_files import from_json, read_witness, to_json, write_witness

SCHEMA = Path(__file__).parents[3] / "lockcheck" / "findings" / "witness.schema.json"
PLACE = SourcePlace("/work/shop.py", "Shop.sell", "with self.till:", 7)


def crossed() -> Mapping[str, Callable[[], object]]:
    """Read and write two locks in both orders."""
    a, b = RWLock("a", key=("x", 1)), RWLock("b")
    return nests_of({"worker-3": [(a.read(), b.write())], "two": [(b.read(), a.write())]})


def a_witness() -> Witness:
    """Return a witness of them."""
    (witness,) = witnesses(crossed)
    return witness


def test_a_witness_is_written_as_its_schema_says_and_read_back(tmp_path: Path) -> None:
    """With everything that is in it."""
    witness = replace(a_witness(), aside=("third",))
    path = write_witness(tmp_path / "deep" / "folder", witness)
    document = json.loads(path.read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))

    assert witness == read_witness(path)
    assert f"{witness.fingerprint}.json" == path.name
    assert [
        "two takes b [R]",
        "worker takes a ('x', 1) [R]",
        "two waits for a ('x', 1) [W]",
        "worker waits for b [W]",
    ] == [step.partition(" at ")[0] for step in document["schedule"]]


def test_a_finding_is_known_again_from_its_witness() -> None:
    """What was confirmed is not taken to be so: it has to be shown anew."""
    witness = a_witness()
    finding = finding_of(replace(witness, rung=Rung.R4))

    assert (Rung.R2, witness.fingerprint) == (finding.rung, finding.fingerprint)
    assert ["b [R]", "a ('x', 1) [R]"] == [edge.held for edge in finding.edges]
    assert witness == witness_of(finding)


def test_only_what_nothing_guards_has_a_witness() -> None:
    """There is nothing to confirm of a path that a gate guards."""
    with session(on=RECORD) as opened:
        gate, a, b = RWLock("gate"), RWLock("a"), RWLock("b")
        for name, path in {"one": (a, b), "two": (b, a)}.items():
            with unit(name), gate.write(), path[0].write(), path[1].write():
                pass

    assert [Rung.R1] == [finding.rung for finding in opened.findings if finding.kind is Kind.CYCLE]
    assert [None] == [witness_of(finding) for finding in opened.findings if finding.kind is Kind.CYCLE]


@pytest.mark.parametrize(
    ("frame", "exactly", "loosely"),
    [
        (Frame("/work/shop.py", 7, "Shop.sell", "with self.till:"), True, True),
        (Frame("/elsewhere/shop.py", 99, "Shop.sell", "with self.till:"), True, True),
        (Frame("/work/shop.py", 7, "Shop.sell", "with self.till, self.stock:"), False, True),
        (Frame("/work/shop.py", 7, "Shop.buy", "with self.till:"), False, False),
        (Frame("/work/store.py", 7, "Shop.sell", "with self.till:"), False, False),
    ],
    ids=["the same", "moved", "line edited", "another function", "another file"],
)
def test_a_place_is_known_again_by_file_function_and_line(
    frame: Frame, *, exactly: bool, loosely: bool
) -> None:
    """Its number does not matter, nor where the file lies; the last attempt does not read the line."""
    assert exactly == PLACE.is_at(frame, same_source=True)
    assert loosely == PLACE.is_at(frame, same_source=False)


def test_a_writer_waits_before_the_readers_that_stand_behind_it() -> None:
    """And they do before whom nobody keeps."""

    def witness_lock(number: int, mode: str) -> WitnessLock:
        return WitnessLock(number, "lock", str(number), "W" if mode == "W" else "R", PLACE)

    points = (
        SchedulingPoint("r0", "r0", (witness_lock(0, "R"),), witness_lock(1, "R")),
        SchedulingPoint("w1", "w1", (), witness_lock(1, "W")),
        SchedulingPoint("r1", "r1", (witness_lock(1, "R"),), witness_lock(0, "R")),
        SchedulingPoint("w0", "w0", (), witness_lock(0, "W")),
    )
    order = waiting_order(points)

    assert order.index(1) < order.index(0)
    assert order.index(3) < order.index(2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 9}, "of version 9 is not licorne.lockcheck.witness of version 1"),
        ({"stops": []}, "stops: expected a number of threads from 2 to 64, got 0"),
        ({"order": [0, 0]}, "order: expected an order of the 2 threads, got [0, 0]"),
        ({"order": [0, True]}, "order: expected a list of whole numbers"),
        ({"rung": "R1"}, "rung: expected one of R2, R4, R5, got 'R1'"),
        ({"aside": None}, "aside: expected a list, got None"),
    ],
)
def test_a_file_that_is_no_witness_is_refused(change: dict[str, object], message: str) -> None:
    """With the file and the field."""
    document = json.loads(to_json(a_witness())) | change
    with pytest.raises(LockUsageError) as caught:
        from_json(json.dumps(document), "here.json")

    assert str(caught.value).startswith("here.json: ")
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(LockUsageError, match=r"no\.json: cannot be read"):
        read_witness(tmp_path / "no.json")
