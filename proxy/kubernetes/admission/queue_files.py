"""Whether a change of the configuration in the cluster may be stored: its queues have to be usable."""

from __future__ import annotations

from typing import Final, NamedTuple

from ....model.configuration.problems import ConfigurationError
from ....model.configuration.reader import load
from ..mapping.names import CONFIGS_NAME, DEFAULT_NAMESPACE, DEFAULTS_NAME
from ..mapping.settings import ConfigMapError, settings_from_config_maps, values_of_config_maps
from ..objects import ConfigMap
from .reviews import ADMITTED, AdmissionRequest, AdmissionVerdict, denied, object_of
from .settings import admission_settings

_POLICY_GROUP: Final = "service.policyGroup"
_QUEUES: Final = "queues"


class ConfigMapPair(NamedTuple):
    """The two objects that hold the configuration; `None` for one that there is not."""

    defaults: ConfigMap | None = None
    configs: ConfigMap | None = None

    def with_one(self, name: str, item: ConfigMap | None) -> ConfigMapPair:
        """Return the pair with one of the two as it is now; the same pair for the name of another object."""
        if name == DEFAULTS_NAME:
            return self._replace(defaults=item)
        return self._replace(configs=item) if name == CONFIGS_NAME else self


def configuration_verdict(request: AdmissionRequest, held: ConfigMapPair, namespace: str) -> AdmissionVerdict:
    """Return what is answered to a write of an object that may hold the configuration.

    It is denied if the scheduler could not use the queues. Another value that it could not use is a warning:
    it would keep the configuration that it has.

    Args:
        request: The write.
        held: The configuration as it is.
        namespace: Where the configuration is kept; objects of other namespaces are admitted.

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
    """Return what keeps the settings from coming into effect."""
    found: list[str] = []
    for read in (settings_from_config_maps, admission_settings):
        try:
            read(*pair)
        except ConfigMapError as error:
            found.append(str(error))
    return tuple(dict.fromkeys(found))
