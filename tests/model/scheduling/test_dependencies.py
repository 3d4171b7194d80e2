"""Applications that wait for the end of others, or for their turn in an array."""

from __future__ import annotations

import random

import pytest
from support.model.builders import PARTITION, a_resource, an_application_submission, an_ask_submission
from support.model.harness import Harness
from support.proxy.counted_lines import lines_executed

from licorne.model.applications.effects import ApplicationState
from licorne.model.explanation.dry_run import dry_run_application
from licorne.model.explanation.explain import explain
from licorne.model.explanation.first_blockers import first_blockers
from licorne.model.scheduling.cycle import run_cycle
from licorne.model.state import dependencies
from licorne.model.state.partition_state import BrokenKind
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.dependencies import ApplicationOutcome
from licorne.model.values.messages import ApplicationRemoval
from licorne.proxy.base.process import is_compiled
from licorne.proxy.core.explanation.text import changes_of, what_blocks

SMALL = a_resource(memory=1)


def a_cluster(queues: str = "- name: leaf") -> Harness:
    """Return a partition with room for ten asks."""
    h = Harness(queues)
    h.nodes("n1", capacity=a_resource(memory=10))
    return h


def work(h: Harness, name: str, queue: str = "root.leaf", **tags: str) -> None:
    """Submit an application with one ask of its name, and run cycles."""
    assert h.submit(name, queue, tags=tags) is None
    h.ask(name, application_id=name, resource=SMALL)
    h.run_until_idle()


def end(h: Harness, name: str, outcome: ApplicationOutcome | None = None) -> None:
    """Have the RM remove an application, and run cycles."""
    h.partition.update_applications([], [ApplicationRemoval(name, PARTITION, outcome)])
    h._live = {entry for entry in h._live if entry[0] != name}
    h.validate()
    h.run_until_idle()


def placed(h: Harness) -> str:
    """Return the names of all that was placed, in order."""
    return " ".join(h.placements)


def blocker_text(h: Harness, name: str) -> str:
    """Return the one blocker of an application, and its change."""
    found = explain(h.state, name)
    assert found is not None
    (blocker,) = found.blockers
    (change,) = changes_of(blocker, found.time_ns)
    return f"{what_blocks(blocker, found.time_ns)} | {change}"


def test_an_application_waits_until_others_have_ended() -> None:
    h = a_cluster()
    for name in "ab":
        work(h, name)
    work(h, "c", after="a, b")
    assert placed(h) == "a b"
    assert blocker_text(h, "c") == (
        "application c: it waits for the end of others: a has not ended, b has not ended | a, b must end"
    )
    assert [found.text() for found in first_blockers(h.state, ["c"])] == ["after others"]

    end(h, "a")
    assert placed(h) == "a b"
    end(h, "b", ApplicationOutcome.FAILED)
    assert placed(h) == "a b c"


def test_an_application_that_completes_has_ended_when_it_is_completed() -> None:
    """Completing is not the end: more may be asked for meanwhile."""
    h = a_cluster()
    work(h, "a")
    work(h, "b", afterOk="a")
    h.release("a", application_id="a")
    h.run_until_idle()
    assert placed(h) == "a"

    h.wait(31)
    assert placed(h) == "a b"


@pytest.mark.parametrize(
    ("tag", "outcome", "starts"),
    [
        ("after", None, True),
        ("after", ApplicationOutcome.FAILED, True),
        ("afterOk", None, True),
        ("afterOk", ApplicationOutcome.OK, True),
        ("afterOk", ApplicationOutcome.FAILED, False),
        ("afterFailed", None, False),
        ("afterFailed", ApplicationOutcome.OK, False),
        ("afterFailed", ApplicationOutcome.FAILED, True),
    ],
)
@pytest.mark.parametrize("when", ["before", "after it has ended"])
def test_the_outcome_decides_and_none_counts_as_well(
    tag: str, outcome: ApplicationOutcome | None, *, starts: bool, when: str
) -> None:
    h = a_cluster()
    work(h, "a")
    if when == "before":
        work(h, "b", **{tag: "a"})
    end(h, "a", outcome)
    if when != "before":
        work(h, "b", **{tag: "a"})
    assert ("b" in h.placements) is starts
    if not starts:
        how = "failed, and it waits for it to end well"
        how = how if tag == "afterOk" else "well, and it waits for it to fail"
        assert blocker_text(h, "b") == (
            f"application b: it waits for the end of others: a has ended {how}: it can never start"
            " | it must be submitted again without a"
        )


