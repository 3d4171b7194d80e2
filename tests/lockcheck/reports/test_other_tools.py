"""Reports that other tools read: annotations, JUnit and SARIF."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

from jsonschema import Draft7Validator
from support.lockcheck.lock_corpus import RECORD
from support.lockcheck.lock_reports import summary_of_a_cycle
from support.waiting import EXPIRING_SECONDS

from licorne.lockcheck import Lock, session
from licorne.lockcheck.findings.terms import DEFAULT_FAIL_ON
from licorne.lockcheck.reports.annotations import to_annotations
from licorne.lockcheck.reports.junit import to_junit
from licorne.lockcheck.reports.sarif import to_sarif
from licorne.lockcheck.sessions.summaries import Summary

ROOT = Path(__file__).parents[3]
SCHEMA = Draft7Validator(json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text("utf-8")))


def a_log_without_stacks() -> Summary:
    """Return what the level `order` has to say of a lock taken twice: no stacks but one frame."""
    with session(level="order", on=RECORD) as opened:
        lock = Lock("plain")
        with lock:
            lock.acquire(timeout=EXPIRING_SECONDS)
    return opened.summary()


def test_every_log_is_valid_by_the_schema_of_the_standard() -> None:
    """With findings on three rungs, with none, with what a baseline accepts, with faults, without stacks."""
    summary = summary_of_a_cycle()
    names = {finding.fingerprint: "known" for finding in summary.findings}
    logs = [
        to_sarif(summary, ROOT),
        to_sarif(summary, Path("/elsewhere"), suppressed=names),
        to_sarif(Summary("full", faults=("KeyError: 1",)), ROOT),
        to_sarif(a_log_without_stacks(), ROOT),
    ]

    assert [] == [error.message for log in logs for error in SCHEMA.iter_errors(json.loads(log))]
    broken = to_sarif(summary, ROOT).replace('"error"', '"bad"')
    assert not SCHEMA.is_valid(json.loads(broken))


def test_names_of_files_are_written_as_uris() -> None:
    """Spaces and signs of another meaning are quoted; so are places that are no files."""
    summary = summary_of_a_cycle()
    finding = summary.findings[0]
    uris = []
    for file in (str(ROOT / "a b#c.py"), "<a b>"):
        frames = (replace(finding.edges[0].want_stack[0], file=file),)
        edges = (replace(finding.edges[0], want_stack=frames),)
        (run,) = json.loads(to_sarif(replace(summary, findings=(replace(finding, edges=edges),)), ROOT))[
            "runs"
        ]
        uris.append(run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])

    assert ["a%20b%23c.py", "a%20b"] == uris


def test_each_finding_is_a_result_with_rule_level_place_and_fingerprint() -> None:
    """The rule that an index names is the rule of that name."""
    summary = summary_of_a_cycle()
    log = json.loads(to_sarif(summary, ROOT))
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]

    assert "2.1.0" == log["version"]
    assert [(finding.fingerprint) for finding in summary.findings] == [
        result["partialFingerprints"]["lockcheck/v1"] for result in run["results"]
    ]
    assert ["error", "note", "error"] == [result["level"] for result in run["results"]]
    for result in run["results"]:
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"]


def test_a_closed_path_is_a_flow_of_threads_with_places_in_the_checkout() -> None:
    """Relative to its root; each thread takes, then wants."""
    (run,) = json.loads(to_sarif(summary_of_a_cycle(), ROOT))["runs"]
    result = run["results"][0]
    (flow,) = result["codeFlows"]
    place = result["locations"][0]["physicalLocation"]

    assert ["rm", "scheduler"] == sorted(thread["id"] for thread in flow["threadFlows"])
    assert {"uri": "tests/support/lockcheck/lock_corpus.py", "uriBaseId": "ROOT"} == place["artifactLocation"]
    assert place["region"]["startLine"] > 1
    assert ["takes", "wants"] == [
        step["location"]["message"]["text"].split()[0] for step in flow["threadFlows"][0]["locations"]
    ]
    assert 4 == len(result["stacks"])


def test_what_lies_outside_of_the_root_keeps_its_whole_path(tmp_path: Path) -> None:
    """As a URI of a file."""
    (run,) = json.loads(to_sarif(summary_of_a_cycle(), tmp_path))["runs"]

    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert {
        "uri": (ROOT / "tests" / "support" / "lockcheck" / "lock_corpus.py").resolve().as_uri()
    } == artifact


def test_what_a_baseline_accepts_is_suppressed_with_its_reason_and_faults_are_notified() -> None:
    """A reader shows it, but counts it not."""
    summary = summary_of_a_cycle()
    name = summary.findings[0].fingerprint
    (run,) = json.loads(to_sarif(summary, ROOT, suppressed={name: "known"}))["runs"]
    (faulty,) = json.loads(to_sarif(Summary("full", faults=("KeyError: 1",)), ROOT))["runs"]

    assert [{"kind": "external", "justification": "known"}] == run["results"][0]["suppressions"]
    assert "suppressions" not in run["results"][1]
    assert faulty["invocations"][0]["executionSuccessful"] is False


# ------------------------------------------------------------------------------------------------ JUnit


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


# ------------------------------------------------------------------------------------------ annotations


def test_each_finding_is_one_line_beside_its_place_the_strongest_first() -> None:
    """What fails is an error, what is only noted a notice; places are relative to the root."""
    lines = to_annotations(summary_of_a_cycle(), ROOT, DEFAULT_FAIL_ON).splitlines()

    assert ["error", "notice", "error"] == [re.match(r"::(\w+) ", line)[1] for line in lines]  # type: ignore[index]
    assert lines[0].startswith("::error file=tests/support/lockcheck/lock_corpus.py,line=")
    assert ",title=lockcheck R2%3A cycle::a cycle of 2 steps: " in lines[0]
    assert "%0ASuggestion: let " in lines[0]


def test_what_a_baseline_accepts_is_a_notice_and_faults_are_errors() -> None:
    """A reader sees the reason beside the code."""
    summary = summary_of_a_cycle()
    first = replace(summary, findings=summary.findings[:1])
    text = to_annotations(first, ROOT, DEFAULT_FAIL_ON, accepted={summary.findings[0].fingerprint: "known"})

    assert text.startswith("::notice ")
    assert text.endswith("%0AAccepted: known\n")
    assert "::error title=lockcheck::KeyError%0A1\n" == to_annotations(
        Summary("full", faults=("KeyError\n1",)), ROOT, DEFAULT_FAIL_ON
    )


def test_no_name_can_end_a_command_or_begin_another_one() -> None:
    """Signs that mean something to GitHub are escaped; a file elsewhere keeps its path."""
    summary = summary_of_a_cycle()
    finding = summary.findings[0]
    frame = replace(finding.edges[0].want_stack[0], file="/x/a,b:c%.py")
    edges = (replace(finding.edges[0], want_stack=(frame,)),)
    odd = replace(finding, text="a\n::error::b", edges=edges, why=())
    (line,) = to_annotations(replace(summary, findings=(odd,)), ROOT, DEFAULT_FAIL_ON).splitlines()

    assert line.startswith(f"::error file=/x/a%2Cb%3Ac%25.py,line={frame.line},")
    assert "::a%0A::error::b" in line
