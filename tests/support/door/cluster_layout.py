"""A cluster with several partitions: its queues, nodes, applications and tasks, and their limits.

In each partition the maxima of queue, user and node are a little above what the resource manager (RM) lets
run, so that they are reached all the time, and nothing waits for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from licorne.proxy.si import si_pb2 as si

RM_ID: Final = "cluster"
KEPT: Final = 30
"""How many tasks of an application the RM lets run; it ends what is more."""
_APPLICATIONS: Final = 6
_NODES: Final = 10
_SLOTS_OF_NODE: Final = 20
_SLOTS_OF_USER: Final = KEPT + 4
_SLOTS_OF_QUEUE_B: Final = _APPLICATIONS // 2 * KEPT + 6
_TASK: Final = {"resources": {"vcore": {"value": 1_000}}}
_NODE: Final = {"resources": {"vcore": {"value": 1_000 * _SLOTS_OF_NODE}}}

Books = dict[str, str]
"""The node of each task that runs."""


def configuration(partitions: Iterable[str], extra_queue: str = "spare") -> str:
    """Return the queues of partitions; they are the same in each."""
    return "partitions:\n" + "".join(
        f"""
  - name: {name}
    queues:
      - name: root
        submitacl: "*"
        limits: [{{users: ["*"], maxresources: {{vcore: {_SLOTS_OF_USER}}}}}]
        queues:
          - {{name: a}}
          - {{name: b, resources: {{max: {{vcore: {_SLOTS_OF_QUEUE_B}}}}}}}
          - {{name: {extra_queue}}}
"""
        for name in partitions
    )


def nodes(partition: str) -> list[si.NodeInfo]:
    """Return the nodes of a partition."""
    return [
        si.NodeInfo(
            nodeID=f"{partition}-n{number}",
            action=si.NodeInfo.CREATE,
            attributes={"si/node-partition": partition},
            schedulableResource=_NODE,
        )
        for number in range(_NODES)
    ]


def applications(partition: str) -> list[si.AddApplicationRequest]:
    """Return the applications of a partition: each of a user of its own."""
    return [
        si.AddApplicationRequest(
            applicationID=f"{partition}-app{number}",
            queueName=f"root.{'ab'[number % 2]}",
            partitionName=partition,
            ugi={"user": f"u{number}"},
        )
        for number in range(_APPLICATIONS)
    ]


def tasks(partitions: Sequence[str], count: int) -> list[str]:
    """Return the tasks: so many in each partition."""
    return [f"{partition}-{number}" for number in range(count) for partition in partitions]


def partition_of(task: str) -> str:
    """Return the partition of a task, of an application or of a node."""
    return task.partition("-")[0]


def application_of(task: str) -> str:
    """Return the application of a task."""
    partition, _, number = task.partition("-")
    return f"{partition}-app{int(number) % _APPLICATIONS}"


def ask(task: str, node: str = "") -> si.Allocation:
    """Return a task that waits, or that runs on a node."""
    return si.Allocation(
        allocationKey=task,
        applicationID=application_of(task),
        partitionName=partition_of(task),
        nodeID=node,
        resourcePerAlloc=_TASK,
    )


def release(task: str) -> si.AllocationRelease:
    """Return the end of a task, which the RM has ended."""
    return si.AllocationRelease(
        applicationID=application_of(task),
        allocationKey=task,
        partitionName=partition_of(task),
        terminationType=si.STOPPED_BY_RM,
    )


def run_by(journal: Iterable[str]) -> Books:
    """Return what runs by the lines of a journal: `+TASK NODE` for a begin, `-TASK` for an end."""
    running: Books = {}
    for line in journal:
        task, _, node = line[1:].partition(" ")
        if line.startswith("+"):
            running[task] = node
        else:
            del running[task]
    return running


def beyond_maximum(journal: Iterable[str]) -> Iterator[str]:
    """Yield each begin in a journal by which a node, user or queue runs more than it may."""
    running: Books = {}
    counts: Counter[str] = Counter()
    for line in journal:
        task, _, node = line[1:].partition(" ")
        begins = line.startswith("+")
        if begins:
            running[task] = node
        else:
            node = running.pop(task)
        for place, most in _places(task, node):
            counts[place] += 1 if begins else -1
            if counts[place] > most:
                yield f"{line}: {counts[place]} at {place}, which may have {most}"


def _places(task: str, node: str) -> Iterator[tuple[str, int]]:
    """Yield what a task is counted at, with how many may run there: node, user, queue."""
    application = application_of(task)
    yield node, _SLOTS_OF_NODE
    yield application, _SLOTS_OF_USER  # It is the only one of its user in the partition.
    if int(application.rpartition("app")[2]) % 2:
        yield f"{partition_of(task)} root.b", _SLOTS_OF_QUEUE_B
