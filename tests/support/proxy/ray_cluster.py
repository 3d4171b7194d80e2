"""A cluster of Ray whose nodes are processes of this machine, and the ways in which it breaks.

Ray is imported here only when a cluster is started. Addresses are left to it: on 127.0.0.1 its nodes wait for
each other for ever.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, final

_STORE_BYTES: Final = 80_000_000
_TRIES: Final = 3
_QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_metrics_collection": "0"}


@final
class RayCluster:
    """The nodes of a cluster: the head, and others."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    @property
    def address(self) -> str:
        """Where its head listens."""
        return str(self._cluster.address)

    def raylet_pid_of(self, process_pid: int) -> int:
        """Return the pid of the raylet, which is the heart of a node, that has started a process."""
        for node in self._cluster.list_all_nodes():
            raylet = int(node.all_processes["raylet"][0].process.pid)
            if process_pid in children_of(raylet):
                return raylet
        raise AssertionError(f"no node has started process {process_pid}")

    def is_head(self, raylet_pid: int) -> bool:
        """Return whether a raylet is that of the head."""
        return bool(self._cluster.head_node.all_processes["raylet"][0].process.pid == raylet_pid)

    def kill_node(self, raylet_pid: int) -> None:
        """Kill a raylet and all that it has started, as a machine that loses its power does."""
        for pid in [raylet_pid, *children_of(raylet_pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_head_service(self) -> None:
        """Kill the program of the head that knows all nodes and actors."""
        os.kill(self._cluster.head_node.all_processes["gcs_server"][0].process.pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """Return the pids of the processes that a process has started, directly or not."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    found, looked_at = [pid], 0
    while looked_at < len(found):
        found += children.get(found[looked_at], [])
        looked_at += 1
    return found[1:]


@contextmanager
def ray_cluster(nodes: int = 3) -> Iterator[RayCluster]:
    """Start a cluster, and end it behind the block.

    Args:
        nodes: How many nodes it has, the head among them; each has room for three workers.
    """
    os.environ.update(_QUIET)
    cluster = _started(nodes)
    try:
        yield RayCluster(cluster)
    finally:
        cluster.shutdown()


def _started(nodes: int) -> Any:
    """Return a cluster that runs; Ray gives a node 30 s to start, which a busy machine may need longer for.

    Raises:
        AssertionError: It did not start.
    """
    from ray.cluster_utils import Cluster

    reason: Exception | None = None
    for _ in range(_TRIES):
        cluster = Cluster()
        try:
            for _ in range(nodes):
                cluster.add_node(num_cpus=3, object_store_memory=_STORE_BYTES, include_dashboard=False)
        except Exception as error:  # noqa: BLE001 - Ray raises this class itself
            reason = error
            cluster.shutdown()
        else:
            return cluster
    raise AssertionError("the cluster of Ray did not start") from reason
