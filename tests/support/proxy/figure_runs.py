"""Simulations with figures, for the tests of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.proxy.simulation_builders import a_workload, drive

from licorne.proxy.play.simulation.record import SimulationRecord
from licorne.proxy.play.simulation.reporting.figure_building import build_figures
from licorne.proxy.play.simulation.reporting.figures import RunFigures
from licorne.proxy.play.simulation.reporting.run_series import RunSeries
from licorne.proxy.play.simulation.simulated_rm import SimulatedRM
from licorne.proxy.play.simulation.workloads.workload import SimulatedApplication, SimulatedNode

if TYPE_CHECKING:
    from support.proxy.fake_core import FakeCore


def simulated_figures(
    core: FakeCore, *applications: SimulatedApplication, nodes: tuple[SimulatedNode, ...] = ()
) -> RunFigures:
    """Simulate applications and return the figures."""
    series = RunSeries()
    record = SimulationRecord(series)
    workload = a_workload(*applications, nodes=nodes)
    drive(core, SimulatedRM(workload, core, record, workload.default_configuration), record)
    return figures_of(record)


def figures_of(record: SimulationRecord) -> RunFigures:
    """Return the figures of a record whose simulation is over."""
    assert record.series is not None
    record.series.finish(record.waiting, record.running, record.last_change_ns)
    return build_figures(record, workload="test", engine="fake", is_interrupted=False)
