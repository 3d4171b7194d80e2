"""SARIF, which other tools read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from jsonschema import Draft7Validator
from support.lockcheck.lock_corpus import RECORD
from support.lockcheck.lock_reports import summary_of_a_cycle
from support.waiting import EXPIRING_SECONDS

from licorne.lockcheck import Lock, session
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
