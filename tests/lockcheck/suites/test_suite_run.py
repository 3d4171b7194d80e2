"""Runs of published suites are compared by the names of their tests."""

from __future__ import annotations

import sys
from pathlib import Path

from support.lockcheck.published_suites import SUITES, Suite
from support.lockcheck.suite_run import CHECKED, UNCHECKED, Run, compared, run_suite, unjudged

TESTS = """
import threading, time

def test_takes_its_lock_twice():
    lock = threading.Lock()
    with lock:
        assert not lock.acquire(timeout=0.001)

def test_takes_two_locks_in_both_orders():
    first, second, done = threading.Lock(), threading.Lock(), []
    def take(a, b):
        with a, b:
            pass
        done.append(1)
    for locks in (first, second), (second, first):
        count = len(done)
        threading.Thread(target=take, args=locks).start()
        while len(done) == count:  # not joined: nothing orders the two
            time.sleep(0.001)

def test_fails():
    raise AssertionError
"""


def test_a_test_that_ends_in_a_new_way_with_lockcheck_deviates() -> None:
    """Also one that was not run; one that ended in several ways is unsteady."""
    without = [
        Run({"a": "passed", "b": "passed", "c": "passed"}, 2.0),
        Run({"a": "passed", "b": "failed", "c": "passed"}, 3.0),
    ]
    checked = [Run({"a": "failed", "b": "failed"}, 5.0), Run({"a": "failed", "b": "passed"}, 6.0)]
    result = compared("shop 1", without, checked)

    assert ("a: failed, without passed", "c: not run") == result.deviations
    assert result.row() == "| shop 1 | 3 | 2 differ, 1 unsteady | 2.50 | none |"


def test_a_run_that_did_not_end_deviates_once() -> None:
    """Its tests are not listed one by one."""
    without = [Run({"a": "passed"}, 1.0)]
    checked = [Run({}, 600.0, trouble="not ended after 600 s")]

    assert compared("shop 1", without, checked).deviations == ("the run: not ended after 600 s",)


def test_findings_from_r2_on_need_a_judgement_on_the_page() -> None:
    """Weaker ones, and broken rules, do not."""
    findings = [("R1", "aa", "guarded"), ("R0", "bb", "rule"), ("R2", "cc", "judged"), ("R2", "dd", "new")]

    assert ["R2 dd: new"] == unjudged(findings, "| `cc` | true |")


def test_findings_do_not_change_how_a_test_ended(tmp_path: Path) -> None:
    """They fail it under lockcheck, but they are counted apart."""
    (tmp_path / "test_shop.py").write_text(TESTS, encoding="utf-8")
    suite = Suite("shop", "1", ("test_shop.py",))
    runs = [
        run_suite(suite, sys.executable, tmp_path, options, tmp_path / f"{name}.log")
        for name, options in (("without", UNCHECKED), ("with", CHECKED))
    ]
    result = compared(suite.name, runs[:1], runs[1:])

    assert () == result.deviations
    assert ["passed", "passed", "failed"] == list(runs[1].outcomes.values())
    assert ["R2"] == [rung for rung, _, _ in result.findings if rung == "R2"]


def test_at_least_ten_packages_are_run() -> None:
    """Each once, in the order of the alphabet, so that the table is found easily."""
    names = [suite.package for suite in SUITES]

    assert len(names) >= 10
    assert sorted(set(names)) == names
