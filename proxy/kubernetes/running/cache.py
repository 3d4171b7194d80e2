"""The cluster as the watches report it, with the pods that are assumed on nodes until then.

One thread writes it. The scheduling thread reads it meanwhile: the values that it reads are replaced whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..client.list_watch import Read, UnreadableObject
from ..mapping.settings import (
    CONFIGS_NAME,
    DEFAULTS_NAME,
    ConfigMapError,
    ConfigMapsRead,
    KubernetesSettings,
    reloaded,
    settings_from_config_maps,
)
from ..objects import (
    ConfigMap,
    KubernetesNode,
    Namespace,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    StorageClass,
)
from ..predicates.cluster_view import ChangedNodes, NodeState
from ..storage_objects import CsiDriver, CsiStorageCapacity


def _full_name(metadata: ObjectMeta) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


@final
class ClusterCache:
    """The objects of the cluster by name, and the pods by uid and by node."""

    def __init__(self) -> None:
        self.version = 0
        """The number of changes of objects that a filter reads."""
        self.node_changes = ChangedNodes()
        self.nodes: dict[str, NodeState] = {}
        self.anti_affinity_nodes: dict[str, NodeState] = {}
        """The nodes with pods that have anti-affinity."""
        self.namespaces: dict[str, Namespace] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.claims: dict[str, PersistentVolumeClaim] = {}
        """The claims by `namespace/name`."""
        self.volumes: dict[str, PersistentVolume] = {}
        self.storage_classes: dict[str, StorageClass] = {}
        self.csi_drivers: dict[str, CsiDriver] = {}
        self.storage_capacities: dict[str, CsiStorageCapacity] = {}
        """The room for new volumes by `namespace/name`."""
        self.storage: Final[Mapping[type, dict[str, Any]]] = {
            PersistentVolumeClaim: self.claims,
            PersistentVolume: self.volumes,
            StorageClass: self.storage_classes,
            CsiDriver: self.csi_drivers,
            CsiStorageCapacity: self.storage_capacities,
        }
        """The objects of storage by kind."""
        self.groups: Final[dict[type, dict[str, Any]]] = {}
        """The groups of pods by kind, and by `namespace/name`; a kind that the cluster does not have is
        missing."""
        self._pods: dict[str, Pod] = {}
        self._node_of: dict[str, str] = {}
        """The node of each assigned or assumed pod, by the uid of the pod."""
        self._assumed: set[str] = set()
        self._on: dict[str, dict[str, Pod]] = {}
        """The pods of each node by uid, also of unknown nodes."""

    def put_storage(self, item: Any) -> None:
        """Store an object of storage."""
        self.storage[type(item)][_full_name(item.metadata)] = item

    def remove_storage(self, item: Any) -> None:
        """Remove an object of storage, if it is known."""
        self.storage[type(item)].pop(_full_name(item.metadata), None)

    def put_group(self, item: Any) -> bool:
        """Store a group of pods; return whether it is new."""
        groups, name = self.groups[type(item)], _full_name(item.metadata)
        is_new = name not in groups
        groups[name] = item
        return is_new

    def remove_group(self, item: Any) -> None:
        """Remove a group of pods, if it is known."""
        self.groups[type(item)].pop(_full_name(item.metadata), None)

    # ------------------------------------------------------------------------------------- pods

    @property
    def pods(self) -> Mapping[str, Pod]:
        """All pods that have not ended, by uid."""
        return self._pods

    def put_pod(self, pod: Pod) -> Pod | None:
        """Store a pod that has not ended; return its previous state, `None` if it is new."""
        uid = pod.metadata.uid
        before = self._pods.get(uid)
        self._pods[uid] = pod
        if pod.spec.node_name:
            self._assumed.discard(uid)
            self._place(uid, pod, pod.spec.node_name)
        elif uid in self._assumed:
            self._place(uid, pod, self._node_of[uid])
        return before

    def remove_pod(self, uid: str) -> Pod | None:
        """Remove a pod that is gone or has ended; return it, `None` if it was unknown."""
        self._assumed.discard(uid)
        self._unplace(uid)
        return self._pods.pop(uid, None)

    def assume(self, uid: str, node_name: str) -> None:
        """Count a pod on a node before it is assigned there."""
        self._assumed.add(uid)
        self._place(uid, self._pods[uid], node_name)

    def forget_assumption(self, uid: str) -> None:
        """Stop counting a pod on a node, unless it is assigned to it."""
        if uid in self._assumed:
            self._assumed.discard(uid)
            self._unplace(uid)

    def pods_on(self, node_name: str) -> Iterable[Pod]:
        """Return the pods on a node, including the assumed ones; also of an unknown node."""
        return tuple(self._on.get(node_name, {}).values())

    def node_of(self, uid: str) -> str:
        """Return the node of a pod, assigned or assumed, empty for none."""
        return self._node_of.get(uid, "")

    def _place(self, uid: str, pod: Pod, node_name: str) -> None:
        before = self._node_of.get(uid)
        if before not in (None, node_name):
            self._unplace(uid)
        self._node_of[uid] = node_name
        self._on.setdefault(node_name, {})[uid] = pod
        self._publish(node_name)

    def _unplace(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        pods = self._on[node_name]
        del pods[uid]
        if not pods:
            del self._on[node_name]
        self._publish(node_name)

    def _publish(self, node_name: str) -> None:
        state = self.nodes.get(node_name)
        if state is not None:
            self._put_state(node_name, state.node)

    def _put_state(self, node_name: str, node: KubernetesNode) -> None:
        state = NodeState(node, tuple(self._on.get(node_name, {}).values()))
        self.nodes[node_name] = state
        if state.anti_affinity_pods:
            self.anti_affinity_nodes[node_name] = state
        else:
            self.anti_affinity_nodes.pop(node_name, None)
        self._note_change(node_name)

    def _note_change(self, node_name: str) -> None:
        self.node_changes.add(node_name)
        self.version += 1

    # ------------------------------------------------------------------------------------- nodes and others

    def put_node(self, node: KubernetesNode) -> KubernetesNode | None:
        """Store a node; return its previous state, `None` if it is new."""
        name = node.metadata.name
        before = self.nodes.get(name)
        self._put_state(name, node)
        return None if before is None else before.node

    def remove_node(self, name: str) -> bool:
        """Remove a node; return whether it was known."""
        was_known = self.nodes.pop(name, None) is not None
        self.anti_affinity_nodes.pop(name, None)
        self._note_change(name)
        return was_known

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace."""
        self.namespaces.pop(name, None)
        self.version += 1

    def put_namespace(self, namespace: Namespace) -> bool:
        """Store a namespace; return whether its labels have changed."""
        before = self.namespaces.get(namespace.metadata.name)
        self.namespaces[namespace.metadata.name] = namespace
        self.version += 1
        return before is None or before.metadata.labels != namespace.metadata.labels


