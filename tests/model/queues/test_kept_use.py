"""What is kept of the use of queues and users over a restart."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest
from support.model.builders import START_NS, a_resource, an_ask_submission
from support.model.harness import Harness

from licorne.model.queues.use_order import KeptUse, mean_use
from licorne.model.resources.decayed_use import decayed_means
from licorne.model.values.messages import AllocationSubmission, NodeAction
from licorne.model.views.shown import use_to_keep

HOUR: Final = 3600
MEMORY: Final = "properties: {fair.half-life: 24h}"
LEAF: Final = "- name: leaf\n  properties: {application.sort.policy: users, fair.half-life: 24h}"
USER: Final = "bob"
TEN: Final = a_resource(memory=10)


def cluster(kept: KeptUse | None = None, queues: str = LEAF) -> Harness:
    """Return a cluster with an application, on whose node nothing is placed by itself."""
    h = Harness(queues, root=MEMORY, kept_use=kept)
    h.nodes("one", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    return h


def existing(key: str, at_hour: int | None) -> AllocationSubmission:
    """Return an allocation of ten that runs since some hour, as its tag says, or has no tag."""
    tags = {} if at_hour is None else {"licorne/start-time": str(START_NS // 10**9 + at_hour * HOUR)}
    return an_ask_submission(key, node_id="one", resource=TEN, tags=tags)


def means(h: Harness) -> tuple[float, float]:
    """Return the mean of the leaf, and that of the user in it."""
    leaf, now_ns = h.state.tree.find("root.leaf"), h.clock.now_ns()
    assert leaf is not None
    assert leaf.entries.users is not None
    (place,) = leaf.entries.users.places.values()
    return mean_use(leaf, now_ns)["memory"], place.mean(now_ns)["memory"]


def after_a_day() -> KeptUse:
    """Return what is kept of a cluster in which ten were in use for a day."""
    h = cluster()
    h.submit()
    h.partition.update_allocations([existing("k", 0)], [])
    h.advance(24 * HOUR)
    return h.partition.read(use_to_keep)


class Restart(NamedTuple):
    """What is known at a restart after 30 hours, and the mean at 48 hours."""

    with_file: bool
    with_tag: bool
    mean: float


RESTARTS: Final = {
    "with a file": Restart(with_file=True, with_tag=False, mean=7.5 - 10 * (2**-0.75 - 2**-1)),
    "with a file and the time of the start": Restart(with_file=True, with_tag=True, mean=7.5),
    "with the time of the start alone": Restart(with_file=False, with_tag=True, mean=7.5),
    "with neither": Restart(with_file=False, with_tag=False, mean=10 * (1 - 2**-0.75)),
}


@pytest.mark.parametrize("case", RESTARTS.values(), ids=RESTARTS)
def test_a_recovered_allocation_brings_its_past(case: Restart) -> None:
    """It counts since it started, or since what is kept was written down, whichever is later."""
    h = cluster(after_a_day() if case.with_file else None)
    h.advance(30 * HOUR)
    h.submit()
    h.partition.update_allocations([existing("k", 0 if case.with_tag else None)], [])
    h.advance(18 * HOUR)

    assert pytest.approx((case.mean, case.mean), abs=1e-9) == means(h)


def test_what_is_kept_is_the_mean_of_that_moment() -> None:
    """It has the queue and the user, and the mean of a day of ten is five."""
    kept = after_a_day()

    at_ns = START_NS + 24 * HOUR * 10**9
    assert at_ns == kept.at_ns
    by_path = {path: decayed_means(use, at_ns)["memory"] for path, use in kept.uses.items()}
    assert {"root.leaf": pytest.approx(5.0), f"root.leaf|{USER}": pytest.approx(5.0)} == by_path


def test_what_has_not_come_again_is_kept_on() -> None:
    """A second restart before any application has come loses nothing."""
    kept = after_a_day()
    h = cluster(kept)
    h.advance(48 * HOUR)
    again = h.partition.read(use_to_keep)

    assert kept.uses.keys() == again.uses.keys()
    assert [2.5, 2.5] == [round(decayed_means(use, again.at_ns)["memory"], 9) for use in again.uses.values()]


def test_without_a_half_life_nothing_is_kept() -> None:
    """What is in use now is no past."""
    h = Harness()
    h.nodes("one")
    h.submit()
    h.ask_and_run("k")

    assert KeptUse(h.clock.now_ns()) == h.partition.read(use_to_keep)


GUARANTEED: Final = LEAF + "\n  resources: {guaranteed: {memory: 10}}"


def test_what_started_first_takes_the_guarantee() -> None:
    """Of two that are recovered together the later one is above the guarantee, and counts since its start."""
    h = cluster(queues=GUARANTEED)
    h.advance(48 * HOUR)
    h.submit()
    h.partition.update_allocations([existing("later", 24), existing("first", 0)], [])

    assert pytest.approx((5.0, 5.0 + 7.5)) == means(h)
