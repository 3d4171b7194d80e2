"""How locks were used, by class, by place and by key."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lockcheck.lock_corpus import RECORD, Cluster, hold
from support.lockcheck.lock_reports import spread_of

from licorne.lockcheck import Lock, LockUsageError, RWLock, session
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.findings import statistics
from licorne.lockcheck.findings.statistics import OTHER_KEYS, Spread, Usage, usages_together
from licorne.lockcheck.findings.terms import CLEAN, USAGE
from licorne.lockcheck.reports.documents import from_json, to_json
from licorne.lockcheck.reports.writing import usage_table

PROGRAM = """
from licorne.lockcheck import Lock
for key in ("a", "b", "a"):
    with Lock("account", key=key):
        pass
"""


def rows(usages: tuple[Usage, ...], by: str) -> list[tuple[str, ...]]:
    """Return the cells of a table that do not depend on the clock: lock, counts, and what the line is."""
    lines = [line.split() for line in usage_table(usages, by).splitlines()[1:]]  # type: ignore[arg-type]
    return sorted((line[0], line[1], line[2], *line[11:]) for line in lines)


def test_times_are_put_together_by_class_by_place_and_by_key() -> None:
    """Whoever asks for one sees the others' counts in it; a lock without a key has a line of its own."""
    with session(on=RECORD, by_key=True) as opened:
        c = Cluster()
        for lock in (c.node, c.node_2, c.node):
            hold(lock.write())
        with c.node.write():
            pass
        hold(c.node.read(), Lock("plain"))
    usages = from_json(to_json(opened.summary()), "here").usages

    assert [("node[R]", "1", "0"), ("node[W]", "4", "0"), ("plain[W]", "1", "0")] == rows(usages, "class")
    assert [
        ("node[R]", "1", "0", "n1"),
        ("node[W]", "1", "0", "n2"),
        ("node[W]", "3", "0", "n1"),
        ("plain[W]", "1", "0", "(none)"),
    ] == rows(usages, "key")
    assert ["1", "1", "1", "3"] == sorted(row[1] for row in rows(usages, "site"))


def test_without_the_request_nothing_is_noted_by_key_and_the_table_says_so() -> None:
    """A thousand locks of one class at one place are one line, and one histogram."""
    with session(on=RECORD) as opened:
        for number in range(20):
            hold(RWLock("node", key=number).write())
    usages = opened.summary().usages

    assert 1 == len(usages)
    with pytest.raises(LockUsageError, match="no times were noted by key"):
        usage_table(usages, "key")


def test_keys_that_are_too_many_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """By class: another class has its own."""
    assert statistics.KEYS_MAX > 1000
    monkeypatch.setattr(statistics, "KEYS_MAX", 3)
    with session(on=RECORD, by_key=True) as opened:
        for number in range(5):
            hold(Lock("node", key=number))
        hold(Lock("queue", key="root"))
    counts = {(usage.lock, usage.key): usage.hold.count for usage in opened.summary().usages}

    assert {
        ("node", "0"): 1,
        ("node", "1"): 1,
        ("node", "2"): 1,
        ("node", OTHER_KEYS): 2,
        ("queue", "root"): 1,
    } == counts


def test_a_table_has_totals_percentiles_and_the_longest_of_waits_and_holds() -> None:
    """In microseconds, what was waited for longest first."""
    usages = (
        Usage("quick", "W", "a.py:1", None, spread_of([1000, 1000]), Spread()),
        Usage("slow", "R", "a.py:2", None, spread_of([8000]), spread_of([3000, 5000])),
        Usage("slow", "R", "a.py:3", None, spread_of([2000]), Spread()),
    )
    heads, first, second = (line.split("  ") for line in usage_table(usages, "class").splitlines())

    assert "wait total" in heads
    assert ["slow[R]", "2", "2", "8.0", "3.1", "5.0", "5.0", "10.0", "2.0", "8.0", "8.0"] == [
        cell.strip() for cell in first if cell.strip()
    ]
    assert "quick[W]" == second[0]
    assert usages_together(usages) == usages


def test_the_command_tells_by_what_it_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By key only if the run had noted it."""
    program, report = tmp_path / "prog.py", str(tmp_path / "out.json")
    program.write_text(PROGRAM, "utf-8")
    assert CLEAN == main(["run", "--by-key", "--json", report, str(program)])
    assert CLEAN == main(["stats", report, "--by", "key"])
    lines = capsys.readouterr().out.splitlines()
    assert ["a", "b"] == sorted(line.split()[-1] for line in lines[1:])
    assert CLEAN == main(["run", "--json", report, str(program)])

    assert USAGE == main(["stats", report, "--by", "key"])
    assert CLEAN == main(["stats", report, "--by", "class"])
    assert "account[W]" in capsys.readouterr().out