def test_a_gang_that_fails_has_failed() -> None:
    h = a_cluster()
    h.submit("a", placeholder_ask=a_resource(memory=20), style="Hard", timeout_seconds=5)
    h.ask("p", application_id="a", resource=SMALL, placeholder=True, task_group_name="g")
    h.run_until_idle()
    work(h, "b", afterFailed="a")
    h.wait(6)
    h.settle()
    assert "b" in h.placements


def test_an_unknown_one_is_waited_for_and_its_end_may_be_told_after_a_restart() -> None:
    h = a_cluster()
    work(h, "b", afterOk="a")
    assert blocker_text(h, "b").endswith(": a is not known | a must end")
    end(h, "a")  # It was never here: without an outcome nothing is told.
    assert placed(h) == ""
    end(h, "a", ApplicationOutcome.OK)
    assert placed(h) == "b"


def test_one_that_comes_again_has_not_ended() -> None:
    h = a_cluster()
    work(h, "a")
    end(h, "a")
    work(h, "a")
    work(h, "b", after="a")
    assert "b" not in h.placements


def test_the_oldest_ends_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "ENDED_MAX", 2)
    h = a_cluster()
    for name in "abc":
        work(h, name)
        end(h, name)
    work(h, "old", after="a")
    work(h, "new", after="b,c")
    assert placed(h) == "a b c new"


def test_one_that_runs_already_waits_for_nothing() -> None:
    """After a restart of the scheduler its RM recovers it as it was."""
    h = a_cluster()
    h.submit("b", tags={"after": "a", "array": "x", "arrayLimit": "1"})
    h.ask("b1", application_id="b", resource=SMALL, node_id="n1")
    h.ask("b2", application_id="b", resource=SMALL)
    h.run_until_idle()
    assert placed(h) == "b1 b2"


def test_an_array_runs_as_many_as_its_limit_in_the_order_of_their_coming() -> None:
    h = a_cluster("- name: leaf\n- name: other")
    for number in range(6):
        work(h, f"e{number}", ("root.leaf", "root.other")[number % 2], array="x", arrayLimit="2")
    assert placed(h) == "e0 e1"
    assert blocker_text(h, "e4") == (
        "application e4: its array runs the maximum of applications: 2 of array x, which runs 2 at once; "
        "2 wait before it | one of array x must end, or a new one must name a higher arrayLimit"
    )
    assert [found.text() for found in first_blockers(h.state, ["e4"])] == ["array limit"]
    end(h, "e2")  # It waits, and gives its place up.
    end(h, "e0")
    assert placed(h) == "e0 e1 e3"
    end(h, "e1")
    end(h, "e3")
    assert placed(h) == "e0 e1 e3 e4 e5"


def test_the_newest_element_sets_the_limit() -> None:
    h = a_cluster()
    for number in range(4):
        work(h, f"e{number}", array="x", arrayLimit="1")
    work(h, "more", array="x", arrayLimit="3")
    assert placed(h) == "e0 e1 e2"
    work(h, "fewer", array="x", arrayLimit="1")
    end(h, "e0")
    end(h, "e1")
    assert placed(h) == "e0 e1 e2"
    end(h, "e2")
    assert placed(h) == "e0 e1 e2 e3"


def test_the_limit_that_an_element_names_holds_for_itself() -> None:
    h = a_cluster()
    work(h, "first", array="x", arrayLimit="3")
    work(h, "second", array="x", arrayLimit="1")

    assert placed(h) == "first"


