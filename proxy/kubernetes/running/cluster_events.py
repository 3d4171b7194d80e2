"""Events of the watches as changes of the cache and requests to the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

from ...si import si_pb2 as si
from ..mapping.applications import namespace_tags
from ..mapping.asks import foreign_allocation, foreign_release, node_changes, node_info
from ..mapping.pod_sizes import pod_resource
from ..mapping.settings import counts_as_foreign, is_ours
from ..objects import KubernetesNode, Namespace, Pod, PriorityClass
from .left_out import LeftOut, bare_object
from .life import PodLife
from .shared_parts import SharedParts
from .task_effects import neighbour_came


@final
class ClusterEvents:
    """Handles present and removed objects; used by one thread."""

    def __init__(self, parts: SharedParts, life: PodLife, left_out: LeftOut) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._cache = parts.cache
        self._requests = parts.requests
        self._reporter = parts.reporter
        self._reconsidering = parts.reconsidering
        self._life = life
        self._left_out = left_out
        self._foreign: dict[str, dict[str, int]] = {}
        """The sizes of the pods of other schedulers that our scheduler knows, by uid."""

    def seen(self, item: Any) -> None:
        """Handle a new or changed object; an unusable one counts as gone."""
        if self._left_out.has(item):
            self._gone(bare_object(item))
            return
        try:
            self._seen(item)
        except Exception as error:
            self._left_out.add(item, repr(error))
            self._gone(item)
            raise

    def _seen(self, item: Any) -> None:
        match item:
            case Pod():
                self._pod_seen(item)
            case KubernetesNode():
                self._node_seen(item)
            case Namespace():
                before = self._cache.namespaces.get(item.metadata.name)
                is_new = before is None or namespace_tags(before) != namespace_tags(item)
                if self._cache.put_namespace(item):
                    self._reconsidering.neighbours_changed()
                if is_new:
                    self._life.namespace_seen(item.metadata.name)
            case PriorityClass():
                self._cache.priority_classes[item.metadata.name] = item
            case _ if type(item) in self._cache.groups:
                if self._cache.put_group(item):
                    self._life.groups_changed()
            case _:
                self._cache.put_storage(item)
                self._storage_changed()

    def gone(self, item: Any) -> None:
        """Handle an object that no longer exists."""
        self._left_out.forget(item)
        self._gone(bare_object(item))

    def _gone(self, item: Any) -> None:
        name = item.metadata.name
        match item:
            case Pod():
                self._pod_gone(item)
            case KubernetesNode():
                self._node_gone(name)
            case Namespace():
                self._cache.remove_namespace(name)
            case PriorityClass():
                self._cache.priority_classes.pop(name, None)
            case _ if type(item) in self._cache.groups:
                self._cache.remove_group(item)
            case _:
                self._cache.remove_storage(item)
                self._storage_changed()

    def not_among(self, kind: type, items: Sequence[Any]) -> list[Any]:
        """Return the known objects of a kind that are not among its present ones: they are gone."""
        self._left_out.keep_only(kind, items)
        uids = {item.metadata.uid for item in items}
        return [item for item in self._known(kind) if item.metadata.uid not in uids]

    def _known(self, kind: type) -> Iterable[Any]:
        cache = self._cache
        known: dict[type, Iterable[Any]] = {
            Pod: (pod for key, pod in cache.pods.items() if not self._is_virtual(key)),
            KubernetesNode: (state.node for state in cache.nodes.values()),
            Namespace: cache.namespaces.values(),
            PriorityClass: cache.priority_classes.values(),
            **{kind: kept.values() for kind, kept in (*cache.storage.items(), *cache.groups.items())},
        }
        return known[kind]

    def _is_virtual(self, uid: str) -> bool:
        """Return whether the cluster has no such pod: it stands for a placeholder."""
        task = self._parts.tasks.get(uid)
        return task is not None and task.is_virtual

    # ------------------------------------------------------------------------------------- pods

    def _pod_seen(self, pod: Pod) -> None:
        if pod.is_terminal:
            self._pod_gone(pod)
            return
        before = self._cache.put_pod(pod)
        if is_ours(pod, self._settings):
            self._life.pod_seen(pod)
        else:
            self._tell_foreign(pod)
        if _is_another_neighbour(before, pod):
            neighbour_came(self._parts, pod)
            self._reconsidering.neighbours_changed()

    def _tell_foreign(self, pod: Pod) -> None:
        """Report a pod of another scheduler that uses room on a node, once for each size."""
        uid = pod.metadata.uid
        if not counts_as_foreign(pod, self._settings) or pod.spec.node_name not in self._cache.nodes:
            return
        size = pod_resource(pod)
        if self._foreign.get(uid) != size:
            self._foreign[uid] = size
            self._requests.add(foreign_allocation(pod, self._settings))
            self._reconsidering.neighbours_changed()

    def _pod_gone(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if self._cache.remove_pod(uid) is None:
            return
        if self._foreign.pop(uid, None) is not None:
            self._requests.add(foreign_release(pod))
        task = self._parts.tasks.get(uid)
        if task is not None and task.has_node and pod.status.reason.startswith("OutOf"):
            note = f"node {task.node_name} has refused the pod: {pod.status.reason}"
            self._reporter.event(pod, "NodeRefusedPod", "Scheduling", note, is_warning=True)
        if task is not None and pod.is_terminal:
            task.application.has_failed = pod.status.phase == "Failed"
        self._life.pod_gone(uid)
        self._reconsidering.neighbours_changed()

    # ------------------------------------------------------------------------------------- nodes

    def _node_seen(self, node: KubernetesNode) -> None:
        before = self._cache.put_node(node)
        name = node.metadata.name
        if before is None:
            self._add_node(node)
        elif before.metadata.uid != node.metadata.uid:  # another node now has its name
            self._node_gone(name)
            self._cache.put_node(node)
            self._add_node(node)
        else:
            for action in node_changes(before, node):
                self._requests.add(node_info(node, action, self._settings))
            if _is_judged_otherwise(before, node):
                self._reconsidering.node_changed(name)

    def _add_node(self, node: KubernetesNode) -> None:
        """Report a node with its running pods, before anything is placed on it."""
        self._requests.add(node_info(node, si.NodeInfo.CREATE_DRAIN, self._settings))
        self.adopt(node.metadata.name)
        self._requests.add(node_info(node, si.NodeInfo.DRAIN_TO_SCHEDULABLE, self._settings))

    def adopt(self, node_name: str) -> None:
        """Report the pods on a node."""
        for pod in self._cache.pods_on(node_name):
            if not is_ours(pod, self._settings):
                self._tell_foreign(pod)
        self._life.adopt(node_name)

    def _node_gone(self, name: str) -> None:
        state = self._cache.nodes.get(name)
        if state is None:
            return
        for pod in self._cache.pods_on(name):
            self._foreign.pop(pod.metadata.uid, None)
        self._cache.remove_node(name)
        self._requests.add(node_info(state.node, si.NodeInfo.DECOMISSION, self._settings))
        self._reconsidering.neighbours_changed()

    def _storage_changed(self) -> None:
        self._life.storage_changed()
        self._reconsidering.everything_changed()


def _is_judged_otherwise(before: KubernetesNode, after: KubernetesNode) -> bool:
    """Return whether the answer of a filter about a node may have changed."""
    return _judged_by(before) != _judged_by(after)


def _judged_by(node: KubernetesNode) -> tuple[object, ...]:
    return node.metadata.labels, node.spec, node.status.declared_features


def _is_another_neighbour(before: Pod | None, after: Pod) -> bool:
    """Return whether a pod is newly on a node, or has other labels."""
    if before is None or not before.spec.node_name:
        return bool(after.spec.node_name)
    return before.metadata.labels != after.metadata.labels
