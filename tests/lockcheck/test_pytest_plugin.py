"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lockcheck.pytest_runs import run_module, run_pytest
from support.programs import run_python, written

from licorne.lockcheck import Rung
from licorne.lockcheck.reports.documents import read_document

MODULE = """
import pytest
from licorne.lockcheck import Lock, Order, unit

SHARED = Lock("shared")
ORDER = Order("outer < inner")

@pytest.mark.lockcheck(order=ORDER)
def test_against_the_order():
    with Lock("inner"), Lock("outer"):
        pass

@pytest.mark.lockcheck(order=ORDER)
def test_in_order(lockcheck):
    with Lock("outer"), Lock("inner"):
        pass
    lockcheck.assert_order("outer", "inner")

def test_both_ways():
    first, second = Lock("first"), Lock("second")
    with unit("one"), first, second:
        pass
    with unit("two"), second, first:
        pass

def test_the_other_way_in_another_test():
    with Lock("inner"), SHARED:
        pass

@pytest.mark.lockcheck(off=True)
def test_left_alone():
    with Lock("inner"), Lock("outer"):
        pass
"""


LEFT_ALONE = """
import threading
import pytest
from licorne.lockcheck import Lock

@pytest.mark.lockcheck(off=True)
def test_left_alone():
    assert type(Lock("plain")) is type(threading.Lock())

def test_checked():
    assert type(Lock("checked")) is not type(threading.Lock())
"""


AFTER_THE_REPORT = """
from licorne.lockcheck import Lock, excludes

LOCK = Lock("late")

@excludes()
def call():
    pass

def pytest_runtest_logreport(report):
    if report.when == "teardown":
        with LOCK:
            call()
"""


AT_IMPORT = """
from licorne.lockcheck import Lock, excludes

@excludes()
def call():
    pass

with Lock("held"):
    call()

def test_nested():
    with Lock("outer"), Lock("inner"):
        pass
"""


def run(folder: Path, *options: str, module: str = MODULE, code: int | None = None) -> str:
    """Run the module above, or another one; return what pytest says."""
    ended, said = run_module(folder, module, *options)
    assert code in {None, ended}
    return said


def test_a_test_fails_for_what_was_found_while_it_ran(tmp_path: Path) -> None:
    """And only that one; the report has the declaration and the stacks."""
    said = run(tmp_path, "--lockcheck=full")

    assert "ERROR test_locks.py::test_against_the_order" in said
    assert "ERROR test_locks.py::test_both_ways" in said
    assert "declared: outer < inner" in said
    assert "how it comes to a standstill" in said
    assert "5 passed, 2 errors" in said
    assert "level full: " in said


FORTY = """
import pytest
from licorne.lockcheck import Lock, unit

def cross():
    first, second = Lock("first"), Lock("second")
    with unit("one"), first, second:
        pass
    with unit("two"), second, first:
        pass

@pytest.mark.parametrize("number", range(40))
def test_cross(number):
    cross()
"""


@pytest.mark.parametrize("ci", ["", "true"])
def test_the_same_finding_in_forty_tests_is_reported_in_full_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    """The others name the test that has the report, and the summary counts it once.

    On CI pytest does not shorten its list of failed tests to one line each.
    """
    monkeypatch.setenv("CI", ci)
    code, said = run_module(tmp_path, FORTY, "--lockcheck=full")

    assert 1 == code
    assert "40 errors" in said
    assert 1 == said.count("how it comes to a standstill")
    assert 39 == said.count("reported in full in test_locks.py::test_cross[0]]\n\nlockcheck, ")
    assert 80 == said.count("Possible deadlock, not seen yet: ")
    assert "found 1 at R2" in said


DEADLOCKS = """
import threading
import pytest
from licorne.lockcheck import DeadlockError, Lock

@pytest.mark.parametrize("number", range(3))
def test_deadlock(number):
    first, second, both = Lock("first"), Lock("second"), threading.Barrier(2)

    def hold(one, other):
        with one:
            both.wait()
            with other:
                pass

    thread = threading.Thread(target=hold, args=(second, first))
    thread.start()
    try:
        hold(first, second)
    finally:
        thread.join()
"""


def test_the_report_of_a_deadlock_is_printed_once_for_all_tests(tmp_path: Path) -> None:
    """Neither the log nor the error of a victim has it too."""
    code, said = run_module(tmp_path, DEADLOCKS, "--lockcheck=full")

    assert 1 == code
    assert 1 == said.count("how it comes to a standstill")
    assert 2 == said.count("reported in full in test_locks.py::test_deadlock[0]]\n\nlockcheck, ")
    assert "ERROR    lockcheck:" in said
    assert "DeadlockError: these wait for each other" in said
    assert "found 1 at R5" in said


def test_at_the_level_order_only_declarations_count(tmp_path: Path) -> None:
    """The learned graph belongs to `full`."""
    said = run(tmp_path, "--lockcheck=order")

    assert "ERROR test_locks.py::test_against_the_order" in said
    assert "the level `order` learns no edges" in said
    assert "1 failed, 4 passed, 1 error" in said


def test_one_order_for_all_tests_may_be_declared(tmp_path: Path) -> None:
    """What a test declares for itself goes before; one that is left alone stays so."""
    said = run(tmp_path, "--lockcheck=full", "--lockcheck-order=shared < inner, outer")

    assert "ERROR test_locks.py::test_the_other_way_in_another_test" in said
    assert "declared: shared < inner" in said
    assert "5 passed, 3 errors" in said


