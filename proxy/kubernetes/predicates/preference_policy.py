"""The policy that orders nodes by the preferences of pods.

Queues name it as the order of nodes (`nodesortpolicy`). Pods of one class prefer the same nodes: the weighted
sum of the scores decides, and among equal nodes the room. The scheduler may place several pods before the
cluster has the first of them on its node, so the policy counts a placed pod at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Final, Protocol, final

from ....model.nodes.order import DEFAULT_WEIGHTS
from ....model.policies.interface import AskView, NodeView
from ....model.resources.resource import weighted_usage
from ..objects import KubernetesNode, Pod
from .cluster_view import ChangedNodes, ClusterView, NodeState
from .neighbour_filters import rule_key
from .preferences import SCORE_WEIGHTS, PodPreferences, TermIndex, has_preferences
from .verdicts import node_conditions, refusal_of_node

_CLASSES_MAX: Final = 64
_CLASS_BYTES: Final = 12
_WEIGHTS: Final = tuple(DEFAULT_WEIGHTS.items())


class PodView(ClusterView, Protocol):
    """A cluster as the filters see it, with its pods."""

    @property
    def pods(self) -> Mapping[str, Pod]:
        """All pods that have not ended, by uid."""
        ...

    def node_of(self, uid: str) -> str:
        """Return the node of a pod, empty for none."""
        ...


@final
class CurrentCluster:
    """The cluster of a running scheduler of pods, `None` until the scheduler knows it."""

    def __init__(self) -> None:
        self.view: PodView | None = None


@final
class ExpectedNodes:
    """The nodes of a cluster, with the pods that were placed and that the cluster does not have there yet."""

    def __init__(self, view: PodView) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.node_changes = ChangedNodes()
        self._view = view
        self._change_count = -1
        """The number of changes of the cluster that are followed, -1 for none."""
        self._placed: dict[str, str] = {}
        """The nodes of the placed pods, by uid."""
        self._changed: dict[str, None] = {}

    def place(self, uid: str, node_name: str) -> None:
        """Count a pod on a node until the cluster has it on one."""
        self.forget(uid)
        self._placed[uid] = node_name
        self._changed[node_name] = None

    def forget(self, uid: str) -> None:
        """Stop counting a pod that waits for a node again."""
        node_name = self._placed.pop(uid, None)
        if node_name is not None:
            self._changed[node_name] = None

    def refresh(self) -> None:
        """Follow the changes of the cluster."""
        view = self._view
        count = len(view.node_changes)
        names = view.node_changes.after(self._change_count) if self._change_count >= 0 else None
        self._change_count = count if names is None else self._change_count + len(names)
        for uid in list(self._placed):
            if uid not in view.pods or view.node_of(uid):
                self.forget(uid)
        changed, self._changed = self._changed, {}
        if names is None:
            names = [*list(view.nodes), *self.nodes]
        for name in dict.fromkeys([*changed, *names]):
            self._put(name)

    def _put(self, name: str) -> None:
        state = self._view.nodes.get(name)
        pods = [self._view.pods.get(uid) for uid, node_name in self._placed.items() if node_name == name]
        placed = tuple(pod for pod in pods if pod is not None)
        if state is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = NodeState(state.node, state.pods + placed) if placed else state
        self.node_changes.add(name)


@dataclass(slots=True)
class _PodClass:
    """The pods that prefer the same nodes."""

    pod: Pod
    preferences: PodPreferences
    version: int = 0
    """Grows with each change of a score."""
    change_count: int = -1
    """The number of changes of nodes that the scores follow, -1 for none."""
    totals: dict[str, int] = field(default_factory=dict)
    """The weighted sums of scores by node; nodes that refuse the pods have none."""
    accepted: dict[str, tuple[KubernetesNode, bool]] = field(default_factory=dict)
    """The nodes as they were, and whether they accept the pods."""

    def refresh(self, expected: ExpectedNodes) -> None:
        """Compare the nodes again if any has changed."""
        count = len(expected.node_changes)
        if self.change_count == count:
            return
        self.change_count = count
        self.preferences.refresh(expected.nodes, expected.node_changes)
        self.accepted = {name: self._judged(name, state.node) for name, state in expected.nodes.items()}
        candidates = [state for name, state in expected.nodes.items() if self.accepted[name][1]]
        totals = dict.fromkeys((state.node.metadata.name for state in candidates), 0)
        for plugin, scores in self.preferences.scores(candidates).items():
            for name, score in zip(totals, scores, strict=True):
                totals[name] += SCORE_WEIGHTS[plugin] * score
        if totals != self.totals:
            self.totals = totals
            self.version += 1

    def _judged(self, name: str, node: KubernetesNode) -> tuple[KubernetesNode, bool]:
        before = self.accepted.get(name)
        if before is not None and before[0] is node:
            return before
        return node, refusal_of_node(self.pod, node) is None


class _KnownCluster:
    """A cluster, and what is counted in it."""

    def __init__(self, view: PodView) -> None:
        self.view = view
        self.expected = ExpectedNodes(view)
        self.terms = TermIndex()
        self.classes: dict[str, _PodClass] = {}
        """The classes of pods by name, the one that was asked about last at the end."""

    def refresh(self) -> None:
        """Follow the changes of the cluster."""
        self.expected.refresh()
        self.terms.refresh(self.expected.nodes, self.expected.node_changes)


@final
class PreferencePolicy:
    """Orders nodes by what pods prefer, and other nodes by their room.

    Args:
        cluster: The cluster; while it is unknown, no pod prefers anything.
        fullest_first: Whether the fullest of equal nodes is first, otherwise the emptiest.
    """

    def __init__(self, cluster: CurrentCluster, *, fullest_first: bool = False) -> None:
        self._cluster = cluster
        self._fullest_first = fullest_first
        self._known: _KnownCluster | None = None

    def node_key(self, node: NodeView) -> float:
        """Return the share of a node that is in use, or that is free."""
        usage = weighted_usage(node.capacity, node.available, _WEIGHTS)
        return 1.0 - usage if self._fullest_first else usage

    def ask_class(self, ask: AskView) -> str:
        """Return the class of a pod, empty if no node is preferred for it."""
        known = self._followed()
        pod = None if known is None else known.view.pods.get(ask.allocation_key)
        if known is None or pod is None:
            return ""
        known.expected.forget(ask.allocation_key)
        known.refresh()
        imposed = known.terms.about(pod, known.view.namespaces)
        if not imposed and not has_preferences(pod):
            return ""
        preferences = PodPreferences(pod, known.view.namespaces, imposed)
        text = preferences.key + rule_key(node_conditions(pod))
        name = blake2b(text, digest_size=_CLASS_BYTES).hexdigest()
        pods = known.classes.pop(name) if name in known.classes else _PodClass(pod, preferences)
        known.classes[name] = pods
        if len(known.classes) > _CLASSES_MAX:
            del known.classes[next(iter(known.classes))]
        return name

    def class_version(self, ask_class: str) -> str:
        """Return a text that changes with the scores of nodes for a class."""
        known = self._followed()
        pods = None if known is None else known.classes.get(ask_class)
        if known is None or pods is None:
            return ""
        known.refresh()
        pods.refresh(known.expected)
        return str(pods.version)

    def node_key_for(self, ask_class: str, node: NodeView) -> float:
        """Return the weighted sum of the scores of a node for a class, negated, and its room."""
        pods = None if self._known is None else self._known.classes.get(ask_class)
        total = 0 if pods is None else pods.totals.get(node.node_id, 0)
        return self.node_key(node) / 2 - total  # Room alone never outweighs a whole number.

    def placed(self, ask: AskView, node_id: str) -> None:
        """Count a pod on its node."""
        known = self._followed()
        if known is not None:
            known.expected.place(ask.allocation_key, node_id)

    def _followed(self) -> _KnownCluster | None:
        """Return what is known of the present cluster, `None` before there is one."""
        view = self._cluster.view
        if view is None:
            self._known = None
        elif self._known is None or self._known.view is not view:
            self._known = _KnownCluster(view)
        return self._known


def preference_policies(cluster: CurrentCluster) -> dict[str, Callable[[], object]]:
    """Return the policies that queues may name, by name."""
    return {
        "pod-preferences": partial(PreferencePolicy, cluster),
        "pod-preferences-binpacking": partial(PreferencePolicy, cluster, fullest_first=True),
    }
