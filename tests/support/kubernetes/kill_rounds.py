"""Rounds in which the scheduler of pods, the API server or both are killed; then the accounts.

`make kubernetes-kills` plays 30 of them. What has to hold at the end: every pod that was bound was bound
once, every gang is whole, no placeholder is left, and the scheduler counts what a fresh list counts.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Self

from licorne.proxy.base.terminal.standard_output import write_line
from licorne.proxy.kubernetes.mapping.settings import PLACEHOLDER, TASK_GROUP_NAME, TASK_GROUPS

from .api import Api, RefusedError
from .cluster import Cluster, running
from .kubelet import Kubelet
from .manifests import node, pod

QUEUES: Final = """
partitions:
  - name: default
    placementrules:
      - {name: tag, value: namespace, create: true}
    queues:
      - name: root
        submitacl: "*"
"""
_PODS: Final = "/api/v1/namespaces/default/pods"
_NODES: Final = 8
_MEMBERS: Final = 3
_REST_SECONDS: Final = 90.0
"""How long everything may take to come to rest after the last kill."""


class SchedulerProcess:
    """`licorne kubernetes` as a process; the REST interface is on a free port.

    Args:
        cluster: Whose pods it schedules.
        folder: Where its files are.
        options: Further options of the command.
    """

    def __init__(self, cluster: Cluster, folder: Path, *options: str) -> None:
        queues = folder / "queues.yaml"
        queues.write_text(QUEUES, encoding="utf-8")
        kubeconfig = cluster.kubeconfig(folder / "kubeconfig")
        program = Path(sys.executable).with_name("licorne")
        self._log = (folder / "licorne.log").open("ab")
        self.process = subprocess.Popen(  # noqa: S603 - no shell
            [
                *(str(program), "kubernetes", "--kubeconfig", str(kubeconfig), "--config", str(queues)),
                *("--rest-address", "127.0.0.1:0", *(options or ("--no-lease",))),
            ],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self.process.stdout is not None
        self.rest = self.process.stdout.readline().removeprefix("REST on ").strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()
        self._log.close()

    def terminate(self) -> int:
        """End it in order; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self._log.close()
        return status

    def read(self, path: str) -> Any:
        """Return the document at a path of its REST interface."""
        with urllib.request.urlopen(f"http://{self.rest}{path}", timeout=10) as answer:
            return json.load(answer)

    def used(self) -> dict[str, int]:
        """Return what the queues use in all, without what is zero; empty before it schedules."""
        queues = self.read("/ws/v1/partition/default/queues")
        used: Mapping[str, int] = queues.get("allocatedResource") or {}
        return {name: amount for name, amount in used.items() if amount}


class KillRounds:
    """Plays rounds on a cluster with a fake kubelet."""

    def __init__(self, cluster: Cluster, kubelet: Kubelet, folder: Path, seed: int) -> None:
        self._cluster = cluster
        self._kubelet = kubelet
        self._folder = folder
        self._api: Api = cluster.api()
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._scheduler = SchedulerProcess(cluster, folder)
        self._count = 0
        self.kills: Counter[str] = Counter()

    def prepare(self) -> None:
        """Create the nodes."""
        for number in range(_NODES):
            self._kubelet.add_node(node(f"node-{number}", cpu="64", memory="256Gi", pods=400))

    def close(self) -> None:
        """End the scheduler and the connection."""
        self._scheduler.kill()
        self._api.close()

    def play(self) -> None:
        """Create and delete pods, and kill somebody meanwhile."""
        victim = self._random.choice(["scheduler", "scheduler", "API server", "both"])
        self._change()
        time.sleep(self._random.random() * 1.5)
        self.kills[victim] += 1
        if victim != "API server":
            self._scheduler.kill()
        if victim != "scheduler":
            self._cluster.kill_api_server()
            time.sleep(self._random.random())
            self._cluster.start_api_server()
        if victim != "API server":
            self._scheduler = SchedulerProcess(self._cluster, self._folder)

    def _change(self) -> None:
        for _ in range(self._random.randint(5, 30)):
            self._create(pod(self._name("plain"), labels={"applicationId": self._random.choice("abc")}))
        if self._random.random() < 0.7:
            self._create_gang()
        bound = [item for item in self._pods() if item["spec"].get("nodeName") and not _is_placeholder(item)]
        for item in self._random.sample(bound, min(len(bound), self._random.randint(0, 8))):
            if TASK_GROUP_NAME not in item["metadata"]["annotations"]:
                self._api.request("DELETE", f"{_PODS}/{item['metadata']['name']}")

    def _create_gang(self) -> None:
        name = self._name("gang")
        group = {
            "name": "workers",
            "minMember": _MEMBERS,
            "minResource": {"cpu": "100m", "memory": "64Mi"},
        }
        for number in range(_MEMBERS):
            annotations = {TASK_GROUPS: json.dumps([group]), TASK_GROUP_NAME: "workers"}
            self._create(pod(f"{name}-{number}", labels={"applicationId": name}, annotations=annotations))

    def _create(self, document: dict[str, Any]) -> None:
        document["metadata"].setdefault("annotations", {})
        self._api.ok("POST", _PODS, document)

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"

    def _pods(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._api.ok("GET", _PODS)["items"]
        for item in items:
            item["metadata"].setdefault("annotations", {})
        return items

    # ------------------------------------------------------------------------------------- what has to hold

    def faults(self) -> list[str]:
        """Wait until everything rests, and return what is not as it has to be."""
        deadline = time.monotonic() + _REST_SECONDS
        while (faults := self._unrest()) and time.monotonic() < deadline:
            time.sleep(0.5)
        twice = [uid for uid, places in self._kubelet.all_places().items() if len(places) > 1]
        return [*faults, *(f"pod {uid} was bound more than once" for uid in twice)]

    def _unrest(self) -> list[str]:
        pods = [item for item in self._pods() if item["status"]["phase"] not in {"Succeeded", "Failed"}]
        found = [f"{item['metadata']['name']} waits" for item in pods if not item["spec"].get("nodeName")]
        found += [f"{item['metadata']['name']} is left" for item in pods if _is_placeholder(item)]
        counted = {"vcore": 100 * len(pods), "memory": len(pods) << 26, "pods": len(pods)}
        used: object = "no answer"
        with suppress(OSError, HTTPException):
            used = self._scheduler.used()
        if used != counted:
            found.append(f"the scheduler counts {used}, and the list has {counted}")
        return found


def _is_placeholder(item: Mapping[str, Any]) -> bool:
    return PLACEHOLDER in item["metadata"]["annotations"]


def main(rounds: int, seed: int) -> int:
    """Play rounds on a cluster of its own; return how many faults there were at the end."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as cluster:
        with Kubelet(cluster) as kubelet:
            played = KillRounds(cluster, kubelet, Path(folder), seed)
            try:
                played.prepare()
                for number in range(rounds):
                    played.play()
                    write_line(f"round {number + 1} of {rounds}: {dict(played.kills)}", flush=True)
                faults = played.faults()
            except (RefusedError, OSError):
                sys.stderr.write(Path(folder, "licorne.log").read_text(encoding="utf-8"))
                raise
            finally:
                played.close()
        for fault in faults:
            write_line(fault)
        if faults:
            write_line(Path(folder, "licorne.log").read_text(encoding="utf-8")[-3000:])
    write_line(f"seed {seed}: {rounds} rounds, {len(faults)} faults")
    return len(faults)


if __name__ == "__main__":
    counts = [int(text) for text in sys.argv[1:]]
    raise SystemExit(1 if main(*(counts or [30]), *([] if len(counts) > 1 else [1])) else 0)
