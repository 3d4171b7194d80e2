"""Findings as SARIF 2.1.0: the parts that the standard asks for, and where they point."""

from __future__ import annotations

import json
from pathlib import Path

from lock_reports import summary_of_a_closed_path

from licorne.lockcheck.sarif import to_sarif
from licorne.lockcheck.summaries import Summary

ROOT = Path(__file__).parents[2]


def test_each_finding_is_a_result_with_rule_level_place_and_fingerprint() -> None:
    """The rule that an index names is the rule of that name."""
    summary = summary_of_a_closed_path()
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
    (run,) = json.loads(to_sarif(summary_of_a_closed_path(), ROOT))["runs"]
    result = run["results"][0]
    (flow,) = result["codeFlows"]
    place = result["locations"][0]["physicalLocation"]

    assert ["rm", "scheduler"] == sorted(thread["id"] for thread in flow["threadFlows"])
    assert {"uri": "tests/lock_corpus.py", "uriBaseId": "ROOT"} == place["artifactLocation"]
    assert place["region"]["startLine"] > 1
    assert ["takes", "wants"] == [
        step["location"]["message"]["text"].split()[0] for step in flow["threadFlows"][0]["locations"]
    ]
    assert 4 == len(result["stacks"])


def test_what_lies_outside_of_the_root_keeps_its_whole_path(tmp_path: Path) -> None:
    """As a URI of a file."""
    (run,) = json.loads(to_sarif(summary_of_a_closed_path(), tmp_path))["runs"]

    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert {"uri": (ROOT / "tests" / "lock_corpus.py").resolve().as_uri()} == artifact


def test_what_a_baseline_accepts_is_suppressed_with_its_reason_and_faults_are_notified() -> None:
    """A reader shows it, but counts it not."""
    summary = summary_of_a_closed_path()
    name = summary.findings[0].fingerprint
    (run,) = json.loads(to_sarif(summary, ROOT, suppressed={name: "known"}))["runs"]
    (faulty,) = json.loads(to_sarif(Summary("full", faults=("KeyError: 1",)), ROOT))["runs"]

    assert [{"kind": "external", "justification": "known"}] == run["results"][0]["suppressions"]
    assert "suppressions" not in run["results"][1]
    assert faulty["invocations"][0]["executionSuccessful"] is False
