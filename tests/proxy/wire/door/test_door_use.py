"""`licorne door --usage-file`: what was used is kept when a worker or the door is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request, release_request
from support.proxy.processes import ServerProcess, children, start_server
from support.proxy.worker_processes import is_alive
from support.waiting import WAIT_SECONDS, wait_until

from licorne import LicorneError, RemoteScheduler
from licorne.model.queues.use_order import KeptUse
from licorne.model.resources.decayed_use import decayed_means, no_use, with_past
from licorne.proxy.core.scheduler.answering.state_documents import read_use
from licorne.proxy.views.dumps import read_usage, usage_text
from licorne.proxy.wire.door.linked_manager import DoorUse

HOUR_SECONDS: Final = 3600
QUEUES: Final = """
partitions:
  - name: a
    queues: &queues
      - {name: root, submitacl: "*", properties: {fair.half-life: 1h}, queues: [{name: leaf}]}
  - name: b
    queues: *queues
"""


@contextmanager
def registered(file: Path) -> Iterator[tuple[ServerProcess, RemoteScheduler, Listener]]:
    """Run a door with two partitions; it is killed behind the block unless it has ended."""
    door = start_server("--usage-file", str(file), name="door")
    listener = Listener()
    try:
        with RemoteScheduler(door.address) as scheduler:
            scheduler.register("rm", listener, configuration=QUEUES)
            yield door, scheduler, listener
    finally:
        door.process.kill()
        door.process.communicate()


def use_an_hour(scheduler: RemoteScheduler, listener: Listener, memory: int) -> None:
    """Let work of partition b end that was there for an hour: half of it is the mean."""
    scheduler.update_node(node_request("n1", memory=1000, partition="b"))
    scheduler.update_application(application_request("app", partition="b"))
    request = ask_request("old", memory=memory, node_id="n1", partition="b")
    request.allocations[0].allocationTags["licorne/start-time"] = str(int(time.time()) - HOUR_SECONDS)
    scheduler.update_allocation(request)
    listener.wait_for("placed old")
    scheduler.update_allocation(release_request("old", partition="b"))
    listener.wait_for("released old STOPPED_BY_RM")


def means(scheduler: RemoteScheduler) -> dict[str, float]:
    """Return the mean of the leaf in each partition, nothing of one that has none."""
    queues: Any = scheduler.snapshot()["queues"]
    leaves = {name: root["children"][0] for name, root in queues.items()}
    return {name: leaf.get("decayedMean", {}).get("memory", 0) for name, leaf in leaves.items()}


def kill_workers(door: ServerProcess, scheduler: RemoteScheduler) -> None:
    """Kill all workers of a door, the spare one too, and wait until both partitions have others."""
    for pid in children(door.process.pid):
        os.kill(pid, signal.SIGKILL)

    def answers() -> bool:
        try:
            scheduler.snapshot()
        except LicorneError:
            return False
        return True

    wait_until(lambda: not answers(), "a worker is lost")
    wait_until(answers, "both partitions run again")


def test_use_is_kept_when_workers_and_the_door_are_killed(tmp_path: Path) -> None:
    """Workers go on with what their door knows, a door with what its file has."""
    file, hour, now = tmp_path / "usage.json", HOUR_SECONDS * 10**9, time.time_ns()
    use = with_past(no_use(hour, now), {"memory": 100}, now - hour, now)
    file.write_text(usage_text({"[rm]a": KeptUse(now, {"root.leaf": use})}, now), encoding="utf-8")
    with registered(file) as (door, scheduler, listener):
        found = [means(scheduler)]
        use_an_hour(scheduler, listener, 200)
        scheduler.kept_use()  # As the door itself does when it writes the file.
        kill_workers(door, scheduler)
        found.append(means(scheduler))
    with registered(file) as (door, scheduler, _):
        found.append(means(scheduler))
        door.process.terminate()
        door.process.wait(WAIT_SECONDS)
    at_ns, usage = read_usage(file)

    of_file = {"a": pytest.approx(50, abs=1), "b": 0}
    assert [of_file, {**of_file, "b": pytest.approx(100, abs=2)}, of_file] == found
    assert now < at_ns
    assert of_file["a"] == decayed_means(usage["[rm]a"].uses["root.leaf"], at_ns)["memory"]


def test_the_later_use_of_a_partition_is_kept() -> None:
    """A worker that says less than is known does not take it away; nor does one of another manager."""
    rows: Any = [
        {"path": "root.a", "user": None, "half_life": 10, "span": 0, "type": "vcore", "amount": 0, "kept": 1}
    ]
    use = DoorUse({})
    for at, name in ((9, "[rm]a"), (5, "[rm]a"), (7, "[other]a")):
        of_one: Any = [{"name": name, "at": at, "rows": rows if at == 9 else []}]
        use.take("rm", {"kind": "licorne usage", "version": 1, "at": at, "partitions": of_one})

    known: Any = use.of_manager(None)["partitions"]
    assert [("[rm]a", 9, rows)] == [(each["name"], each["at"], each["rows"]) for each in known]


def test_use_by_a_clock_that_is_ahead_counts_as_of_now() -> None:
    """What a worker with the right clock says afterwards is the later one."""
    hour, use = HOUR_SECONDS * 10**9, DoorUse({})
    for ahead, amount in ((hour, 100), (0, 200)):
        at = time.time_ns() + ahead
        used = with_past(no_use(hour, at), {"memory": amount}, at - hour, at)
        use.take("rm", json.loads(usage_text({"[rm]a": KeptUse(at, {"root.leaf": used})}, at)))
    _, kept = read_use(use.of_manager("rm"))

    means_now = decayed_means(kept["[rm]a"].uses["root.leaf"], time.time_ns())
    assert kept["[rm]a"].at_ns <= time.time_ns()
    assert pytest.approx(100, rel=0.01) == means_now["memory"]


@pytest.mark.soak
def test_a_door_ends_in_time_whose_workers_hang(tmp_path: Path) -> None:
    """It asks them for what was used, and then to end; neither is answered."""
    with registered(tmp_path / "use.json") as (door, scheduler, _):
        scheduler.snapshot()
        workers = [pid for pid in children(door.process.pid) if b"until-stdin-closes" in command_of(pid)]
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        door.process.terminate()

        assert 0 == door.process.wait(WAIT_SECONDS / 6)
        assert workers
        assert not [pid for pid in workers if is_alive(pid)]


def command_of(pid: int) -> bytes:
    """Return the command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()
