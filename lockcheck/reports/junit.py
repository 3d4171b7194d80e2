"""Findings as JUnit XML, for tools that show the results of tests: one case a finding.

A finding that fails is a failure; one that a baseline accepts is skipped, with its reason; one that is only
noted passes, and its text is the output. Errors of the checker are errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..findings.findings import Finding, finding_text
from ..findings.terms import Rung
from ..sessions.summaries import Summary

_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot contain in any form."""


def to_junit(
    summary: Summary, fail_on: Collection[Rung], *, accepted: Mapping[str, str] | None = None
) -> str:
    """Return the findings as JUnit XML.

    Args:
        summary: what was found.
        fail_on: the rungs on which a finding is a failure.
        accepted: the reasons of findings that a baseline accepts, by fingerprint.
    """
    suites = Element("testsuites", name="lockcheck")
    suite = SubElement(suites, "testsuite", name="lockcheck")
    for finding in summary.findings:
        _add(suite, finding, summary, fail_on, (accepted or {}).get(finding.fingerprint))
    for fault in summary.faults:
        case = SubElement(suite, "testcase", classname="lockcheck", name="the checker itself")
        SubElement(case, "error", type="fault", message=_said(fault))
    if not len(suite):
        SubElement(suite, "testcase", classname="lockcheck", name="nothing was found")
    for element in (suites, suite):
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            element.set(name, str(len(list(suite.iter(kind)))))
        element.set("tests", str(len(suite)))
    indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _add(
    suite: Element, finding: Finding, summary: Summary, fail_on: Collection[Rung], reason: str | None
) -> None:
    kind = f"{finding.rung.name} {finding.kind.value}"
    name = _said(f"{kind}: {finding.text} [{finding.fingerprint}]")
    case = SubElement(suite, "testcase", classname=f"lockcheck.{finding.rung.name}", name=name)
    place = next((edge.place for edge in finding.edges if edge.place), None)
    if place is not None:
        case.set("file", _said(place.file))
        case.set("line", str(place.line))
    text = _said(finding_text(finding, summary.sites))
    if finding.rung not in fail_on:
        SubElement(case, "system-out").text = text
    elif reason is not None:
        SubElement(case, "skipped", message=_said(reason))
    else:
        SubElement(case, "failure", type=kind, message=_said(finding.text)).text = text


def _said(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