def test_an_array_is_waited_for_as_a_whole() -> None:
    h = a_cluster()
    for name in ("e0", "e1"):
        work(h, name, array="x")
    work(h, "ok", afterOk="x")
    work(h, "any", after="x")
    work(h, "failed", afterFailed="x")
    end(h, "e0", ApplicationOutcome.FAILED)
    assert placed(h) == "e0 e1"
    end(h, "e1", ApplicationOutcome.OK)
    assert placed(h) == "e0 e1 any failed"


def test_an_element_that_waits_for_others_has_no_turn_yet() -> None:
    h = a_cluster()
    work(h, "a")
    work(h, "e0", array="x", arrayLimit="1", after="a")
    work(h, "e1", array="x", arrayLimit="1")
    work(h, "e2", array="x", arrayLimit="1")
    end(h, "a")
    assert placed(h) == "a e1"
    end(h, "e1")
    end(h, "e2")
    assert placed(h) == "a e1 e2 e0"


def test_those_that_run_after_a_restart_keep_their_turns() -> None:
    """The elements come in their order, and of these the last ones run."""
    h = a_cluster()
    for number in range(4):
        h.submit(f"e{number}", tags={"array": "x", "arrayLimit": "2"})
    for number in (2, 3):
        h.ask(f"r{number}", application_id=f"e{number}", resource=SMALL, node_id="n1")
    for number in (0, 1):
        h.ask(f"w{number}", application_id=f"e{number}", resource=SMALL)
    h.run_until_idle()
    assert placed(h) == "r2 r3"
    end(h, "e3")
    assert placed(h) == "r2 r3 w0"


REFUSED = [
    ({"after": "b"}, "application b would wait for itself: b after b"),
    ({"after": "a,,c"}, "the tag after is 'a,,c': it must be ids of applications, separated by commas"),
    ({"afterOk": ""}, "the tag afterOk is '': it must be ids of applications, separated by commas"),
    ({"afterOk": "a", "afterFailed": "a"}, "both name 'a', which cannot end both ways"),
    ({"after": ",".join(map(str, range(1001)))}, "its tags name 1,001 applications, more than 1,000"),
    ({"after": "a\x00"}, "a name in the tag after has control characters"),
    ({"arrayLimit": "2"}, "the tag arrayLimit needs array"),
    ({"array": ""}, "the tag array is empty"),
    ({"array": "x", "arrayLimit": "0"}, "the tag arrayLimit is '0': it must be a number from 1 to 1000000"),
    ({"array": "x", "arrayLimit": "-1"}, "the tag arrayLimit is '-1': it must be a number"),
    ({"array": "x", "arrayLimit": "%4"}, "the tag arrayLimit is '%4': it must be a number"),
    ({"array": "x", "after": "x"}, "application b would wait for itself: b after x after b"),
]


@pytest.mark.parametrize(("tags", "reason"), REFUSED)
def test_what_makes_no_sense_is_refused(tags: dict[str, str], reason: str) -> None:
    h = a_cluster()
    rejection = h.submit("b", tags=tags)
    assert rejection is not None
    assert reason in rejection.reason
    assert dry_run_application(h.state, an_application_submission("b2", tags=tags)).rejection == (
        ""
        if tags == {"after": "b"}
        else rejection.reason.replace("application b ", "application b2 ").replace(
            "b after x after b", "b2 after x after b2"
        )
    )


def test_a_cycle_is_refused_and_named() -> None:
    h = a_cluster()
    work(h, "b", after="c")
    work(h, "e", array="x", after="b")
    work(h, "d", after="x")
    rejection = h.submit("c", tags={"afterOk": "d"})
    assert rejection is not None
    assert (
        rejection.reason == "application c would wait for itself: c after d after x after e after b after c"
    )


def test_one_that_is_forced_has_run_before_and_is_never_refused_for_a_cycle() -> None:
    h = a_cluster()
    work(h, "b", after="a")
    assert h.submit("a", tags={"after": "b", "application.create.force": "true"}) is None
    assert h.submit("c", tags={"after": "", "application.create.force": "true"}) is None
    h.ask("a1", application_id="a", resource=SMALL, node_id="n1")
    h.run_until_idle()
    end(h, "a")
    assert placed(h) == "a1 b"


