"""The baseline: what it accepts, and that it only gets smaller."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from support.lockcheck.lock_reports import summary_of_a_cycle

from licorne.lockcheck import LockUsageError
from licorne.lockcheck.findings.terms import DEFAULT_FAIL_ON
from licorne.lockcheck.reports.several_runs import Accepted, Baseline, read_baseline

TODAY = date(2026, 11, 22)
CYCLE, GUARDED, BROKEN = summary_of_a_cycle().findings


def baseline(*fingerprints: str, expires: date = TODAY) -> Baseline:
    """Return one that accepts findings until a day."""
    return Baseline("b.toml", tuple(Accepted(name, "known", expires) for name in fingerprints))


def test_what_is_accepted_does_not_fail_up_to_its_last_day() -> None:
    """The rest does, and what is no failure is not asked about."""
    verdict = baseline(CYCLE.fingerprint).check([CYCLE, GUARDED, BROKEN], DEFAULT_FAIL_ON, TODAY)

    assert (BROKEN,) == verdict.failures
    assert (CYCLE,) == verdict.accepted
    assert () == verdict.complaints
    assert not verdict.clean


def test_an_entry_past_its_day_accepts_nothing_and_is_complained_of() -> None:
    """Somebody has to decide anew."""
    verdict = baseline(CYCLE.fingerprint, expires=TODAY - timedelta(days=1)).check(
        [CYCLE], DEFAULT_FAIL_ON, TODAY
    )

    assert (CYCLE,) == verdict.failures
    assert (f"b.toml: {CYCLE.fingerprint} expired on 2026-11-21: known",) == verdict.complaints


def test_an_entry_that_nothing_used_fails_where_everything_ran() -> None:
    """One for a finding that does not fail is unused too."""
    accepts = baseline("0123", GUARDED.fingerprint)
    whole = accepts.check([GUARDED], DEFAULT_FAIL_ON, TODAY)
    part = accepts.check([GUARDED], DEFAULT_FAIL_ON, TODAY, whole=False)

    assert 2 == len(whole.complaints)
    assert "b.toml: 0123 was not found, so take it out: known" == whole.complaints[0]
    assert not whole.clean
    assert part.clean


def test_a_file_is_read_with_its_reasons(tmp_path: Path) -> None:
    """As TOML."""
    path = tmp_path / "b.toml"
    path.write_text('[[accepted]]\nfingerprint = "a"\nreason = "why"\nexpires = 2027-03-31\n', "utf-8")
    read = read_baseline(str(path))

    assert (Accepted("a", "why", date(2027, 3, 31)),) == read.entries
    assert {"a": "why"} == read.reasons(TODAY)


ENTRY = '[[accepted]]\nfingerprint = "a"\nreason = "why"\nexpires = 2027-03-31\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accepted", r"b\.toml: no TOML: "),
        ("a = " + "[" * 100_000, r"b\.toml: no TOML: it nests too deep"),
        ("[[accepted]]\na = '" + "x" * 5_000_000 + "'", r"accepted\[0\]: .{1,60} must have fingerprint"),
        ("[[acepted]]", r"b\.toml: acepted: a baseline has \[\[accepted\]\] alone"),
        ("accepted = 1", r"accepted: must be written"),
        ('[[accepted]]\nfingerprint = "a"', r"accepted\[0\]: .* must have fingerprint, reason and expires"),
        (ENTRY.replace('"why"', '" "'), r"accepted\[0\]: reason: expected a text, got ' '"),
        (ENTRY.replace('"a"', '""'), r"accepted\[0\]: fingerprint: expected a fingerprint, got ''"),
        (
            ENTRY.replace("2027-03-31", '"soon"'),
            r"accepted\[0\]: expires: expected a date such as 2027-03-31, got 'soon'",
        ),
        (ENTRY + ENTRY, r"b\.toml: a: accepted twice"),
    ],
)
def test_a_file_with_a_mistake_is_refused_as_a_whole(tmp_path: Path, text: str, message: str) -> None:
    """The error names the file and the place."""
    path = tmp_path / "b.toml"
    path.write_text(text, "utf-8")

    with pytest.raises(LockUsageError, match=message):
        read_baseline(str(path))
