"""The corpus: every bug is found at its rung, every safe pattern left alone and explained, every source has its case."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import counting
import pytest
from counting import ALL_BUGS, is_found, is_left_alone
from guarded_patterns import GUARDED, both_ways
from safe_patterns import SAFE
from sources import ABSENT, BUGS, ELSEWHERE, FALSE_ALARMS, HISTORY
from support.lockcheck.lock_corpus import Bug, Cluster, Safe, look, nest

from licorne.lockcheck import Kind, Lock, RLock, Rung, blocking, session
from licorne.lockcheck.findings.findings import scenario, suggestion

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("bug", ALL_BUGS, ids=lambda bug: bug.name)
def test_a_bug_is_found_at_its_rung(bug: Bug) -> None:
    """One run that does not deadlock is enough."""
    assert is_found(bug), [str(finding) for finding in look(bug.run, bug.order)[1]]


@pytest.mark.parametrize("case", SAFE, ids=lambda case: case.name)
def test_a_safe_pattern_is_not_reported_and_is_explained(case: Safe) -> None:
    """Nothing at R0 or from R2 on; where a path closes, the R1 says why it is safe."""
    assert is_left_alone(case), [(str(one), one.why) for one in look(case.run, case.order)[1]]


@pytest.mark.parametrize(
    "case", [*(bug for bug in ALL_BUGS if bug.rung is Rung.R2), *GUARDED], ids=lambda case: case.name
)
def test_every_cycle_is_reported_with_all_that_a_person_needs(case: Bug | Safe) -> None:
    """Both stacks of each step with their source, who, all that was held, how it stands still, what to reverse."""
    opened, findings = look(case.run, case.order)
    text = opened.report_text()

    assert findings
    for finding in findings:
        for edge in finding.edges:
            stacks = [edge.want_stack, *([edge.hold_stack] if edge.held is not None else [])]
            assert all(stack and stack[0].source for stack in stacks)
            assert edge.execution
            assert edge.held is None or edge.held in edge.all_held
        assert scenario(finding)
        assert suggestion(finding, opened.summary().sites) is not None
        assert finding.why
        assert finding.fingerprint in text


def test_the_count_is_that_of_the_issue() -> None:
    """At least sixty bugs in one thread, at least thirty patterns that R1 explains."""
    count = counting.count()

    assert count.found == count.bugs
    assert count.alone >= 60
    assert count.left == count.safe
    assert count.explained >= 30
    assert f"bugs: {count.bugs}/{count.bugs} found" in count.text()
    assert count.bugs < len(ALL_BUGS)
    page = (ROOT / "docs" / "lockcheck.md").read_text("utf-8")
    assert f"runs {count.bugs} known bugs" in page
    assert f"{count.safe} patterns that only look like bugs" in page


def test_every_source_has_a_case_or_a_reason_and_every_case_names_known_sources() -> None:
    """And not both; names of cases are used once."""
    bugs = {source for bug in ALL_BUGS for source in bug.sources}
    named = bugs | {source for case in SAFE for source in case.sources} | set(ELSEWHERE)
    wanted = {*HISTORY, *BUGS, *FALSE_ALARMS}

    assert wanted == named | set(ABSENT)
    assert not named & set(ABSENT)
    assert len(wanted) == len((*HISTORY, *BUGS, *FALSE_ALARMS))
    names = [*(bug.name for bug in ALL_BUGS), *(case.name for case in SAFE)]
    assert len(names) == len(set(names))


def test_the_rows_of_history_are_those_of_the_reference() -> None:
    """Of all rows those with a class that a checker of locks should catch; the ids are copied from there."""
    rows = "1 2 4 6 7 8 9 14 16 17 18 19 21 23 24 26 35 37 39 40 42 43 44 45 46 47 51 55 58 59"
    found = [re.fullmatch(r"19\.(\d+) [A-Z]+", one)[1] for one in HISTORY]  # type: ignore[index]

    assert rows == " ".join(dict.fromkeys(found))


@pytest.mark.parametrize("test", ELSEWHERE.values())
def test_a_case_that_is_a_test_of_its_own_exists(test: str) -> None:
    """Under its name, in its file."""
    file, _, name = test.partition("::")

    assert f"def {name}(" in (ROOT / file).read_text("utf-8")


def test_a_bug_that_is_not_found_and_a_pattern_that_is_reported_are_told() -> None:
    """A count that cannot fail proves nothing."""
    both = both_ways("root[W]")
    bug = Bug("guarded", both, Kind.CYCLE, rung=Rung.R2)
    case = Safe("unguarded", both_ways(), "guarded by")

    assert not is_found(bug)
    assert not is_left_alone(case)
    assert not is_left_alone(Safe("guarded otherwise", both, "only readers meet"))


def test_a_lock_held_when_its_thread_ends_is_found_when_it_ends() -> None:
    """With real threads too: nobody can release it any more."""
    with session(on={Rung.R0: "record"}) as opened:
        thread = threading.Thread(target=Lock("forgotten").acquire, name="forgetful")
        thread.start()
        thread.join()

    (finding,) = opened.findings
    assert (Kind.LEAK, "forgetful") == (finding.kind, finding.edges[0].execution)


def test_a_session_may_allow_a_class_to_block() -> None:
    """The lock of the RM's link is held while the RM is called: that is what it is for."""
    with session(blocking={"link": ["callback"]}) as opened, RLock("link"), blocking("callback"):
        pass

    assert () == opened.findings


def test_a_guarded_path_is_found_again_at_r2_when_somebody_takes_it_without_the_gate() -> None:
    """The finding moves up the ladder."""

    def run(c: Cluster) -> None:
        both_ways("root[W]")(c)
        nest("three", c.node.write(), c.application.write())

    _, findings = look(run, None)

    assert [Rung.R2] == [finding.rung for finding in findings]