def test_what_fails_outside_of_tests_fails_the_run(tmp_path: Path) -> None:
    """There is no test to blame: a module does it when it is imported."""
    said = run(tmp_path, "--lockcheck=full", module=AT_IMPORT, code=pytest.ExitCode.TESTS_FAILED)

    assert "1 passed" in said
    assert "level full: 1 kind of edges, found 1 at R0" in said
    assert "outside of tests: Broken rule: test_locks.call: excludes all locks, but held #" in said


def test_what_fails_after_a_test_was_reported_fails_the_run(tmp_path: Path) -> None:
    """As a thread may that the test left running, or that says late what it saw."""
    (tmp_path / "conftest.py").write_text(AFTER_THE_REPORT, encoding="utf-8")
    module = "def test_nothing():\n    pass\n"
    said = run(tmp_path, "--lockcheck=full", module=module, code=pytest.ExitCode.TESTS_FAILED)

    assert "1 passed" in said
    assert (
        "outside of tests: test_locks.py::test_nothing, after its end: Broken rule: conftest.call: " in said
    )


def test_without_the_option_nothing_is_checked(tmp_path: Path) -> None:
    """And a test that asks the session is skipped."""
    said = run(tmp_path)

    assert "3 passed, 1 skipped" in said
    assert "-- lockcheck --" not in said


def test_a_test_is_left_alone_where_the_environment_has_locks_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment says the level of the run, and nothing of that test."""
    monkeypatch.setenv("LOCKCHECK", "full")
    said = run(tmp_path, module=LEFT_ALONE, code=pytest.ExitCode.OK)

    assert "level full: " in said
    assert "2 passed" in said


def test_a_report_that_cannot_be_written_is_refused_before_the_tests_run(tmp_path: Path) -> None:
    """Else all that was found would be lost at the end."""
    written(tmp_path, MODULE, "test_locks.py")
    words = ("-m", "pytest", "--lockcheck=full", "--lockcheck-json=nowhere/it.json")
    ran = run_python(*words, folder=tmp_path)

    assert pytest.ExitCode.USAGE_ERROR == ran.returncode
    assert "--lockcheck-json nowhere/it.json: the folder nowhere does not exist" in ran.stderr


def test_one_report_of_all_tests_is_written_in_every_form(tmp_path: Path) -> None:
    """The JSON has the edges of all of them, each with the test that saw it first."""
    run(
        tmp_path,
        "--lockcheck=full",
        *(f"--lockcheck-{kind}=out.{kind}" for kind in ("sarif", "json")),
    )
    summary = read_document(str(tmp_path / "out.json"))

    assert {"R0", "R2"} <= {finding.rung.name for finding in summary.findings}
    assert "test_locks.py::test_in_order" in {class_edge.test for class_edge in summary.class_edges}
    assert '"version": "2.1.0"' in (tmp_path / "out.sarif").read_text("utf-8")


def test_a_baseline_accepts_findings_and_fails_where_an_entry_is_too_many(tmp_path: Path) -> None:
    """What it accepts fails no test; an entry past its day fails the run."""
    run(tmp_path, "--lockcheck=full", "--lockcheck-json=out.json")
    failing = [one for one in read_document(str(tmp_path / "out.json")).findings if one.rung != Rung.R1]
    entries = [
        f'[[accepted]]\nfingerprint = "{one.fingerprint}"\nreason = "known"\nexpires = 9999-12-31\n'
        for one in failing
    ]
    path = tmp_path / "b.toml"
    path.write_text("".join(entries), "utf-8")

    assert "5 passed" in run(tmp_path, "--lockcheck=full", "--lockcheck-baseline=b.toml")
    path.write_text("".join(entries).replace("9999", "2020"), "utf-8")
    said = run(tmp_path, "--lockcheck=full", "--lockcheck-baseline=b.toml")
    assert "2 errors" in said
    assert f"b.toml: {failing[0].fingerprint} expired on 2020-12-31: known" in said


def test_the_processes_of_xdist_make_one_report(tmp_path: Path) -> None:
    """Whichever of them ran a test."""
    options = ("-p", "xdist", "-n", "2", "--lockcheck=full", "--lockcheck-json=out.json")
    ran = run_pytest(tmp_path, MODULE, *options)
    summary = read_document(str(tmp_path / "out.json"))

    assert {"outer[W] -> inner[W]", "first[W] -> second[W]", "second[W] -> first[W]"} <= set(
        map(str, summary.class_edges)
    )
    assert "test_locks.py::test_both_ways" in {finding.test for finding in summary.findings}
    assert "level full: 5 kinds of edges, found 1 at R0, 1 at R1, 1 at R2" in ran.stdout


MANY_TESTS = """
import gc
import pytest
from licorne.lockcheck import Lock, Session

@pytest.mark.parametrize("number", range(20))
def test_that_takes_locks(number):
    with Lock("outer"), Lock("inner"):
        pass

def test_of_what_is_left():
    gc.collect()
    assert sum(type(one) is Session for one in gc.get_objects()) == 2
"""


def test_the_session_of_a_test_ends_with_it(tmp_path: Path) -> None:
    """Else graph and stacks are kept until the run ends. Those of the run and the last test are left."""
    code, text = run_module(tmp_path, MANY_TESTS, "--lockcheck=full")

    assert code == 0, text
