"""What stresses the engine `threads`: RM threads that submit, release and kill at once, and the end of it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from support.proxy.listening import Listener, MeetingPredicateListener, PredicateListener
from support.proxy.manager_requests import (
    TWO,
    application_request,
    ask_request,
    keys,
    node_request,
    release_request,
)
from support.proxy.running_scheduler import in_threads, running
from support.waiting import happens

from licorne import Scheduler
from licorne.proxy.si import si_pb2 as si

PARTITIONS = ("default", "second")
RM_THREADS = 8


@contextmanager
def switching_every(seconds: float | None) -> Iterator[None]:
    """Have the interpreter switch threads so often, and as before afterwards."""
    before = sys.getswitchinterval()
    if seconds is not None:
        sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def stress(rounds: int, seed: int, *, judged: bool = False, threads: int = 4) -> int:
    """Load a scheduler with two partitions, see `load`.

    Returns:
        How many placements the RM had callbacks for.
    """
    listener = PredicateListener() if judged else Listener()
    load(listener, PARTITIONS, rounds, seed, threads=threads)
    return len(listener.all("placed "))


def stress_of_one_partition(rounds: int, seed: int, *, threads: int = 4) -> int:
    """Load a scheduler with one partition, whose RM judges slowly, see `load`.

    Returns:
        How many questions the RM has had at once.
    """
    judge = MeetingPredicateListener()
    load(judge, PARTITIONS[:1], rounds, seed, threads=threads)
    placed = judge.all("placed ")
    assert len(placed) == len(set(placed)), "a key was placed twice"
    return judge.most


def load(listener: Listener, partitions: Sequence[str], rounds: int, seed: int, *, threads: int) -> None:
    """Load a scheduler from eight threads, let it come to rest, and validate it."""
    with running("threads", threads=threads) as scheduler:
        scheduler.register("rm", listener, configuration=TWO)
        rushes = [partial(rush, scheduler, partitions, seed, number, rounds) for number in range(RM_THREADS)]
        in_threads(*rushes)
        # The last node has room for all that waits for it: when it is used, the rush has been worked off.
        for partition in partitions:
            scheduler.update_application(application_request(f"last-{partition}", partition=partition))
            scheduler.update_node(node_request(f"last-{partition}", memory=100_000, partition=partition))
            last = ask_request(f"last-{partition}", application=f"last-{partition}", partition=partition)
            scheduler.update_allocation(last)
        listener.wait_for(*[f"placed last-{partition}" for partition in partitions])
        assert happens(lambda: not waiting_in(scheduler)), f"left waiting: {waiting_in(scheduler)}"
        scheduler.validate()
        assert () == scheduler.quarantined()


def waiting_in(scheduler: Scheduler) -> list[dict[str, int]]:
    """Return what is waited for in each partition where anything is."""
    snapshot: Any = scheduler.snapshot()
    waiting = [root.get("pendingResource", {}) for root in snapshot["queues"].values()]
    return [pending for pending in waiting if any(pending.values())]


def rush(scheduler: Scheduler, partitions: Sequence[str], seed: int, number: int, rounds: int) -> None:
    """Do what an RM may do, at random: applications and nodes come, work and are killed."""
    drawn = random.Random(seed * 100 + number)  # noqa: S311 - nothing secret
    for wave in range(rounds):
        partition = drawn.choice(partitions)
        name = f"{drawn.randrange(4)}"
        doing = drawn.randrange(8)
        if doing == 0:
            scheduler.update_node(node_request(f"node-{name}", memory=20, partition=partition))
        elif doing == 1:
            scheduler.update_node(node_end(f"node-{name}", partition))
        elif doing == 2:
            scheduler.update_application(application_end(f"app-{name}", partition))
        elif doing == 3:
            scheduler.update_allocation(release_request("", application=f"app-{name}", partition=partition))
        elif doing == 4:
            scheduler.validate() if drawn.random() < 0.5 else scheduler.snapshot()
        else:
            scheduler.update_application(application_request(f"app-{name}", partition=partition))
            scheduler.update_node(node_request(f"node-{name}", memory=20, partition=partition))
            asked = keys(3, f"{number}-{wave}")
            scheduler.update_allocation(ask_request(*asked, application=f"app-{name}", partition=partition))


def node_end(node_id: str, partition: str) -> si.NodeRequest:
    request = si.NodeRequest(rmID="rm")
    node = request.nodes.add(nodeID=node_id, action=si.NodeInfo.DECOMISSION)
    node.attributes["si/node-partition"] = partition
    return request


def application_end(application: str, partition: str) -> si.ApplicationRequest:
    request = si.ApplicationRequest(rmID="rm")
    request.remove.add(applicationID=application, partitionName=partition)
    return request
