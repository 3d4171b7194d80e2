"""A small cluster with its resource manager (RM), as a process that may be killed at any moment.

    python -m support.proxy.cluster_program ADDRESS JOURNAL SEED

The journal is the cluster: what runs goes on, whatever happens to the RM, and is in the journal before the
RM does anything else with it. The program places all its tasks once, ends some when many run, and recovers
whenever it is started or connected again. When all tasks have been placed it waits until the books of the
scheduler are equal to its own, and prints them as one line of JSON. Exit status 3: a task was placed twice.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NoReturn

from licorne import LicorneError, Recovery, RemoteScheduler, ResourceManager
from licorne.proxy.si import si_pb2 as si

__all__ = ["RM_ID", "TASKS", "fingerprint", "scheduler_books"]

RM_ID: Final = "cluster"
TASKS: Final = 5_000
RUNNING_MAX: Final = 600
_NODES: Final = 40
_SLOTS: Final = 20
_APPLICATIONS: Final = 10
_QUEUES: Final = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}, {name: b, resources: {max: {vcore: 700}}}]
"""
_TASK: Final = {"resources": {"vcore": {"value": 1_000}, "memory": {"value": 1 << 20}}}
_NODE: Final = {"resources": {"vcore": {"value": 1_000 * _SLOTS}, "memory": {"value": 1 << 30}}}
_SETTLING_SECONDS: Final = 20.0

Books = dict[str, str]
"""The node of each task that runs."""


def fingerprint(books: Books) -> str:
    """Return a text that is equal for equal books."""
    return sha256(json.dumps(sorted(books.items())).encode()).hexdigest()[:16]


def scheduler_books(scheduler: RemoteScheduler) -> tuple[Books, Books]:
    """Return what runs by the nodes of the scheduler, and by its applications; it checks its sums."""
    scheduler.validate()
    snapshot: Any = scheduler.snapshot(rm_id=RM_ID)
    by_node = {
        allocation["allocationKey"]: node["nodeID"]
        for node in snapshot["nodes"].get("default", ())
        for allocation in node.get("allocations") or ()
    }
    by_application = {
        allocation["allocationKey"]: allocation["nodeId"]
        for application in snapshot["applications"].get("default", ())
        for allocation in application.get("allocations") or ()
    }
    return by_node, by_application


def _application_of(task: str) -> str:
    return f"app-{int(task.removeprefix('task-')) % _APPLICATIONS}"


def _ask(task: str) -> si.Allocation:
    return si.Allocation(allocationKey=task, applicationID=_application_of(task), resourcePerAlloc=_TASK)


class Cluster(ResourceManager):
    """What runs, and the RM that decides nothing: it does what the scheduler says."""

    def __init__(self, journal: Path, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - which task ends
        self._journal = os.open(journal, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self.running: Books = {}
        self.ended: set[str] = set()
        for line in journal.read_text(encoding="utf-8").split("\n")[:-1]:
            task, _, node = line[1:].partition(" ")
            if line.startswith("+"):
                self.running[task] = node
            else:
                del self.running[task]
                self.ended.add(task)
        self.recoveries = 0
        self.all_placed = threading.Event()
        self._scheduler: RemoteScheduler | None = None
        self._recovery: Recovery | None = None

    def _write(self, line: str) -> None:
        os.write(self._journal, f"{line}\n".encode())

    def recover(self, scheduler: RemoteScheduler) -> None:
        """Register, and send all that is known."""
        self._scheduler = scheduler
        self.reconnected()

    def reconnected(self) -> None:
        """Register again, and send all that is known."""
        assert self._scheduler is not None
        self.recoveries += 1
        tasks = [f"task-{number}" for number in range(TASKS)]
        nodes = [
            si.NodeInfo(nodeID=f"n{number}", action=si.NodeInfo.CREATE, schedulableResource=_NODE)
            for number in range(_NODES)
        ]
        applications = [
            si.AddApplicationRequest(
                applicationID=f"app-{number}",
                queueName=f"root.{'ab'[number % 2]}",
                ugi={"user": f"u{number}"},
            )
            for number in range(_APPLICATIONS)
        ]
        allocations = []
        for task, node in self.running.items():
            allocation = _ask(task)
            allocation.nodeID = node
            allocations.append(allocation)
        self._recovery = Recovery(
            self._scheduler,
            si.RegisterResourceManagerRequest(rmID=RM_ID, policyGroup="queues", config=_QUEUES),
            self,
            nodes=nodes,
            applications=applications,
            allocations=allocations,
            asks=[_ask(task) for task in tasks if task not in self.running and task not in self.ended],
        )
        self._recovery.start()
        self._look_whether_done()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Start what is placed; end the oldest when many run."""
        for allocation in response.new:
            task, node = allocation.allocationKey, allocation.nodeID
            if task in self.ended or task in self.running:
                _fail(
                    f"{task} was placed on {node}, but runs on {self.running.get(task, 'no node any more')}"
                )
            self._write(f"+{task} {node}")
            self.running[task] = node
        for rejected in response.rejectedAllocations:
            _fail(f"{rejected.allocationKey} was rejected: {rejected.reason}")
        while len(self.running) > RUNNING_MAX:
            self._end(next(iter(self.running)) if self._random.random() < 0.5 else max(self.running))
        self._look_whether_done()

    def update_application(self, response: si.ApplicationResponse) -> None:
        """All applications are welcome."""
        for rejected in response.rejected:
            _fail(f"{rejected.applicationID} was rejected: {rejected.reason}")

    def _end(self, task: str) -> None:
        self._write(f"-{task}")
        del self.running[task]
        self.ended.add(task)
        release = {
            "applicationID": _application_of(task),
            "allocationKey": task,
            "terminationType": si.STOPPED_BY_RM,
        }
        assert self._recovery is not None
        request = si.AllocationRequest(rmID=RM_ID, releases={"allocationsToRelease": [release]})
        with suppress(LicorneError):  # If the connection is lost, it is not sent again when that is back.
            self._recovery.update_allocation(request)

    def _look_whether_done(self) -> None:
        if len(self.running) + len(self.ended) == TASKS:
            self.all_placed.set()


def _fail(text: str) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    os._exit(3)


def _connected(address: str) -> RemoteScheduler:
    deadline = time.monotonic() + _SETTLING_SECONDS
    while True:
        try:
            return RemoteScheduler(address, timeout=5.0)
        except LicorneError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main(address: str, journal: str, seed: str) -> None:
    """Run until all tasks have been placed and the books are equal."""
    cluster = Cluster(Path(journal), int(seed))
    scheduler = _connected(address)
    cluster.recover(scheduler)
    cluster.all_placed.wait()
    deadline = time.monotonic() + _SETTLING_SECONDS
    by_node: Books = {}
    by_application: Books = {}
    while time.monotonic() < deadline:
        with suppress(LicorneError):  # It is away, or comes back.
            by_node, by_application = scheduler_books(scheduler)
        if by_node == by_application == cluster.running and len(cluster.ended) + len(by_node) == TASKS:
            break
        time.sleep(0.05)
    document = {
        "rm": fingerprint(cluster.running),
        "nodes": fingerprint(by_node),
        "applications": fingerprint(by_application),
        "running": len(cluster.running),
        "recoveries": cluster.recoveries,
    }
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()
    scheduler.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
