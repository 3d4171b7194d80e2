"""Whatever happens to a cluster: in the end each pod runs once, is counted once, and none is forgotten."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import NODES, PODS, SETTINGS, SteppedCluster, gang_annotations
from support.kubernetes.stub_store import Document, ObjectPath, StatusError

_APPS: Final = ("red", "blue", "gang-soft", "gang-hard")
_FAULTS: Final = (
    ("POST", f"{PODS}/.*/binding"),
    ("POST", PODS),
    ("DELETE", f"{PODS}/.*"),
    ("GET", f"{PODS}/.*"),
    ("PATCH", f"{PODS}/.*/status"),
    ("POST", ".*/events"),
)
_POLICY: Final = "placeholderTimeoutInSeconds=40 gangSchedulingStyle="
_LAST_SECONDS: Final = 900


class RandomCluster:
    """A cluster to which random things happen.

    Args:
        seed: What happens is a function of it.
        has_placeholder_pods: Whether gangs have placeholder pods.

    Attributes:
        cluster: The cluster.
        steps: What has happened, for people.
    """

    def __init__(self, seed: int, *, has_placeholder_pods: bool) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secret
        settings = replace(SETTINGS, placeholder_pods=has_placeholder_pods, evict_preempted=seed % 2 == 0)
        self.cluster = SteppedCluster(settings=settings)
        self.cluster.settle()
        self.steps: list[str] = []
        self._count = 0
        self._happenings: list[tuple[int, Callable[[], None]]] = [
            (8, self.add_pod),
            (2, self.add_foreign_pod),
            (3, self.delete_pod),
            (3, self.end_pod),
            (1, self.resize_pod),
            (1, self.relabel_pod),
            (1, self.lift_gates),
            (1, self.recreate_pod),
            (1, self.assign_pod),
            (3, self.add_node),
            (1, self.remove_node),
            (1, self.replace_node),
            (1, self.change_node),
            (3, self.fail),
            (1, self.stop_watching),
            (2, self.watch_again),
            (1, self.relist),
            (3, self.finish_deletions),
            (1, self.restart),
            (6, self.wait),
        ]

    def run(self, count: int) -> None:
        """Let a number of things happen."""
        weights, happenings = zip(*self._happenings, strict=True)
        for happening in self.random.choices(happenings, weights, k=count):
            self.steps.append(happening.__name__)
            happening()
            if self.random.random() < 0.5:
                self.cluster.settle()

    def end(self) -> None:
        """End all faults, and let time pass until everything that can be has been done, with room for all."""
        self.cluster.stub.heal()
        self.cluster.stub.pods.evictions_allowed = None
        self.cluster.watches = True
        for number in range(1 + sum(_has_port(pod) for pod in self._pods())):
            self.cluster.add_node(f"large{number}", cpu="100")
        for pod in self._pods():
            if pod["spec"].get("schedulingGates"):
                self._change(pod, {"spec": {"schedulingGates": []}})
        self._pass(_LAST_SECONDS)

    def _pass(self, seconds: int) -> None:
        for _ in range(0, seconds, 5):
            self.cluster.stub.finish_deletions()
            self.cluster.advance(5)
        self.cluster.stub.finish_deletions()
        self.cluster.settle()

    def clear(self) -> None:
        """Remove all pods, and let time pass."""
        for pod in self._pods():
            self.cluster.stub.remove(f"{PODS}/{pod['metadata']['name']}")
        self._pass(_LAST_SECONDS)

    # ------------------------------------------------------------------------------------- what is there

    def _pods(self, *, ours: bool = False, on_nodes: bool | None = None) -> list[Document]:
        return [
            pod
            for pod in self.cluster.stub.objects(PODS)
            if pod["status"].get("phase") not in {"Succeeded", "Failed"}
            and (not ours or pod["spec"]["schedulerName"] == "licorne")
            and on_nodes in {None, bool(pod["spec"].get("nodeName"))}
        ]

    def _one(self, **which: Any) -> Document | None:
        pods = self._pods(**which)
        return self.random.choice(pods) if pods else None

    def _change(self, pod: Document, patch: Document) -> None:
        with suppress(StatusError):
            self.cluster.stub.change(f"{PODS}/{pod['metadata']['name']}", patch)

    def _nodes(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.cluster.stub.objects(NODES)]

    def _name(self) -> str:
        self._count += 1
        return f"p{self._count}"

    # ------------------------------------------------------------------------------------- pods

    def add_pod(self) -> None:
        """Add a pod of ours."""
        app = self.random.choice(_APPS)
        more: dict[str, Any] = {}
        if app.startswith("gang"):
            policy = _POLICY + app.removeprefix("gang-").capitalize()
            more["annotations"] = gang_annotations({"minMember": 2}, policy=policy, member="workers")
        queue = self.random.choice(["low", "high", ""])
        if queue:
            more["labels"] = {"queue": f"root.{queue}"}
        if self.random.random() < 0.1:
            more["schedulingGates"] = [{"name": "gate"}]
        if self.random.random() < 0.2:
            more["containers"] = [{"name": "main", "ports": [{"hostPort": 80, "containerPort": 80}]}]
        self.cluster.add_pod(self._name(), app=app, cpu=self.random.choice(["100m", "1", "2"]), **more)

    def add_foreign_pod(self) -> None:
        """Add a pod of another scheduler, perhaps on a node that is not there."""
        node = self.random.choice(["", "n1", "n2", "nowhere"])
        more: dict[str, Any] = {"nodeName": node} if node else {}
        self.cluster.add_pod(self._name(), scheduler="other", **more)

    def delete_pod(self) -> None:
        """Delete a pod, as its owner does."""
        pod = self._one()
        if pod is not None:
            self.cluster.stub.pods.delete(ObjectPath.of(f"{PODS}/{pod['metadata']['name']}"), {})

    def end_pod(self) -> None:
        """Have a pod on a node end."""
        pod = self._one(on_nodes=True)
        if pod is not None:
            self._change(pod, {"status": {"phase": self.random.choice(["Succeeded", "Failed"])}})

    def resize_pod(self) -> None:
        """Give a pod another size."""
        pod = self._one()
        if pod is not None:
            size = {"requests": {"cpu": self.random.choice(["200m", "1500m"])}}
            self._change(pod, {"spec": {"containers": [{"name": "main", "resources": size}]}})

    def relabel_pod(self) -> None:
        """Give a pod another label and a toleration."""
        pod = self._one()
        if pod is not None:
            self._change(pod, {"metadata": {"labels": {"mark": str(self._count)}}})
            self._change(pod, {"spec": {"tolerations": [{"operator": "Exists"}]}})

    def lift_gates(self) -> None:
        """Lift the gates of a pod."""
        pod = self._one()
        if pod is not None and pod["spec"].get("schedulingGates"):
            self._change(pod, {"spec": {"schedulingGates": []}})

    def recreate_pod(self) -> None:
        """Replace a pod by another one of its name."""
        pod = self._one(ours=True)
        if pod is not None:
            name, labels = pod["metadata"]["name"], pod["metadata"].get("labels", {})
            self.cluster.stub.remove(f"{PODS}/{name}")
            if not name.startswith("tg-"):
                self.cluster.add_pod(name, app=labels.get("applicationId", "red"))

    def assign_pod(self) -> None:
        """Assign a pod as somebody else would."""
        pod = self._one(on_nodes=False)
        nodes = self._nodes()
        if pod is not None and nodes and not pod["spec"].get("schedulingGates"):
            self._change(pod, {"spec": {"nodeName": self.random.choice(nodes)}})

    def finish_deletions(self) -> None:
        """Remove what is being deleted, as kubelets do."""
        self.cluster.stub.finish_deletions()

    # ------------------------------------------------------------------------------------- nodes

    def add_node(self) -> None:
        """Add a node."""
        free = [name for name in ("n1", "n2", "n3", "n4") if name not in self._nodes()]
        if free:
            self.cluster.add_node(self.random.choice(free), cpu=self.random.choice(["1", "2", "4"]))

    def remove_node(self) -> None:
        """Remove a node."""
        if self._nodes():
            self.cluster.stub.remove(f"{NODES}/{self.random.choice(self._nodes())}")

    def replace_node(self) -> None:
        """Replace a node by another one of its name."""
        if self._nodes():
            name = self.random.choice(self._nodes())
            self.cluster.stub.remove(f"{NODES}/{name}")
            self.cluster.add_node(name, cpu="2")

    def change_node(self) -> None:
        """Cordon a node or free it, taint it or not, and give it another size."""
        if self._nodes():
            taints = self.random.choice([[], [{"key": "k", "effect": "NoSchedule"}]])
            patch = {
                "spec": {"unschedulable": self.random.random() < 0.5, "taints": taints},
                "status": {"allocatable": {"cpu": self.random.choice(["1", "3"])}},
            }
            self.cluster.stub.change(f"{NODES}/{self.random.choice(self._nodes())}", patch)

    # ------------------------------------------------------------------------------------- faults

    def fail(self) -> None:
        """Have some of the next requests fail."""
        method, path = self.random.choice(_FAULTS)
        times = self.random.randint(1, 4)
        match self.random.randint(0, 2):
            case 0:
                self.cluster.stub.drop(method, path, times=times)
            case 1:
                self.cluster.stub.lose_answer(method, path, times=times)
            case _:
                status = self.random.choice([401, 403, 409, 422, 429, 500, 503])
                self.cluster.stub.fail(method, path, status=status, times=times)

    def stop_watching(self) -> None:
        """Hand nothing over any more."""
        self.cluster.watches = False

    def watch_again(self) -> None:
        """Hand over what has happened meanwhile, or a list if the history is gone."""
        if self.random.random() < 0.3:
            self.cluster.stub.forget_history()
        self.cluster.watches = True

    def relist(self) -> None:
        """Hand over lists."""
        self.cluster.relist()

    def restart(self) -> None:
        """Start anew."""
        self.cluster.watches = True
        self.cluster.restart()

    def wait(self) -> None:
        """Let time pass."""
        self.cluster.advance(self.random.choice([1, 5, 20, 60]))


def _has_port(pod: Document) -> bool:
    """Return whether a pod needs a port of its node for itself."""
    return any(container.get("ports") for container in pod["spec"]["containers"])


SEEDS = 8


@pytest.mark.parametrize("has_placeholder_pods", [True, False], ids=["placeholder pods", "virtual"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_run(seed: int, has_placeholder_pods: bool) -> None:  # noqa: FBT001 - of the table
    """With room for all of them at the end."""
    run = RandomCluster(seed, has_placeholder_pods=has_placeholder_pods)
    cluster = run.cluster
    run.run(80)
    run.end()
    live = [
        pod
        for pod in cluster.stub.objects(PODS)
        if pod["status"]["phase"] not in {"Succeeded", "Failed"} and pod["spec"]["schedulerName"] == "licorne"
    ]

    assert {} == {pod["metadata"]["name"]: pod for pod in live if not pod["spec"].get("nodeName")}
    assert {pod["metadata"]["uid"] for pod in live} == {
        key for key, task in cluster.coordinator.tasks.items() if not task.is_virtual
    }
    assert cluster.pod_places == {key: node for key, node in cluster.core_places.items() if "-tg-" not in key}

    run.clear()
    parts = cluster.parts()
    left = (parts.shared.tasks, parts.shared.applications, cluster.states, cluster.core_places)

    assert ({}, {}, {}, {}) == left
    assert 0 == parts.waiting.count
    cluster.stop()


def test_the_same_seed_gives_the_same_run() -> None:
    """So that what a run has found can be found again."""
    runs = [RandomCluster(7, has_placeholder_pods=False) for _ in range(2)]
    for run in runs:
        run.run(40)
    first, second = ((run.steps, run.cluster.places, run.cluster.core_places) for run in runs)

    assert first[:2] == second[:2]
