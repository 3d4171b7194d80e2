"""The pace of binds on a real API server: Licorne and kube-scheduler on the same pods, in turns.

`make kubernetes-pace` prints it. Both share the machine with the API server, so that their ratio counts, not
the figures alone. CPU time is that of the process of the scheduler without what it takes to load.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from licorne.proxy.base.terminal.standard_output import write_line

from .api import Api
from .cluster import Cluster, installed_programs, running
from .kill_rounds import SchedulerProcess
from .manifests import node, pod

_PODS: Final = "/api/v1/namespaces/default/pods"
_CREATORS: Final = 4
_CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: {kubeconfig}, qps: 1000, burst: 1000}}
"""
"""kube-scheduler sends 50 requests a second unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one scheduler did with one set of pods."""

    scheduler: str
    pods: int
    first_seconds: float
    """From the start of the process to the first bind."""
    all_seconds: float
    """From the first bind to the last."""
    cpu_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.scheduler:14} {self.pods / self.all_seconds:7.0f} pods/s  "
            f"{1000 * self.cpu_seconds / self.pods:6.2f} ms CPU a pod  "
            f"first bind after {self.first_seconds:.1f} s"
        )


@contextmanager
def _kube_scheduler(cluster: Cluster, folder: Path) -> Iterator[tuple[int, float]]:
    """Run kube-scheduler; yield the number of its process, and the CPU time that loading it took: none."""
    configuration = folder / "kube-scheduler.yaml"
    kubeconfig = cluster.kubeconfig(folder / "kubeconfig")
    configuration.write_text(_CONFIGURATION.format(kubeconfig=kubeconfig), encoding="utf-8")
    program = installed_programs().servers / "kube-scheduler"
    with (folder / "kube-scheduler.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - no shell
            [program, f"--config={configuration}", "--secure-port=0"], stdout=log, stderr=log
        )
        try:
            yield process.pid, 0.0
        finally:
            process.kill()
            process.wait()


@contextmanager
def _licorne(cluster: Cluster, folder: Path) -> Iterator[tuple[int, float]]:
    """Run the scheduler of pods, which says when it is loaded; yield as the other does."""
    with SchedulerProcess(cluster, folder, "--no-lease") as scheduler:
        yield scheduler.process.pid, _cpu_seconds(scheduler.process.pid)


_SCHEDULERS: Final = {"licorne": _licorne, "kube-scheduler": _kube_scheduler}


def measure(cluster: Cluster, folder: Path, scheduler: str, pod_count: int) -> Figures:
    """Create pods, then start a scheduler, and follow the binds until all pods have a node."""
    name = "default-scheduler" if scheduler == "kube-scheduler" else "licorne"
    _create(cluster, [pod(f"{name}-{number}", scheduler=name) for number in range(pod_count)])
    api = cluster.api()
    version = api.ok("GET", f"{_PODS}?limit=1")["metadata"]["resourceVersion"]
    watch = cluster.api().watch(_PODS, resourceVersion=version)
    began = time.monotonic()
    bound: dict[str, float] = {}
    with _SCHEDULERS[scheduler](cluster, folder) as (process_id, loading_seconds):
        for change in watch:
            item = change["object"]
            if item["spec"].get("nodeName"):
                bound.setdefault(item["metadata"]["uid"], time.monotonic())
            if len(bound) == pod_count:
                break
        cpu_seconds = _cpu_seconds(process_id) - loading_seconds
    watch.stop()
    first, last = min(bound.values()), max(bound.values())
    _delete_all(api)
    api.close()
    return Figures(scheduler, pod_count, first - began, last - first, cpu_seconds)


def _cpu_seconds(process_id: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _create(cluster: Cluster, documents: Sequence[dict[str, object]]) -> None:
    def create(part: Sequence[dict[str, object]]) -> None:
        api = cluster.api()
        for document in part:
            api.ok("POST", _PODS, document)
        api.close()

    threads = [
        threading.Thread(target=create, args=(documents[first::_CREATORS],)) for first in range(_CREATORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _delete_all(api: Api) -> None:
    """Delete all pods at once, as a kubelet would end them."""
    api.ok("DELETE", f"{_PODS}?gracePeriodSeconds=0")
    api.until(_PODS, lambda found: not found["items"])


def main(node_count: int, pod_count: int, rounds: int) -> None:
    """Measure both in turns, and print what they took."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as cluster:
        api = cluster.api()
        for number in range(node_count):
            api.ok("POST", "/api/v1/nodes", node(f"node-{number}", cpu="64", memory="256Gi", pods=250))
        api.close()
        write_line(f"{node_count} nodes, {pod_count} pods, {rounds} rounds in turns")
        for _ in range(rounds):
            for scheduler in _SCHEDULERS:
                write_line(str(measure(cluster, Path(folder), scheduler, pod_count)), flush=True)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*(given or [100, 2000, 3]))
