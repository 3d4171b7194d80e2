"""The commands `confirm` and `replay`: programs are run again in processes of their own."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from support.lockcheck.lock_reports import a_cycle
from support.lockcheck.recorded_programs import ONE_BY_ONE, crossed_program
from support.programs import written

from licorne.lockcheck import Finding, Rung
from licorne.lockcheck.checking.acquisition_checks import witness_of
from licorne.lockcheck.commands import confirm
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.commands.confirm import Program
from licorne.lockcheck.confirming.confirmation import ConfirmationOutcome, ways_to_confirm
from licorne.lockcheck.findings.json_files import read_witness
from licorne.lockcheck.findings.terms import CLEAN, FOUND, USAGE
from licorne.lockcheck.reports.documents import read_document

SCHEMA = Path(__file__).parents[3] / "lockcheck" / "reports" / "report.schema.json"


def crossed(folder: Path, **parts: str) -> str:
    """Write a program whose threads take two locks in both orders; return its path."""
    return written(folder, crossed_program(**parts))


def test_a_program_is_run_and_run_into_its_deadlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With its arguments, and with its threads waited for; the reports know the rung and the replay file."""
    monkeypatch.chdir(tmp_path)
    program = crossed(tmp_path, rest="print(sys.argv[1:])")
    code = main(["confirm", "--json=r.json", "--sarif=r.sarif", program, "--pause", "x"])
    said = capfd.readouterr()
    (finding,) = read_document("r.json").findings

    assert FOUND == code
    assert Rung.R4 is finding.rung
    assert "['--pause', 'x']\n" * 2 == said.out
    assert "R4 cycle" in said.err
    assert f"replay file: {finding.replay}" in said.err
    assert "Confirmed: 1 of 1." in said.err
    assert finding.replay == str(tmp_path / "lockcheck-witnesses" / f"{finding.fingerprint}.json")
    jsonschema.validate(json.loads(Path("r.json").read_text("utf-8")), json.loads(SCHEMA.read_text("utf-8")))
    assert json.loads(Path("r.sarif").read_text("utf-8"))["runs"][0]["results"][0]["properties"]["replay"]


def replay_file(folder: Path) -> Path:
    """Confirm the deadlock of such a program; return its replay file."""
    assert FOUND == main(["confirm", f"--into={folder}", crossed(folder)])
    (path,) = folder.glob("*.json")
    return path


def test_a_confirmed_deadlock_is_replayed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also after the program was edited elsewhere."""
    path = replay_file(tmp_path)
    program = crossed(tmp_path)
    Path(program).write_text("# a remark\n\n" + Path(program).read_text("utf-8"), "utf-8")

    assert Rung.R4 is read_witness(path).rung
    assert FOUND == main(["replay", str(path), program])
    assert f"replay file: {path}" in capfd.readouterr().err


def test_what_cannot_come_true_any_more_is_said_with_the_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A gate was put in front since."""
    path = replay_file(tmp_path)

    assert CLEAN == main(["replay", "--pause=0.01", str(path), crossed(tmp_path, gate="gate,")])
    said = capfd.readouterr().err
    assert "R2 cycle" in said
    assert "not confirmed in a steered re-run" in said


def test_a_program_that_hangs_after_its_deadlock_was_broken_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadlock is confirmed all the same."""
    monkeypatch.setattr("licorne.lockcheck.commands.confirm.GRACE_SECONDS", 0.1)
    path = replay_file(tmp_path)

    assert FOUND == main(["replay", str(path), crossed(tmp_path, rest="threading.Event().wait()")])


def test_a_wrong_call_ends_with_two(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And says what is wrong: the file is missing, or no text."""
    source = tmp_path / "source.json"
    source.write_bytes(b"\xff\xfe\x00")

    assert USAGE == main(["replay", "missing.json", "p.py"])
    assert "missing.json: cannot be read" in capfd.readouterr().err
    assert USAGE == main(["replay", str(source), crossed(tmp_path)])
    assert f"{source}:1: byte 0xff is not UTF-8 text" in capfd.readouterr().err


LOOPED = """
{ONE_BY_ONE}
from licorne.lockcheck import Lock
shelves, door = [Lock("shelf") for _ in range(3)], Lock("door")
turns = one_by_one()
def put():
    with turns, shelves[1], door:
        pass
def look():
    with turns, door:
        for shelf in shelves:
            with shelf:
                pass
threads = [threading.Thread(target=work) for work in (put, look)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
SECOND_THREAD = """
{ONE_BY_ONE}
import queue
from licorne.lockcheck import Lock
a, b, orders, answers = Lock("a"), Lock("b"), queue.Queue(), queue.Queue()
turns = one_by_one()
def publish():
    with a:
        with b:
            pass
def loop():
    for _ in range(2):
        orders.get()
        with turns, b, a:
            pass
        answers.put(1)
def worker():
    with turns:
        publish()
looping, working = threading.Thread(target=loop), threading.Thread(target=worker)
publish()
looping.start()
orders.put(1)
answers.get()
working.start()
orders.put(1)
for thread in (looping, working):
    thread.join()
"""


@pytest.mark.parametrize("source", [LOOPED, SECOND_THREAD], ids=["a lock of many", "a second thread"])
def test_a_deadlock_that_the_steering_caused_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], source: str
) -> None:
    """The paused thread was another one, or came for another lock of the class; it is reported once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(source.replace("{ONE_BY_ONE}", ONE_BY_ONE), "utf-8")
    code = main(["confirm", "--json=r.json", "program.py"])
    deadlocks = [one for one in read_document("r.json").findings if one.rung > Rung.R1]

    assert FOUND == code
    assert "Confirmed: 1 of 1." in capfd.readouterr().err
    assert [Rung.R4] == [finding.rung for finding in deadlocks]


def test_all_threads_that_take_the_same_step_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have one fingerprint; the first set that gets stuck is the finding."""
    first = next(one for one in a_cycle().findings if one.rung is Rung.R2)
    other = replace(first, points=tuple(replace(point, role="worker") for point in first.points))
    aims: list[str] = []

    def outcome_of(finding: Finding, *_: object) -> ConfirmationOutcome:
        aims.append(finding.points[0].role)
        witness = witness_of(finding)
        assert witness is not None
        stuck = replace(finding, rung=Rung.R4) if aims[-1] == "worker" else None
        return ConfirmationOutcome(stuck, () if stuck else ("nobody came",), witness, 3)

    monkeypatch.setattr(confirm, "_outcome", outcome_of)
    (ways,) = ways_to_confirm([first, other, first])
    found = confirm._tried(ways, Program("p", (), as_module=False), argparse.Namespace())

    assert [first.points[0].role, "worker"] == aims
    assert [Rung.R4] == [finding.rung for finding in found]
