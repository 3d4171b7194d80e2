"""Walltimes that an RM sends, and queues that limit them or end what runs longer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from support.model.builders import START_NS, TEN, a_resource
from support.model.harness import Harness

from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationsReleased,
    NodeAction,
    RejectionCode,
    TerminationType,
)

ONE: Final = a_resource(memory=1)
ENDS: Final = "- {name: leaf, properties: {runtime.overrun: end, runtime.default: 60s, runtime.max: 1h}}"
EXTENDS: Final = "- {name: leaf, properties: {runtime.default: 60s, runtime.max: 1h}}"
OVER: Final = TerminationType.TIMEOUT


def with_walltime(text: str) -> dict[str, str]:
    """Return the tags of something with a walltime."""
    return {"walltime": text}


def running(queues: str = ENDS, *, tags: dict[str, str] | None = None) -> Harness:
    """Return a partition with a node of ten and an application."""
    h = Harness(queues)
    h.nodes("one")
    assert h.submit(tags=tags) is None
    return h


# -------------------------------------------------------------------------------- what is refused


REFUSED: Final[dict[str, tuple[str, str]]] = {
    "a text that is no duration": ("tomorrow", "is 'tomorrow': it must be a duration above zero, as 90m is"),
    "a number without a unit": ("90", "is '90': it must be a duration above zero, as 90m is"),
    "zero": ("0s", "is '0s': it must be a duration above zero, as 90m is"),
    "less than zero": ("-5m", "is '-5m': it must be a duration above zero, as 90m is"),
    "more than there are nanoseconds": (
        "9999999h",
        "is '9999999h': it must be a duration above zero, as 90m is",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_walltime_that_is_no_duration_is_refused(case: tuple[str, str]) -> None:
    """Of an application as of an ask; the message names the tag, its owner and the text."""
    text, why = case
    h = running("- name: leaf")
    application = h.submit("other", tags=with_walltime(text))
    asks = h.ask("k", tags=with_walltime(text))

    assert application is not None
    assert (f"the tag walltime of application other {why}", RejectionCode.INVALID) == (
        application.reason,
        application.code,
    )
    assert [(f"the tag walltime of ask k of application app {why}", RejectionCode.INVALID)] == [
        (one.reason, one.code) for one in asks
    ]
    assert [] == list(h.application().asks.waiting())


def test_a_walltime_above_the_maximum_of_its_queue_is_refused() -> None:
    """The message names both, the queue, and the line that says so; as long as the maximum is allowed."""
    h = running(tags=with_walltime("1h"))
    application = h.submit("other", tags=with_walltime("61m"))
    asks = h.ask("fits", tags=with_walltime("1h")) + h.ask("k", tags=with_walltime("1h0m1s"))
    place = "runtime.max 1h0m0s of queue root.leaf (line 8 of the configuration)"

    assert application is not None
    assert f"the walltime 1h1m0s of application other is longer than {place}" == application.reason
    assert [(f"the walltime 1h0m1s of ask k of application app is longer than {place}", "k")] == [
        (one.reason, one.allocation_key) for one in asks
    ]
    assert {RejectionCode.OVER_MAXIMUM} == {application.code, asks[0].code}


def test_what_runs_already_is_not_refused_for_its_walltime() -> None:
    """An application whose creation is forced, an existing allocation, and an ask that is known."""
    h = running()
    h.ask("known", tags=with_walltime("30m"))
    forced = h.submit("forced", tags={**with_walltime("9h"), "application.create.force": "true"})
    known = h.ask("known", tags=with_walltime("9h"), resource=ONE)
    existing = h.ask("ran", node_id="one", tags=with_walltime("9h"), resource=ONE)

    assert (None, (), ()) == (forced, known, existing)


# ----------------------------------------------------------------------------------- what is ended


@dataclass(frozen=True, slots=True)
class Limited:
    """The tags of an application and of its ask, the properties of its queue, and when the ask ends."""

    ends: int
    properties: str = "runtime.overrun: end"
    application: dict[str, str] = field(default_factory=dict)
    ask: dict[str, str] = field(default_factory=dict)


LIMITED: Final[dict[str, Limited]] = {
    "its own walltime": Limited(10, ask=with_walltime("10s"), application=with_walltime("20s")),
    "that of its application": Limited(
        20, "runtime.overrun: end, runtime.default: 30s", with_walltime("20s")
    ),
    "the default of the queue": Limited(30, "runtime.overrun: end, runtime.default: 30s, runtime.max: 40s"),
    "the maximum where there is no default": Limited(40, "runtime.overrun: end, runtime.max: 40s"),
}


@pytest.mark.parametrize("case", LIMITED.values(), ids=LIMITED)
def test_work_ends_when_it_has_run_for(case: Limited) -> None:
    """The time runs from the placement; the RM is asked with TIMEOUT, and the key is free then."""
    h = running(f"- {{name: leaf, properties: {{{case.properties}}}}}", tags=case.application)
    h.ask("waits", "runs", resource=a_resource(memory=6), tags=case.ask)
    h.advance(7)
    h.run_until_idle()
    h.advance(case.ends - 1)
    before = h.releases
    h.advance(1)

    assert ([], [("waits", OVER)]) == (before, h.releases)
    assert (
        "releasing allocation that has run for its walltime"
        == h.heard(AllocationsReleased)[0].releases[0].message
    )
    h.settle()
    assert {"waits": "one", "runs": "one"} == h.placements
    h.advance(case.ends)
    assert ["waits", "runs"] == [key for key, _ in h.releases]
    h.confirm()
    assert not h.application().asks.knows("waits")


NOT_ENDED: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "a queue that says nothing": ("- name: leaf", with_walltime("10s")),
    "a queue that lets work run": (EXTENDS, with_walltime("10s")),
    "work without any walltime": ("- {name: leaf, properties: {runtime.overrun: end}}", {}),
}


@pytest.mark.parametrize("case", NOT_ENDED.values(), ids=NOT_ENDED)
def test_work_runs_on_in_or_as(case: tuple[str, dict[str, str]]) -> None:
    """However long that takes."""
    queues, tags = case
    h = running(queues)
    h.ask_and_run("k", tags=tags)
    h.advance(1_000_000)

    assert ({"k": "one"}, []) == (h.placements, h.releases)


def test_a_placeholder_is_no_work() -> None:
    """It waits for its member as long as it may, and the member has its time from when it is there."""
    h = Harness(ENDS)
    h.nodes("one")
    h.submit(placeholder_ask=TEN, tags=with_walltime("50s"))
    h.ask_and_run("holder", task_group_name="g", placeholder=True)
    h.advance(100)
    h.ask_and_run("member", task_group_name="g")
    h.confirm()
    h.advance(49)
    before = h.releases
    h.advance(1)

    assert [("holder", TerminationType.PLACEHOLDER_REPLACED)] == before
    assert [("member", OVER)] == h.releases[1:]


def test_a_limit_of_the_older_generation_counts_before_a_walltime() -> None:
    """With a limit it ends by that, and without one by its walltime."""
    h = running()
    h.ask("longer", limit_seconds=90, resource=ONE)
    h.ask("none", limit_seconds=0, resource=ONE)
    h.run_until_idle()
    h.advance(60)
    after_a_minute = h.releases
    h.advance(30)

    assert ([("none", OVER)], [("none", OVER), ("longer", OVER)]) == (after_a_minute, h.releases)


# --------------------------------------------------------------- another walltime of known work


@dataclass(frozen=True, slots=True)
class Changed:
    """What is sent again after 5 s about work of 10 s that runs, and when it ends by that, in seconds."""

    ends: int
    tags: dict[str, str] = field(default_factory=dict)
    node: str = ""
    application: dict[str, str] = field(default_factory=dict)


CHANGED: Final[dict[str, Changed]] = {
    "a longer walltime": Changed(30, with_walltime("30s")),
    "a shorter one": Changed(7, with_walltime("7s")),
    "one that is over": Changed(5, with_walltime("3s")),
    "a longer one of an allocation on its node": Changed(30, with_walltime("30s"), "one"),
    "no walltime": Changed(10),
    "the same": Changed(10, with_walltime("10s")),
    "one above the maximum of its queue": Changed(10, with_walltime("2h")),
    "a text that is no duration": Changed(10, with_walltime("tomorrow")),
    "that of its application, which counts less": Changed(10, application=with_walltime("30s")),
}


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED)
def test_running_work_ends_by_its_last_walltime(case: Changed) -> None:
    """It counts from the placement; what its queue does not take changes nothing, and is not rejected."""
    h = running(tags=with_walltime("20s"))
    h.ask_and_run("k", tags=with_walltime("10s"))
    h.advance(5)
    rejected = h.ask("k", tags=case.tags, node_id=case.node)
    if case.application:
        assert h.submit(tags=case.application) is None
    h.advance(0)
    for second in range(5, case.ends):
        assert not h.releases, f"ended after {second} s"
        h.advance(1)

    assert ((), [("k", OVER)]) == (rejected, h.releases)
    h.validate()


@pytest.mark.parametrize("tag", [{}, {"licorne/create-if-missing": "true"}], ids=["plain", "if missing"])
def test_an_application_that_is_sent_again_gives_its_work_another_walltime(tag: dict[str, str]) -> None:
    """All that has none of its own; it is accepted, and has the tag where it is saved."""
    h = running(tags=with_walltime("10s"))
    h.ask_and_run("k", resource=ONE)
    h.ask_and_run("own", resource=ONE, tags=with_walltime("15s"))
    rejection = h.submit(tags={**with_walltime("30s"), **tag})
    h.advance(29)
    before = [key for key, _ in h.releases]
    h.advance(1)

    assert (None, ["own"], ["own", "k"]) == (rejection, before, [key for key, _ in h.releases])
    saved = h.entry().submission
    assert saved is not None
    assert "30s" == saved.tags["walltime"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tags": with_walltime("2h")}, "the walltime 2h0m0s of application app is longer than runtime.max"),
        ({"tags": with_walltime("x")}, "the tag walltime of application app is 'x'"),
        ({"tags": with_walltime("10s")}, "adding application app to partition"),
        ({"tags": with_walltime("30s"), "user": "eve"}, "adding application app to partition"),
    ],
)
def test_an_application_keeps_its_walltime_if_it_is_rejected(options: dict[str, Any], why: str) -> None:
    """One that names no other walltime, or another user, is there already, as ever."""
    h = running(tags=with_walltime("10s"))
    rejection = h.submit(**options)

    assert rejection is not None
    assert why in rejection.reason
    assert with_walltime("10s") == h.entry().tags


def test_a_member_in_a_swap_has_its_last_walltime() -> None:
    """It is neither waiting nor placed then."""
    h = Harness(ENDS)
    h.nodes("one")
    h.submit(placeholder_ask=TEN)
    h.ask_and_run("holder", task_group_name="g", placeholder=True)
    h.ask_and_run("member", task_group_name="g", tags=with_walltime("50s"))
    h.ask("member", task_group_name="g", tags=with_walltime("80s"))
    h.confirm()
    h.advance(79)
    before = h.releases
    h.advance(1)

    assert [("holder", TerminationType.PLACEHOLDER_REPLACED)] == before
    assert [("member", OVER)] == h.releases[1:]


# ------------------------------------------------------------------------- reloads and recoveries


def test_a_reload_begins_and_stops_to_end_work() -> None:
    """It counts for what runs already, from when that was placed; limits of the RM's own terms stay."""
    h = running(EXTENDS)
    h.ask("own", resource=ONE, tags=with_walltime("200s"))
    h.ask("older", limit_seconds=300, resource=ONE)
    h.ask_and_run("default", resource=ONE)
    h.advance(100)
    h.reload(ENDS)
    h.advance(0)
    after_the_reload = h.releases
    h.reload(EXTENDS)
    h.advance(150)
    extended = h.releases
    h.reload(ENDS)
    h.advance(0)
    h.advance(50)

    assert [("default", OVER)] == after_the_reload == extended
    assert [("own", OVER), ("older", OVER)] == h.releases[1:]