@final
class ClusterConfiguration:
    """Keeps the two config maps; used by one thread.

    Args:
        defaults: The settings for keys that the config maps lack.
        queues: The queues, as YAML, if the config maps have none.
        log: The log for changes.
        report: Is called with a bad config map and the reason; the configuration does not change.
    """

    def __init__(
        self,
        defaults: KubernetesSettings,
        queues: str,
        log: Log,
        report: Callable[[ConfigMap, str], None],
    ) -> None:
        self._defaults = defaults
        self._queues = queues
        self._log = log
        self._report = report
        self._maps: dict[str, ConfigMap] = {}
        self._unreadable: dict[str, UnreadableObject] = {}
        """The existing config maps that cannot be read now."""
        self._read: ConfigMapsRead | None = None
        """The configuration in force."""

    def put(self, item: Read[ConfigMap]) -> bool:
        """Store a new or changed config map; return whether it is one of the two."""
        name = item.metadata.name
        if name not in {DEFAULTS_NAME, CONFIGS_NAME}:
            return False
        if isinstance(item, UnreadableObject):
            self._unreadable[name] = item
            return True
        before, was_unreadable = self._maps.get(name), self._unreadable.pop(name, None) is not None
        self._maps[name] = item
        return (
            before is None
            or was_unreadable
            or (before.data, before.binary_data) != (item.data, item.binary_data)
        )

    def remove(self, name: str) -> bool:
        """Treat a removed config map as an empty one; return whether it is one of the two."""
        was_unreadable = self._unreadable.pop(name, None) is not None
        return self._maps.pop(name, None) is not None or was_unreadable

    def replace(self, items: list[Read[ConfigMap]]) -> bool:
        """Replace all config maps; return whether one of the two has changed."""
        names = {item.metadata.name for item in items}
        changes = [self.remove(name) for name in (DEFAULTS_NAME, CONFIGS_NAME) if name not in names]
        changes += [self.put(item) for item in items]
        return any(changes)

    def read(self) -> ConfigMapsRead:
        """Read the configuration for the start.

        Raises:
            ConfigMapError: A value is bad, or an object cannot be read; it is reported.
        """
        try:
            self._check_readable()
            read = settings_from_config_maps(
                self._maps.get(DEFAULTS_NAME), self._maps.get(CONFIGS_NAME), self._defaults
            )
        except ConfigMapError as error:
            self.refused(error)
            raise
        self._read = read if read.queue_yaml else read._replace(queue_yaml=self._queues)
        return self._read

    def _check_readable(self) -> None:
        for name, item in self._unreadable.items():
            raise ConfigMapError(f"ConfigMap {name} cannot be read: {item.reason}")

    def reload(self, update: Callable[[ConfigMapsRead], None]) -> None:
        """Put a changed configuration into force, as far as possible while the scheduler runs.

        Args:
            update: Gives the queues to the scheduler; raises a `LicorneError` if they are bad.
        """
        before = self._read
        if before is None or not before.settings.hot_reload:
            return
        try:
            read = self.read()
            settings, needs_restart = reloaded(before.settings, read.settings)
            self._read = read._replace(settings=settings)
            if needs_restart:
                self._log.warning("these settings take effect with a restart: {}", ", ".join(needs_restart))
            update(self._read)
        except LicorneError as error:
            self._read = before
            if not isinstance(error, ConfigMapError):
                self.refused(error)

    def refused(self, error: LicorneError) -> None:
        """Report a bad configuration, on an unreadable config map or else on the overriding one."""
        self._log.error("the configuration of the cluster is refused: {}", error)
        unreadable = {name: ConfigMap(metadata=item.metadata) for name, item in self._unreadable.items()}
        for maps in (unreadable, self._maps):
            for name in (CONFIGS_NAME, DEFAULTS_NAME):
                if name in maps:
                    self._report(maps[name], str(error))
                    return
