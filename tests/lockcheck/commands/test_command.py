"""The command line, in this process but for programs that need one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import run_lockcheck, run_python, written

from licorne.lockcheck.checking import acquisition_checks
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.findings.terms import CLEAN, FAULT, FOUND, USAGE
from licorne.lockcheck.reports.writing import FORMS

BOTH_WAYS = """
from licorne.lockcheck import Lock, unit
first, second = Lock("first"), Lock("second")
with unit("one"), first, second:
    pass
with unit("two"), second, first:
    pass
"""
DECLARED = """
from licorne.lockcheck import Lock, Order, excludes
ORDER = Order("first < second")
LOCK = Lock("first")

@excludes()
def call():
    pass
"""
DEADLOCK = """
import threading
from licorne.lockcheck import Lock
first, second = Lock("first"), Lock("second")
both = threading.Barrier(2)

def hold(one, other):
    with one:
        both.wait()
        with other:
            pass

threads = [threading.Thread(target=hold, args=pair) for pair in [(first, second), (second, first)]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
ONE_WAY = """
import sys
from licorne.lockcheck import Lock
with Lock("first"), Lock("second"):
    print(sys.argv[1:])
"""


def test_a_clean_program_runs_with_its_arguments_and_ends_with_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it prints is its own; what the checker says goes to standard error."""
    code = main(["run", written(tmp_path, ONE_WAY), "--level", "x"])
    said = capsys.readouterr()

    assert CLEAN == code
    assert "['--level', 'x']\n" == said.out
    assert "lockcheck, level full: found nothing." in said.err


def test_findings_end_with_one_and_are_written_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rung decides: at R5 an unguarded path does not fail."""
    program = written(tmp_path, BOTH_WAYS)
    files = [f"--{kind}={tmp_path / kind}" for kind in FORMS]

    assert FOUND == main(["run", *files, program])
    assert "R2 cycle" in capsys.readouterr().err
    assert CLEAN == main(["run", "--fail-on=R5", program])
    assert "R2" == json.loads((tmp_path / "json").read_text("utf-8"))["findings"][0]["rung"]
    assert all((tmp_path / form).stat().st_size > 0 for form in FORMS)


def test_the_report_of_a_deadlock_is_printed_once(tmp_path: Path) -> None:
    """Where it happens: neither the error of its victim nor the report at the end has it again."""
    run = run_lockcheck(tmp_path, "run", f"--into={tmp_path}", written(tmp_path, DEADLOCK))

    assert FOUND == run.returncode
    assert 1 == run.stderr.count("how it comes to a standstill")
    assert 1 == run.stderr.count("DeadlockError: ")
    assert 1 == run.stderr.count(", reported in full in the output above]")
    assert run.stderr.index("standstill") < run.stderr.index("DeadlockError: ")


def test_a_report_may_go_to_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a program that reads it there."""
    main(["run", "--json=-", written(tmp_path, BOTH_WAYS)])

    assert "licorne.lockcheck.report" == json.loads(capsys.readouterr().out)["format"]


def test_a_declared_order_is_checked_and_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line to the certificate."""
    report = str(tmp_path / "report.json")

    assert CLEAN == main(["run", "--order", "first < second", "--json", report, written(tmp_path, ONE_WAY)])
    assert CLEAN == main(["prove", report])
    assert "The certificate holds." in capsys.readouterr().out
    assert FOUND == main(["run", "--order", "second < first", "--json", report, written(tmp_path, ONE_WAY)])
    assert FOUND == main(["prove", report])


def test_an_order_beside_the_program_is_found_and_its_module_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program imports from its own folder, wherever it is started; contracts are made at import."""
    monkeypatch.delitem(sys.modules, "declared_here", raising=False)
    (tmp_path / "declared_here.py").write_text(DECLARED, "utf-8")
    program = written(tmp_path, "from declared_here import call, LOCK\nwith LOCK:\n    call()\n")

    assert FOUND == main(["run", "--order=declared_here:ORDER", program])
    assert "Broken rule: declared_here.call: excludes all locks" in capsys.readouterr().err


def test_a_baseline_accepts_and_then_fails_when_nothing_uses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the fingerprint that the report shows."""
    program, report, accepted = written(tmp_path, BOTH_WAYS), tmp_path / "r.json", tmp_path / "b.toml"
    assert FOUND == main(["run", "--json", str(report), program])
    name = json.loads(report.read_text("utf-8"))["findings"][0]["fingerprint"]
    accepted.write_text(
        f'[[accepted]]\nfingerprint = "{name}"\nreason = "known"\nexpires = 9999-12-31\n', "utf-8"
    )

    assert CLEAN == main(["run", "--baseline", str(accepted), program])
    assert FOUND == main(["run", "--baseline", str(accepted), written(tmp_path, ONE_WAY)])
    assert "was not found, so take it out: known" in capsys.readouterr().err


def test_a_graph_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In each of its forms."""
    report = str(tmp_path / "report.json")
    main(["run", "--json", report, written(tmp_path, BOTH_WAYS)])
    capsys.readouterr()

    assert [CLEAN] * 2 == [main(["graph", form, report]) for form in ("--dot", "--mermaid")]
    drawn = capsys.readouterr().out
    assert all(text in drawn for text in ("digraph lockcheck {", "flowchart LR"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["run", "missing.py"], "missing.py: there is no such program"),
        (["run", "--order", "a <", __file__], "--order: "),
        (["run", "--order", "nowhere:ORDER", __file__], "--order nowhere:ORDER: No module named"),
        (["run", "--order", "os:sep", __file__], "--order os:sep: expected an Order, got"),
        (["prove", "missing.json"], "missing.json: cannot be read"),
        (
            ["run", "--json", "nowhere/it.json", "missing.py"],
            "--json nowhere/it.json: the folder nowhere does not exist",
        ),
        (["confirm", "--sarif", "nowhere/it.sarif", "missing.py"], "the folder nowhere does not exist"),
        (["graph", "missing.json"], "one of the arguments --dot --mermaid is required"),
    ],
)
def test_a_wrong_call_ends_with_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says what is wrong."""
    assert USAGE == main(arguments)
    assert message in capsys.readouterr().err


def test_a_fault_of_the_checker_ends_with_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program went on as if nothing were."""

    def broken(*_: object) -> None:
        raise KeyError("our own")

    monkeypatch.setattr(acquisition_checks, "find_cycle", broken)

    assert FAULT == main(["run", written(tmp_path, ONE_WAY)])


@pytest.mark.parametrize(
    ("end", "code"), [("raise SystemExit(7)", 7), ("1 / 0", 1), ("raise SystemExit('no')", 1), ("", 0)]
)
def test_a_program_that_fails_by_itself_ends_with_its_own_code(tmp_path: Path, end: str, code: int) -> None:
    """As it would without the checker."""
    assert code == main(["run", written(tmp_path, end)])


@pytest.mark.parametrize("command", ["licorne.lockcheck", "licorne.proxy.shell.command_line lockcheck"])
def test_both_commands_are_the_same(tmp_path: Path, command: str) -> None:
    """The one of the scheduler hands over."""
    ran = run_python("-m", *command.split(), "run", written(tmp_path, BOTH_WAYS))

    assert FOUND == ran.returncode
    assert "R2 cycle" in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full here")
@pytest.mark.parametrize(
    ("arguments", "code"), [(["--help"], USAGE), (["run", "prog.py"], USAGE), (["prove", "gone.json"], USAGE)]
)
def test_an_output_that_cannot_be_written_is_an_ordinary_error(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    """On standard error, without a traceback and the number that the system has for it."""
    written(tmp_path, "print('any')\n", "prog.py")
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "licorne.lockcheck", *arguments],
            cwd=tmp_path,
            env=variables,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    assert code == ran.returncode
    assert ran.stderr.splitlines()[-1].startswith("lockcheck: ")
    assert "Errno" not in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full here")
@pytest.mark.parametrize("form", FORMS)
def test_a_report_that_cannot_be_written_is_named(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its option, and what was found has been said before."""
    assert USAGE == main(["run", f"--{form}", "/dev/full", written(tmp_path, BOTH_WAYS)])

    said = capsys.readouterr().err
    assert "R2 cycle" in said
    assert f"lockcheck: --{form} /dev/full: cannot be written: No space left on device\n" in said


@pytest.mark.parametrize("form", FORMS)
def test_a_lock_whose_name_is_no_text_is_reported(form: str, tmp_path: Path) -> None:
    """Names of files may be such."""
    program = BOTH_WAYS.replace('"first"', '"fi\\udcffrst"')

    assert FOUND == main(["run", f"--{form}", str(tmp_path / "report"), written(tmp_path, program)])

    assert "second" in (tmp_path / "report").read_text("utf-8")