def test_a_dry_run_knows_what_a_new_one_would_wait_for() -> None:
    h = a_cluster()
    work(h, "a", array="x", arrayLimit="1")
    for tags, reason in (
        ({"after": "a"}, RefusalReason.DEPENDENCY),
        ({"array": "x"}, RefusalReason.ARRAY_LIMIT),
    ):
        submission = an_application_submission("b", tags=tags)
        run = dry_run_application(h.state, submission, an_ask_submission("b1", "b", resource=SMALL))
        assert [reason] == [blocker.reason for blocker in run.blockers]
        assert not run.node_id
    assert h.state.entries.keys() == {"a"}


def test_what_waits_is_in_no_order_and_is_not_visited() -> None:
    """Thousands that wait cost a cycle nothing, and the end of one wakes one."""
    h = a_cluster()
    work(h, "a")
    for number in range(50):
        before = "a" if not number else f"w{number - 1}"
        h.submit(f"w{number}", tags={"after": before})
        h.ask(f"w{number}", application_id=f"w{number}", resource=SMALL, priority=5)
    h.run_until_idle()
    leaf = h.state.tree.find("root.leaf")
    assert leaf is not None
    assert [*leaf.entries.waiting] == []
    assert [*leaf.entries.ranked(leaf)] == []
    end(h, "a")
    assert placed(h) == "a w0"


@pytest.mark.skipif(is_compiled(), reason="compiled code has no lines that could be counted")
def test_a_cycle_takes_as_long_however_many_wait() -> None:
    """And so does the end of one that nobody waits for; one that is waited for wakes those alone."""

    def cost(waiting: int) -> tuple[int, int]:
        h = a_cluster()
        work(h, "a")
        work(h, "b")
        for number in range(waiting):
            tags = {"after": "a"} if number % 2 else {"array": "x", "arrayLimit": "1"}
            h.partition.update_applications([an_application_submission(f"w{number}", tags=tags)], [])
            ask = an_ask_submission(f"w{number}", f"w{number}", resource=SMALL)
            h.partition.update_allocations([ask], [])
        h.run_until_idle()
        more = an_ask_submission("more", "b", resource=SMALL)

        def place() -> None:
            h.partition.update_allocations([more], [])
            run_cycle(h.state)
            run_cycle(h.state)

        removal = ApplicationRemoval("b", PARTITION)
        return lines_executed(place), lines_executed(lambda: h.partition.update_applications([], [removal]))

    cost(10)  # What is found once is known then.
    assert cost(10) == cost(1_000)


def test_a_reload_leaves_them_waiting() -> None:
    h = a_cluster()
    work(h, "a")
    work(h, "b", after="a")
    work(h, "e0", array="x", arrayLimit="1")
    work(h, "e1", array="x", arrayLimit="1")
    h.reload("- name: leaf\n  properties: {application.sort.policy: fair}")
    h.run_until_idle()
    assert placed(h) == "a e0"
    end(h, "a")
    end(h, "e0")
    assert placed(h) == "a e0 b e1"


def test_one_that_broke_ends_with_its_removal_and_has_failed() -> None:
    """Its work may still run until then; one that breaks while it waits is never woken."""
    h = a_cluster()
    work(h, "a")
    work(h, "b", afterFailed="a")
    work(h, "c", after="a", array="x", arrayLimit="1")
    work(h, "d", array="x", arrayLimit="1")
    for name in "acd":
        h.partition.quarantine(BrokenKind.APPLICATION, name, "a test")
    work(h, "e", array="x", arrayLimit="1")
    assert placed(h) == "a d"
    end(h, "a")
    assert placed(h) == "a d b"
    end(h, "c")
    end(h, "d", ApplicationOutcome.OK)
    assert placed(h) == "a d b e"


