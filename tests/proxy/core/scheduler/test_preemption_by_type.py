"""Preemption judges the types that are asked for, or above a maximum, and no others: whole clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from support.proxy.job_manager import JobManager
from support.proxy.manager_requests import configuration_request

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

CONFIGURATION: Final = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 10s}
        queues:
"""
ON_LEAVES: Final = """
          - {name: a, resources: {guaranteed: {memory: 50, vcore: 5m}}}
          - {name: b, resources: {guaranteed: {memory: 50, vcore: 5m}}}
"""
ON_PARENTS: Final = """
          - name: p
            resources: {guaranteed: {memory: 50, vcore: 5m}}
            queues: [{name: a}]
          - name: q
            resources: {guaranteed: {memory: 50, vcore: 5m}}
            queues: [{name: b}]
"""
ON_BOTH: Final = """
          - name: p
            resources: {guaranteed: {memory: 50, vcore: 5m}}
            queues: [{name: a, resources: {guaranteed: {vcore: 5m}}}]
          - name: q
            resources: {guaranteed: {memory: 50, vcore: 5m}}
            queues: [{name: b, resources: {guaranteed: {memory: 40}}}]
"""
LIMITED: Final = """
          - {name: c, properties: {quota.preemption.delay: 10s}, resources: {%s}}
"""
NODE: Final = {"memory": 100, "vcore": 10}
ONE_EACH: Final = {"memory": 1, "vcore": 1}
MINUTE: Final = 60
SCENES: Final = pytest.mark.parametrize(
    ("queues", "a", "b"),
    [
        (ON_LEAVES, "root.a", "root.b"),
        (ON_PARENTS, "root.p.a", "root.q.b"),
        (ON_BOTH, "root.p.a", "root.q.b"),
    ],
    ids=["leaves", "parents", "both"],
)
ENGINES: Final = pytest.mark.parametrize("engine", ["direct", "actors"])


@ENGINES
@SCENES
def test_a_queue_below_one_guarantee_gives_what_it_has_above_the_other(
    queues: str, a: str, b: str, engine: EngineName
) -> None:
    """Ten tasks use ten of fifty guaranteed memory and ten of five vcores: five of them go, and no more."""
    manager = JobManager(CONFIGURATION + queues, NODE, engine=engine)
    with manager.scheduler:
        manager.start("b", b, 10, size=ONE_EACH)
        manager.wait(1)
        manager.start("a", a, 1, size=ONE_EACH)
        manager.wait(MINUTE)
        one = manager.running()
        manager.start("more", a, 9, size=ONE_EACH)
        manager.wait(5 * MINUTE)
        owed = manager.running()
        manager.preempted.clear()
        manager.wait(MINUTE)

        assert {"a": 1, "b": 9} == one
        assert {"a": 1, "b": 5, "more": 4} == owed
        assert not manager.preempted


@SCENES
def test_a_task_that_would_take_its_queue_below_its_guarantee_stays(queues: str, a: str, b: str) -> None:
    """Of nine vcores four are above the guarantee, and each task has five or more."""
    manager = JobManager(CONFIGURATION + queues, NODE)
    with manager.scheduler:
        manager.start("b", b, 1, size={"memory": 10, "vcore": 9})
        manager.wait(1)
        manager.start("a", a, 1, size={"memory": 10, "vcore": 2})
        manager.wait(MINUTE)

        assert {"b": 1} == manager.running()
        assert not manager.preempted


def limited(resources: str) -> str:
    """Return a configuration with one leaf whose maximum is enforced ten seconds after it is lowered."""
    enforced = "    preemption: {quotapreemptionenabled: true}\n    queues:"
    return CONFIGURATION.replace("    queues:", enforced, 1) + LIMITED % resources


@ENGINES
def test_a_lowered_maximum_is_enforced_whatever_is_guaranteed_of_another_type(engine: EngineName) -> None:
    """Ten tasks use ten of fifty guaranteed memory, and four vcores more than their queue may from now on."""
    before, after = (
        limited(f"guaranteed: {{memory: 50}}, max: {{memory: 100, vcore: {vcore}}}")
        for vcore in ("10m", "6m")
    )
    manager = JobManager(before, NODE, engine=engine)
    with manager.scheduler as scheduler:
        manager.start("c", "root.c", 10, size=ONE_EACH)
        manager.wait(1)
        scheduler.update_configuration(configuration_request(after))
        manager.wait(MINUTE)

        assert {"c": 6} == manager.running()
        assert {"c": 4} == dict(manager.preempted)


@ENGINES
def test_what_is_above_a_lowered_maximum_is_preempted_after_its_delay(engine: EngineName) -> None:
    """The youngest is preempted; nothing is before the delay."""
    manager = JobManager(limited("max: {memory: 30}"), NODE, engine=engine)
    with manager.scheduler as scheduler:
        for job in ("first", "second", "third"):
            manager.start(job, "root.c", 1, size={"memory": 10})
            manager.wait(1)
        scheduler.update_configuration(configuration_request(limited("max: {memory: 20}")))
        manager.wait(9)
        early = dict(manager.preempted)
        manager.wait(3)

        assert {} == early
        assert {"third": 1} == dict(manager.preempted)
