"""How even the decayed use of queues is, in the figures of a simulation."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest
from support.proxy.fake_core import FakeCore
from support.proxy.figure_runs import simulated_figures
from support.proxy.simulation_builders import SECOND, a_task, an_application

from licorne import ResourceManager
from licorne.proxy.play.simulation.core import SchedulerCore
from licorne.proxy.play.simulation.reporting.figures import RunFigures
from licorne.proxy.play.simulation.reporting.report_files import to_csv, to_json
from licorne.proxy.play.simulation.reporting.run_series import (
    DecayedSeries,
    FairTerms,
    QueueBounds,
    WeighedQueue,
    decayed_fairness,
    jain_permille,
)

DAY: Final = 86_400 * SECOND


def test_the_index_is_that_of_jain() -> None:
    """Of the shares that all have; it knows nothing where none has anything."""
    assert (1000, 500, 900, None) == tuple(map(jain_permille, ([2.0, 2.0], [3.0, 0.0], [1.0, 2.0], [0.0])))


class Row(NamedTuple):
    """The use of two queues on each of two days, the weight of the first, and the index after each day."""

    first: tuple[int, int]
    second: tuple[int, int]
    weight: int
    values: tuple[int | None, int | None]
    guaranteed: int = 0
    counts_all: bool = False


ROWS: Final = {
    "equal use": Row((40, 40), (40, 40), 1, (1000, 1000)),
    "by weight": Row((40, 40), (20, 20), 2, (1000, 1000)),
    # After the second day the first has 40 / 4 and the second 40 / 2: (10 + 20)² / (2 * (100 + 400)).
    "what is past counts half": Row((40, 0), (0, 40), 1, (500, 900)),
    "what is guaranteed does not count": Row((60, 60), (20, 20), 1, (1000, 1000), guaranteed=40),
    # 60 / 2 and 20 / 2: (30 + 10)² / (2 * (900 + 100)).
    "unless all counts": Row((60, 60), (20, 20), 1, (800, 800), guaranteed=40, counts_all=True),
    "nothing is in use": Row((0, 0), (0, 0), 1, (None, None)),
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS)
def test_the_index_is_that_of_the_means_by_weight(case: Row) -> None:
    """Of two queues that want something all the time, with a half-life of a day."""
    wants = {"vcore": (1, 1)}
    queues = {
        "root": WeighedQueue(weight=1, guaranteed={}, used={}, pending={}),
        "root.a": WeighedQueue(
            weight=case.weight,
            guaranteed={"vcore": case.guaranteed},
            used={"vcore": case.first},
            pending=wants,
        ),
        "root.b": WeighedQueue(weight=1, guaranteed={}, used={"vcore": case.second}, pending=wants),
    }
    terms = {"root": FairTerms(half_life_ns=DAY, counts_all=case.counts_all)}
    found = list(decayed_fairness(queues, terms, {"vcore": (100, 100)}, (0, DAY, 2 * DAY)))

    assert [DecayedSeries("root", DAY, case.values)] == found


def test_a_queue_that_wants_nothing_is_left_out() -> None:
    """Its past does not make the others uneven."""
    queues = {
        "root": WeighedQueue(weight=1, guaranteed={}, used={}, pending={}),
        "root.a": WeighedQueue(weight=1, guaranteed={}, used={"vcore": (40, 0)}, pending={}),
        "root.b": WeighedQueue(weight=1, guaranteed={}, used={"vcore": (40, 40)}, pending={}),
    }
    (series,) = decayed_fairness(
        queues, {"root": FairTerms(half_life_ns=DAY)}, {"vcore": (100, 100)}, (0, DAY, 2 * DAY)
    )

    assert (1000, 1000) == series.values


def figures(terms: FairTerms) -> RunFigures:
    """Ten cores: `a` has all for two seconds, then `b` has."""
    limits = {"root": QueueBounds({}, {}, terms), "root.a": QueueBounds({}, {})}
    return simulated_figures(
        FakeCore(limits=limits),
        an_application(a_task("t1", cores=10, duration=2), name="a", queue="root.a"),
        an_application(a_task("t2", cores=10, duration=2), name="b", queue="root.b"),
    )


def test_figures_have_the_index_of_each_parent_with_a_half_life() -> None:
    """In JSON and in CSV: at first one has all, then the other comes nearer."""
    (decayed,) = figures(FairTerms(half_life_ns=2 * SECOND)).decayed_fairness

    assert ("root", 2 * SECOND, (500, 500)) == (decayed.parent, decayed.half_life_ns, decayed.index[:2])
    assert None is not decayed.index[-1]
    written = figures(FairTerms(half_life_ns=2 * SECOND))
    assert written == RunFigures.model_validate_json(to_json(written))
    assert "decayed_fairness_permille,root,,0," in to_csv(written)


def test_figures_without_a_half_life_are_as_ever() -> None:
    """There is no such key, and no such row."""
    written = figures(FairTerms())

    assert "decayed" not in to_json(written) + to_csv(written)


def test_the_terms_are_those_of_the_configuration() -> None:
    """A half-life of a leaf is of its users, and not of queues."""
    text = """
    partitions:
    - name: default
      queues:
      - name: root
        properties: {fair.half-life: 1d, fair.count: all}
        queues:
        - {name: leaf, properties: {fair.weight: "3"}}
    """
    core = SchedulerCore("direct")
    try:
        core.scheduler.register("rm", ResourceManager(), configuration=text)
        bounds = core.queue_bounds()
    finally:
        core.close()

    assert FairTerms(DAY, counts_all=True) == bounds["root"].fair
    assert FairTerms(None, counts_all=True, weight=3) == bounds["root.leaf"].fair
