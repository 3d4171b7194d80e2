"""The published case of preemption with a fence, step by step, with an RM that asks for victims again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest
from support.proxy.job_manager import JobManager

QUEUES: Final = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: sandbox
            resources:
              max: {memory: 1000Mi, vcore: 1000m}
            queues:
              - name: tenants
                properties:
                  preemption.policy: fence
                  preemption.delay: 10s
                queues:
                  - name: tenant-normal
                    properties: {priority.offset: "0"}
                    resources:
                      guaranteed: {memory: 300Mi, vcore: 300m}
                  - name: tenant-high
                    properties: {priority.offset: "1000"}
                    resources:
                      guaranteed: {memory: 300Mi, vcore: 300m}
                  - name: tenant-low
                    properties: {priority.offset: "-1000"}
              - name: system
                queues:
                  - name: system-low
                    properties: {priority.offset: "-9999"}
"""
MEBI: Final = 2**20
TASK: Final = {"memory": 100 * MEBI, "vcore": 100}
NODE: Final = {"memory": 8000 * MEBI, "vcore": 8000}
TENANTS: Final = "root.sandbox.tenants"
TWO_MINUTES: Final = 120


def five_each(manager: JobManager) -> None:
    manager.start("system-low", "root.sandbox.system.system-low", 5, size=TASK)
    manager.start("low", f"{TENANTS}.tenant-low", 5, size=TASK)


def normal_comes(manager: JobManager) -> None:
    manager.start("normal", f"{TENANTS}.tenant-normal", 10, size=TASK)


def high_comes(manager: JobManager) -> None:
    manager.start("high", f"{TENANTS}.tenant-high", 10, size=TASK)


def urgent_comes(manager: JobManager) -> None:
    manager.start("urgent", f"{TENANTS}.tenant-normal", 10, size=TASK, priority=9999)


STEPS: Final[list[tuple[str, Callable[[JobManager], None], dict[str, int], dict[str, int]]]] = [
    ("five tasks in each of the low queues", five_each, {"system-low": 5, "low": 5}, {}),
    (
        "ten in tenant-normal get its guarantee, from inside the fence",
        normal_comes,
        {"system-low": 5, "low": 2, "normal": 3},
        {"low": 3},
    ),
    (
        "the job in tenant-low is deleted",
        lambda manager: manager.delete("low"),
        {"system-low": 5, "normal": 5},
        {},
    ),
    (
        "ten in tenant-high take what is above the guarantee of tenant-normal",
        high_comes,
        {"system-low": 5, "normal": 3, "high": 2},
        {"normal": 2},
    ),
    (
        "the job in tenant-normal is deleted",
        lambda manager: manager.delete("normal"),
        {"system-low": 5, "high": 5},
        {},
    ),
    (
        "ten of high priority in tenant-normal leave tenant-high its guarantee",
        urgent_comes,
        {"system-low": 5, "high": 3, "urgent": 2},
        {"high": 2},
    ),
]


@pytest.fixture
def manager() -> Iterator[JobManager]:
    manager = JobManager(QUEUES, NODE)
    with manager.scheduler:
        yield manager


@pytest.mark.parametrize("count", range(1, len(STEPS) + 1), ids=[step[0] for step in STEPS])
def test_the_published_case_comes_out_as_published(manager: JobManager, count: int) -> None:
    """After each step, within two minutes, exactly the published tasks run, and no others were preempted."""
    for _, act, _, _ in STEPS[: count - 1]:
        act(manager)
        manager.wait(TWO_MINUTES)
    manager.preempted.clear()
    _, act, running, preempted = STEPS[count - 1]
    act(manager)
    manager.wait(TWO_MINUTES)

    assert dict(sorted(running.items())) == manager.running()
    assert preempted == dict(manager.preempted)


def test_nothing_is_preempted_before_the_delay(manager: JobManager) -> None:
    """The asks of tenant-normal wait ten seconds for room that comes by itself."""
    five_each(manager)
    manager.wait(1)
    normal_comes(manager)
    manager.wait(9)

    assert not manager.preempted


def test_the_published_case_does_not_cycle(manager: JobManager) -> None:
    """Victims are asked for again and again, and preemption has ended: asks do not take turns."""
    for _, act, _, _ in STEPS:
        act(manager)
        manager.wait(TWO_MINUTES)
    before = manager.running()
    manager.preempted.clear()
    manager.wait(TWO_MINUTES)

    assert before == manager.running()
    assert not manager.preempted
    (partition,) = manager.scheduler._cluster.partitions()
    assert partition._state.preemptions.loops == 0
