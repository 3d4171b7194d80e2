"""The decisions of a simulation are written down in their order."""

from __future__ import annotations

from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import a_task, a_workload, an_application, simulated

from licorne.proxy.play.simulation.accounts import Account, Owner
from licorne.proxy.play.simulation.record import AskEntry, Decisions, SimulationRecord


def test_what_a_simulation_decides_is_written_with_its_node() -> None:
    """In the order of the decisions: the second ask waits for the end of the first."""
    decisions = Decisions()
    work = a_workload(
        an_application(a_task("t1", cores=6, duration=100), name="a", queue="root.a"),
        an_application(a_task("t2", cores=8, at=1), name="b", queue="root.b", user="v", at=1),
    )

    simulated(work, lambda _: FakeCore(), decisions=decisions)

    assert [
        (0, "placed", "t1", "n1", "root.a"),
        (100 * 10**9, "placed", "t2", "n1", "root.b"),
    ] == [(one.at_ns, one.kind.value, one.ask, one.node_id, one.queue) for one in decisions]


def test_preemptions_and_rejections_are_decisions() -> None:
    """A preemption has the node that is left, a rejection its reason."""
    decisions = Decisions()
    record = SimulationRecord(decisions=decisions)
    entry = AskEntry(
        account=Account(Owner(queue="root.q", user="u")),
        application_id="app",
        resources={"vcore": 1},
        asked_at_ns=0,
    )
    for key in ("x", "y"):
        record.asked(key, entry, 0)

    record.placed("x", 1, node_id="n1")
    record.preempted("x", 2)
    record.rejected("y", 3, "too large")

    assert [
        (1, "placed", "x", "n1", ""),
        (2, "preempted", "x", "n1", ""),
        (3, "rejected", "y", "", "too large"),
    ] == [(one.at_ns, one.kind.value, one.ask, one.node_id, one.reason) for one in decisions]
