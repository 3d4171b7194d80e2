"""The cluster as the webhook knows it: namespaces, priority classes and the configuration.

Watches deliver them. An API server may ask about an object of a namespace that was just created: an object
that no watch has delivered yet is requested once, and counts as missing without an answer in time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, final
from urllib.parse import quote

import msgspec

from ....actors.services.log import Log
from ....model.configuration.problems import ConfigurationError
from ....model.configuration.reader import load
from ....model.errors import LicorneError
from ..client.api_client import ApiClient
from ..client.list_watch import ListWatch, Read, UnreadableObject, WatchChange, WatchedResource
from ..mapping.settings import (
    CONFIGS_NAME,
    DEFAULT_NAMESPACE,
    DEFAULTS_NAME,
    ConfigMapError,
    settings_from_config_maps,
    values_of_config_maps,
)
from ..objects import ConfigMap, Namespace, ObjectMeta, PriorityClass
from .reviews import ADMITTED, AdmissionRequest, AdmissionVerdict, denied, object_of
from .settings import AdmissionSettings, admission_settings

_NAMESPACES: Final = "/api/v1/namespaces"
_PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_ASK_SECONDS: Final = 2.0
"""How long a request for an unknown object may take; the API server waits for ten in all."""
_POLICY_GROUP: Final = "service.policyGroup"
_QUEUES: Final = "queues"


class UnlistedError(LicorneError):
    """The API server has not listed the required objects in time."""


class _Named(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


_Object = TypeVar("_Object", bound=_Named)


@final
class AdmissionObjects:
    """Follows the cluster from `start` to `stop`. Threads share it.

    Args:
        client: The API server.
        namespace: The namespace of the configuration.
        log: The log for failures.
    """

    def __init__(self, client: ApiClient, namespace: str, log: Log) -> None:
        self._client = client
        self._log = log
        self._namespaces: dict[str, Namespace] = {}
        self._classes: dict[str, PriorityClass] = {}
        self._pair = ConfigMapPair()
        self._settings = AdmissionSettings()
        self._bad_start: ConfigMapError | None = None
        maps = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
        self._listed = [threading.Event() for _ in range(3)]
        self._watches = (
            self._followed(WatchedResource(_NAMESPACES, Namespace), self._namespaces, self._listed[0]),
            self._followed(WatchedResource(_PRIORITY_CLASSES, PriorityClass), self._classes, self._listed[1]),
            ListWatch(
                client,
                WatchedResource(maps, ConfigMap),
                on_list=self._maps_listed,
                on_events=self._maps_changed,
                log=log,
            ),
        )

    def _followed(
        self, resource: WatchedResource[_Object], held: dict[str, _Object], listed: threading.Event
    ) -> ListWatch[_Object]:
        """Return a watch that keeps objects by their names."""

        def replace(items: Sequence[Read[_Object]], _: str) -> None:
            # In this order a reader finds each object that existed before and still exists.
            held.update({item.metadata.name: item for item in _readable(items)})
            for name in held.keys() - {item.metadata.name for item in items}:
                held.pop(name, None)
            listed.set()

        def change(changes: Sequence[tuple[WatchChange, Read[_Object]]]) -> None:
            for kind, item in changes:
                if kind is WatchChange.DELETED:
                    held.pop(item.metadata.name, None)
                elif not isinstance(item, UnreadableObject):
                    held[item.metadata.name] = item

        return ListWatch(self._client, resource, on_list=replace, on_events=change, log=self._log)

    def start(self, timeout_seconds: float) -> None:
        """Begin to follow, and return when all objects are listed.

        Raises:
            UnlistedError: The objects were not listed in time.
            ConfigMapError: A value of the configuration cannot be read.
        """
        for watch in self._watches:
            watch.start()
        for listed in self._listed:
            if not listed.wait(timeout_seconds):
                failures = [str(watch.failure) for watch in self._watches if watch.failure is not None]
                raise UnlistedError(
                    f"the API server has not listed namespaces, priority classes and the configuration "
                    f"within {timeout_seconds} s: {'; '.join(failures) or 'no answer'}"
                )
        if self._bad_start is not None:
            raise self._bad_start

    def stop(self) -> None:
        """Stop following."""
        for watch in self._watches:
            watch.stop()

    # ------------------------------------------------------------------------------------- known objects

    @property
    def settings(self) -> AdmissionSettings:
        """The settings in force."""
        return self._settings

    @property
    def config_maps(self) -> ConfigMapPair:
        """The present configuration, usable or not."""
        return self._pair

    def namespace(self, name: str) -> Namespace | None:
        """Return a namespace, `None` if it is unknown."""
        return self._namespaces.get(name) or self._asked(_NAMESPACES, name, Namespace)

    def priority_class(self, name: str) -> PriorityClass | None:
        """Return a priority class, `None` if it is unknown."""
        return self._classes.get(name) or self._asked(_PRIORITY_CLASSES, name, PriorityClass)

    def _asked(self, path: str, name: str, kind: type[_Object]) -> _Object | None:
        """Request an object that no watch has delivered."""
        try:
            body = self._client.request(
                "GET", f"{path}/{quote(name, safe='')}", timeout_seconds=_ASK_SECONDS, patience_seconds=0.0
            )
            return msgspec.json.decode(body, type=kind)
        except (LicorneError, msgspec.DecodeError) as error:
            self._log.warning("nothing is known of {}/{}: {}", path, name, error)
            return None

    # --------------------------------------------------------------------------------- the configuration

    def _maps_listed(self, items: Sequence[Read[ConfigMap]], _: str) -> None:
        by_name = {item.metadata.name: item for item in _readable(items)}
        self._take(ConfigMapPair(by_name.get(DEFAULTS_NAME), by_name.get(CONFIGS_NAME)))
        self._listed[2].set()

    def _maps_changed(self, changes: Sequence[tuple[WatchChange, Read[ConfigMap]]]) -> None:
        pair = self._pair
        for kind, item in changes:
            if kind is WatchChange.DELETED:
                pair = pair.with_one(item.metadata.name, None)
            elif not isinstance(item, UnreadableObject):
                pair = pair.with_one(item.metadata.name, item)
        if pair != self._pair:
            self._take(pair)

    def _take(self, pair: ConfigMapPair) -> None:
        """Put a configuration into force if its values can be read and changes are allowed."""
        self._pair = pair
        is_first = not self._listed[2].is_set()
        if not is_first and not self._settings.hot_reload:
            return
        try:
            self._settings = admission_settings(*pair)
        except ConfigMapError as error:
            self._log.error("the settings of the admission webhook stay as they are: {}", error)
            if is_first:
                self._bad_start = error


def _readable(items: Sequence[Read[_Object]]) -> Iterator[_Object]:
    """Return the readable objects; an unreadable one keeps its known value, or is requested."""
    return (item for item in items if not isinstance(item, UnreadableObject))


class ConfigMapPair(NamedTuple):
    """The two objects that hold the configuration; `None` for a missing one."""

    defaults: ConfigMap | None = None
    configs: ConfigMap | None = None

    def with_one(self, name: str, item: ConfigMap | None) -> ConfigMapPair:
        """Return the pair with the new state of one of the two; the same pair for another object."""
        if name == DEFAULTS_NAME:
            return self._replace(defaults=item)
        return self._replace(configs=item) if name == CONFIGS_NAME else self


def configuration_verdict(request: AdmissionRequest, held: ConfigMapPair, namespace: str) -> AdmissionVerdict:
    """Return the verdict on a write of an object that may hold the configuration.

    It is denied if the scheduler could not use the queues. Any other unusable value is a warning: the
    scheduler would keep its present configuration.

    Args:
        request: The write.
        held: The present configuration.
        namespace: The namespace of the configuration; objects of other namespaces are admitted.

    Raises:
        UnreadableReviewError: The object cannot be read.
    """
    if request.kind.kind != "ConfigMap" or (request.namespace or DEFAULT_NAMESPACE) != namespace:
        return ADMITTED
    item = object_of(request.object, ConfigMap)
    if item.metadata.name not in {DEFAULTS_NAME, CONFIGS_NAME}:
        return ADMITTED
    pair = held.with_one(item.metadata.name, item)
    try:
        values = values_of_config_maps(*pair)
    except ConfigMapError as error:
        return denied(str(error))
    group = values[_POLICY_GROUP].text if _POLICY_GROUP in values else _QUEUES
    queues = values.get(f"{group}.yaml")
    if queues is not None and queues.text:
        try:
            load(queues.text, source=f"ConfigMap {queues.map_name}: {queues.key}")
        except ConfigurationError as error:
            return denied(str(error))
    return AdmissionVerdict(warnings=_warnings(pair))


def _warnings(pair: ConfigMapPair) -> tuple[str, ...]:
    """Return the reasons why the settings cannot take effect."""
    found: list[str] = []
    for read in (settings_from_config_maps, admission_settings):
        try:
            read(*pair)
        except ConfigMapError as error:
            found.append(str(error))
    return tuple(dict.fromkeys(found))
