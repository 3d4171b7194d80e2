from __future__ import annotations

import pytest
from support.proxy.fake_core import FakeCore
from support.proxy.figure_runs import figures_of, simulated_figures
from support.proxy.simulation_builders import SECOND, a_node, a_task, a_workload, an_application

from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.play.simulation.accounts import Owner
from licorne.proxy.play.simulation.core import SchedulerCore
from licorne.proxy.play.simulation.driver import Driver, NoProgress
from licorne.proxy.play.simulation.record import AskEntry, SimulationRecord
from licorne.proxy.play.simulation.reporting.figures import RunFigures
from licorne.proxy.play.simulation.reporting.run_series import QueueBounds, RunSeries
from licorne.proxy.play.simulation.simulated_rm import SimulatedRM
from licorne.proxy.si import si_pb2 as si

_QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: sure, resources: {guaranteed: {vcore: 6m}}}
          - {name: rest, resources: {max: {vcore: 10m}}}
"""


def _two_queues() -> RunFigures:
    """Ten cores. `a` takes all for 4 s; `b` asks after 2 s for 5, and runs from second 4 to 8."""
    core = FakeCore(limits={"root.x.b": QueueBounds({"vcore": 5}, {"vcore": 8})})
    return simulated_figures(
        core,
        an_application(a_task("t1", cores=10, duration=4), name="a", queue="root.a"),
        an_application(a_task("t2", cores=5, at=2, duration=4), name="b", queue="root.x.b", at=2),
    )


def test_use_and_need_are_means_of_each_interval() -> None:
    """Computed by hand; the queues above have the sum of those below them."""
    figures = _two_queues()
    by_name = {queue.queue: queue for queue in figures.queues}

    assert (8 * SECOND, SECOND) == (figures.end_ns, figures.interval_ns)
    assert ["root", "root.a", "root.x", "root.x.b"] == list(by_name)
    assert (10, 10, 10, 10, 0, 0, 0, 0) == by_name["root.a"].used["vcore"]
    assert (0, 0, 5, 5, 0, 0, 0, 0) == by_name["root.x.b"].pending["vcore"]
    assert (10, 10, 10, 10, 5, 5, 5, 5) == by_name["root"].used["vcore"] == figures.total.used["vcore"]
    assert by_name["root.x"].pending == by_name["root.x.b"].pending == by_name["root"].pending
    assert ({"vcore": 5}, {"vcore": 8}) == (by_name["root.x.b"].guaranteed, by_name["root.x.b"].maximum)
    assert (10,) * 8 == figures.cluster_capacity["vcore"]


def test_fairness_falls_while_a_queue_waits_for_what_another_has() -> None:
    """In seconds 2 and 3 `a` has 10 of its 5 and `b` has 0 of its 5: (2 + 0)² / (2 * 4)."""
    figures = _two_queues()

    assert (1000, 1000, 500, 500, 1000, 1000, 1000, 1000) == figures.fairness
    assert 875 == figures.fairness_mean


def test_waits_are_ranks_and_classes() -> None:
    """One task waited two seconds, one did not."""
    waits = _two_queues().total.waits

    assert waits is not None
    assert (2, 0, 2 * SECOND, 2 * SECOND) == (waits.count, waits.p50_ns, waits.p90_ns, waits.max_ns)
    assert (1, 0, 1, 0, 0, 0, 0, 0, 0, 0) == waits.classes


def test_the_slowdown_is_bounded_and_the_makespan_ends_with_the_last_completion() -> None:
    """The second task waits 20 s and runs 10; the third waits 30 s and runs 1, which counts as 10."""
    figures = simulated_figures(
        FakeCore(),
        an_application(a_task("t1", cores=10, duration=20), name="a", queue="root.a", user="ada"),
        an_application(a_task("t2", cores=10, duration=10), name="b", queue="root.b", user="bob"),
        an_application(a_task("t3", cores=10, duration=1), name="c", queue="root.b", user="bob"),
    )
    slowdown = figures.total.slowdown

    assert 31 * SECOND == figures.makespan_ns
    assert slowdown is not None
    assert (3, 2366, 3000, 3100) == (slowdown.count, slowdown.mean, slowdown.p50, slowdown.max)
    assert ["ada", "bob"] == [user.user for user in figures.users]
    assert [1000, 3050] == [user.slowdown.mean for user in figures.users if user.slowdown is not None]


def test_the_packing_shows_full_and_empty_nodes() -> None:
    """One node of two is full for 4 s; then the other is half full for 4 s."""
    figures = simulated_figures(
        FakeCore(),
        an_application(a_task("t1", cores=10, duration=4), a_task("t2", cores=5, at=4, duration=4)),
        nodes=(a_node("n1"), a_node("n2", vcore=20)),
    )
    by_class = dict(zip(figures.packing.classes, figures.packing.by_class, strict=True))

    assert (500, 500, 500, 500, 500, 500, 500, 500) == by_class["empty"]
    assert (500, 500, 500, 500, 0, 0, 0, 0) == by_class["90-100 %"]
    assert (0, 0, 0, 0, 500, 500, 500, 500) == by_class["40-50 %"]
    assert (0, 0, 0, 0, 200, 200, 200, 200) == figures.packing.fragmentation["vcore"]


def test_a_long_time_in_which_nothing_waits_or_runs_has_figures() -> None:
    """All work is rejected at once, the last of it after hours: intervals reach that end."""
    core = FakeCore(refused_queues={"root.q"})
    late = an_application(a_task("late", at=9_000), name="b", at=9_000)
    figures = simulated_figures(core, an_application(a_task()), late)

    assert (9_000 * SECOND, 64 * SECOND) == (figures.end_ns, figures.interval_ns)
    assert [None] * 141 == list(figures.fairness)


def test_a_placeholder_uses_but_does_not_wait() -> None:
    """Its task does."""
    record = SimulationRecord(RunSeries())
    account = record.accounts.opened(Owner(queue="root.q", user="u"))
    for key, is_placeholder in (("ph", True), ("t", False)):
        entry = AskEntry(
            account=account,
            application_id="a",
            resources={"vcore": 2},
            asked_at_ns=0,
            is_placeholder=is_placeholder,
        )
        record.asked(key, entry, 0)
    record.placed("ph", SECOND, node_id="n")
    record.stopped("ph", 2 * SECOND)
    record.placed("t", 3 * SECOND, node_id="n")
    record.resized("t", {"vcore": 7}, 4 * SECOND)
    record.completed("t", 5 * SECOND)

    total = figures_of(record).total

    assert ((2, 2, 2, 0, 0), (0, 2, 0, 2, 7)) == (total.pending["vcore"], total.used["vcore"])


@pytest.mark.parametrize(
    ("message", "reason", "for_ask", "for_queue"),
    [
        ("preempting allocations to free up resources to run ask: w", "guarantee", "w", "root.v"),
        (
            "preempting allocations to free up resources to run daemon set ask: w",
            "required node",
            "w",
            "root.v",
        ),
        (
            "preempting allocations to enforce new max quota for queue : root.q",
            "lowered maximum",
            "",
            "root.q",
        ),
        ("because", "because", "", ""),
        ("", "no reason was given", "", ""),
    ],
)
def test_a_preemption_has_its_reason_and_whom_it_was_for(
    message: str, reason: str, for_ask: str, for_queue: str
) -> None:
    """The scheduler says it in its message."""
    record = SimulationRecord(RunSeries())
    for queue, key in (("root.q", "k"), ("root.v", "w")):
        account = record.accounts.opened(Owner(queue=queue, user="u"))
        entry = AskEntry(account=account, application_id=f"app-{key}", resources={}, asked_at_ns=0)
        record.asked(key, entry, 0)
    record.placed("k", 1, node_id="n")
    record.given_up(record.preempted("k", 5, message=message))

    preemptions = figures_of(record).preemptions
    (listed,), (group,) = preemptions.listed, preemptions.groups

    assert (1, 1) == (preemptions.count, group.count)
    assert ("root.q", for_queue, reason) == (group.queue, group.for_queue, group.reason)
    assert (5, "k", "app-k", "root.q", "u") == (
        listed.at_ns,
        listed.allocation,
        listed.application,
        listed.queue,
        listed.user,
    )
    assert (for_ask, "app-w" if for_ask else "", for_queue) == (
        listed.for_ask,
        listed.for_application,
        listed.for_queue,
    )


def test_of_very_many_preemptions_only_the_first_are_listed() -> None:
    """All are counted."""
    record = SimulationRecord(RunSeries())
    account = record.accounts.opened(Owner(queue="root.q", user="u"))
    for at in range(600):
        entry = AskEntry(account=account, application_id="a", resources={}, asked_at_ns=0)
        record.asked(f"k{at}", entry, at)
        record.placed(f"k{at}", at, node_id="n")
        record.given_up(record.preempted(f"k{at}", at))

    preemptions = figures_of(record).preemptions

    assert (600, 500) == (preemptions.count, len(preemptions.listed))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_scheduler_gives_limits_nodes_and_reasons(engine: EngineName) -> None:
    """`rest` fills the node; `sure` is guaranteed six and takes four back. All engines give the same."""
    series = RunSeries()
    record = SimulationRecord(series)
    workload = a_workload(
        an_application(
            *[a_task(f"r{at}", cores=2, duration=600) for at in range(5)], name="r", queue="root.rest"
        ),
        an_application(
            *[a_task(f"s{at}", cores=2, duration=60, at=60) for at in range(2)],
            name="s",
            queue="root.sure",
            at=60,
        ),
    )
    core = SchedulerCore(engine)
    try:
        traffic = SimulatedRM(workload, core, record, _QUEUES)
        Driver(core, traffic, record, progress=NoProgress(), stopwatch=lambda: 0.0).run()
    finally:
        core.close()
    figures = figures_of(record)
    by_name = {queue.queue: queue for queue in figures.queues}

    assert [("root.rest", "root.sure", "guarantee", 2)] == [
        (group.queue, group.for_queue, group.reason, group.count) for group in figures.preemptions.groups
    ]
    assert ({"vcore": 6}, {}) == (by_name["root.sure"].guaranteed, by_name["root.sure"].maximum)
    assert ({}, {"vcore": 10}) == (by_name["root.rest"].guaranteed, by_name["root.rest"].maximum)
    assert {"vcore": 10} == by_name["root"].maximum
    assert 1000 == figures.packing.by_class[-1][0]


def test_the_figures_are_the_same_each_time() -> None:
    """Byte for byte."""
    assert _two_queues().model_dump_json() == _two_queues().model_dump_json()


def test_a_release_of_another_kind_is_no_preemption() -> None:
    """A task that times out is asked for again."""
    core = FakeCore()
    core.at(SECOND, lambda: core.want_back("t", si.TIMEOUT))
    figures = simulated_figures(core, an_application(a_task(duration=5)))

    assert 0 == figures.preemptions.count