def test_a_reload_changes_the_default_of_what_waits_and_runs() -> None:
    """The time of an allocation counts from its placement also then."""
    h = running()
    h.ask("runs", "waits", resource=TEN)
    h.run_until_idle()
    h.advance(30)
    h.reload("- {name: leaf, properties: {runtime.overrun: end, runtime.default: 100s}}")
    h.advance(69)
    before = h.releases
    h.advance(1)
    h.settle()
    h.advance(100)

    assert ([], [("runs", OVER), ("waits", OVER)]) == (before, h.releases)


def test_a_reload_that_is_undone_undoes_this_too() -> None:
    """Each of them applies what the queue says then."""
    h = running(EXTENDS)
    h.ask_and_run("k")
    savepoint = h.partition.reconfigure(Harness(ENDS).state.config)
    h.partition.restore(savepoint)
    h.advance(1000)

    assert [] == h.releases


def test_a_recovered_allocation_ends_by_the_time_that_it_started() -> None:
    """Its tag says when that was; without it, or in the future, its time begins with the recovery."""
    h = Harness(ENDS)
    h.nodes("one", action=NodeAction.CREATE_DRAIN)
    h.submit()
    h.advance(1000)
    now = (START_NS + 1000 * 10**9) // 10**9
    for key, started in (("ran", str(now - 40)), ("future", str(now + 500)), ("unknown", "x"), ("long", "5")):
        h.ask(key, node_id="one", resource=ONE, tags={"licorne/start-time": started})
    h.advance(0)
    at_once = h.releases
    h.advance(20)
    after = h.releases
    h.advance(40)

    assert [("long", OVER)] == at_once
    assert [("long", OVER), ("ran", OVER)] == after
    assert {"future", "unknown"} == {key for key, _ in h.releases[2:]}
    started_ns = {
        one.allocation.allocation_key: one.allocation.bound_at_ns for one in h.heard(AllocationPlaced)
    }
    assert ((now - 40) * 10**9, now * 10**9) == (started_ns["ran"], started_ns["future"])