@pytest.mark.parametrize("policy", ["fifo", "fair"])
@pytest.mark.parametrize("seed", range(8))
def test_random_workloads_start_as_a_plain_model_says(seed: int, policy: str) -> None:
    """After each event those have started, and no others, that a model without indexes lets start."""
    rng = random.Random(seed)  # noqa: S311 - a test
    h = Harness(f"- name: leaf\n  properties: {{application.sort.policy: {policy}}}")
    h.nodes("n1", capacity=a_resource(memory=1000))
    plain = _Plain()
    for _ in range(60):
        name = rng.choice("abcdefghijkl")
        if name in plain.alive:
            outcome = rng.choice([None, ApplicationOutcome.OK, ApplicationOutcome.FAILED])
            plain.end(name, outcome or ApplicationOutcome.OK)
            end(h, name, outcome)
        else:
            tags = {rng.choice([*_WANTED]): rng.choice("abcdefghijkl")} if rng.random() < 0.6 else {}
            if rng.random() < 0.5:
                tags |= {"array": rng.choice("XY"), "arrayLimit": "2"}
            if h.submit(name, tags=tags) is not None:
                continue
            plain.add(name, tags)
            h.ask(name, application_id=name, resource=SMALL)
            h.run_until_idle()
        entries = h.state.entries.items()
        assert plain.running == {
            name for name, entry in entries if entry.facts.state is ApplicationState.RUNNING
        }


_WANTED = {"after": None, "afterOk": ApplicationOutcome.OK, "afterFailed": ApplicationOutcome.FAILED}


class _Plain:
    """The same rules without an index: after each event all is looked at."""

    def __init__(self) -> None:
        self.alive: dict[str, dict[str, str]] = {}
        self.running: set[str] = set()
        self._ready: list[str] = []
        self._ends: dict[str, ApplicationOutcome] = {}
        self._met: dict[str, bool | None] = {}

    def add(self, name: str, tags: dict[str, str]) -> None:
        """Add an application, and start what may start."""
        self.alive[name] = tags
        self._ends.pop(name, None)
        self._met[name] = None
        self._start()

    def end(self, name: str, outcome: ApplicationOutcome) -> None:
        """End an application, and start what may start."""
        del self.alive[name]
        self.running.discard(name)
        self._ready = [each for each in self._ready if each != name]
        self._ends[name] = outcome
        self._start()

    def _start(self) -> None:
        for name, tags in self.alive.items():
            if self._met[name] is None:
                found = next(((tag, tags[tag]) for tag in _WANTED if tag in tags), None)
                if found is None:
                    self._met[name] = True
                elif found[1] in self._ends:
                    self._met[name] = _WANTED[found[0]] in {None, self._ends[found[1]]}
            if self._met[name] and name not in self._ready:
                self._ready.append(name)
        for name in self._ready:
            array = self.alive[name].get("array")
            beside = [each for each in self.running if array and self.alive[each].get("array") == array]
            if len(beside) < 2:
                self.running.add(name)


@pytest.mark.parametrize("reservations", ["1", "all"])
def test_beside_a_promise_what_waits_is_promised_nothing(reservations: str) -> None:
    """It delays no job, and is planned when it waits for room alone."""
    root = f"properties: {{backfill.reservations: '{reservations}', runtime.default: 1h}}"
    h = Harness(root=root)
    h.nodes("n1", capacity=a_resource(memory=10))
    h.submit("a")
    h.ask("a", application_id="a", resource=a_resource(memory=9), tags={"walltime": "10s"})
    h.run_until_idle()
    h.submit("held", tags={"after": "other"})
    h.ask("held", application_id="held", resource=a_resource(memory=10), tags={"walltime": "10s"})
    h.submit("b")
    h.ask("b", application_id="b", resource=a_resource(memory=10), tags={"walltime": "10s"})
    h.submit("small")
    h.ask("small", application_id="small", resource=SMALL, tags={"walltime": "20s"})
    h.run_until_idle()
    assert placed(h) == "a"
    found = explain(h.state, "held")
    assert found is not None
    assert found.asks[0].planned_start is not None
    assert found.asks[0].planned_start.start_ns is None

    end(h, "other", ApplicationOutcome.OK)
    end(h, "b")
    end(h, "small")
    assert placed(h) == "a"
    promised = explain(h.state, "held")
    assert promised is not None
    assert promised.asks[0].planned_start is not None
    assert promised.asks[0].planned_start.start_ns is not None
    end(h, "a")
    assert placed(h) == "a held"
