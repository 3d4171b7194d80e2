"""Findings as JUnit XML."""

from __future__ import annotations

from dataclasses import replace
from xml.etree.ElementTree import Element, fromstring

from support.lockcheck.lock_reports import summary_of_a_cycle

from licorne.lockcheck.findings.evidence import DEFAULT_FAIL_ON
from licorne.lockcheck.reports.junit import to_junit
from licorne.lockcheck.sessions.summaries import Summary


def parsed(text: str) -> Element:
    """Return the root of a document; its declaration names an encoding."""
    return fromstring(text.encode())  # noqa: S314 - our own text


def test_each_finding_is_a_case_and_what_fails_is_a_failure_with_the_whole_report() -> None:
    """What is only noted passes, and says itself as output; the counts are those of the cases."""
    summary = summary_of_a_cycle()
    root = parsed(to_junit(summary, DEFAULT_FAIL_ON))
    cases = list(root.iter("testcase"))

    assert ["lockcheck.R2", "lockcheck.R1", "lockcheck.R0"] == [case.get("classname") for case in cases]
    assert [["failure"], ["system-out"], ["failure"]] == [[part.tag for part in case] for case in cases]
    assert "how it comes to a standstill" in str(cases[0][0].text)
    assert (cases[0].get("file") or "").endswith("lock_corpus.py")
    for element in (root, root[0]):
        counts = [element.get(name) for name in ("tests", "failures", "errors", "skipped")]
        assert ["3", "2", "0", "0"] == counts


def test_what_a_baseline_accepts_is_skipped_and_a_fault_is_an_error() -> None:
    """With the reason of the one, and what went wrong with the other."""
    summary = replace(summary_of_a_cycle(), faults=("KeyError: 1",))
    root = parsed(to_junit(summary, DEFAULT_FAIL_ON, accepted={summary.findings[0].fingerprint: "known"}))
    skipped, error = root.find(".//skipped"), root.find(".//error")

    assert skipped is not None
    assert error is not None
    assert ("known", "KeyError: 1") == (skipped.get("message"), error.get("message"))
    assert ["4", "1", "1", "1"] == [root.get(name) for name in ("tests", "failures", "errors", "skipped")]


def test_where_nothing_was_found_one_case_passes() -> None:
    """A suite without cases is taken for one that did not run."""
    root = parsed(to_junit(Summary("full"), DEFAULT_FAIL_ON))

    assert ["nothing was found"] == [case.get("name") for case in root.iter("testcase")]


def test_signs_that_xml_cannot_say_are_replaced() -> None:
    """The names of locks and executions may be any text."""
    summary = summary_of_a_cycle()
    finding = replace(summary.findings[0], text='a "lock" <\x00\x1b> & more')
    root = parsed(to_junit(replace(summary, findings=(finding,)), DEFAULT_FAIL_ON))
    failure = root.find(".//failure")

    assert failure is not None
    assert 'a "lock" <??> & more' == failure.get("message")
