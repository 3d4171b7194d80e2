"""The configuration that the cluster keeps: two config maps, read at the start and whenever they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..mapping.names import CONFIGS_NAME, DEFAULTS_NAME
from ..mapping.settings import (
    ConfigMapError,
    ConfigMapsRead,
    KubernetesSettings,
    reloaded,
    settings_from_config_maps,
)
from ..objects import ConfigMap


@final
class ClusterConfiguration:
    """Keeps the two config maps; used by one thread.

    Args:
        defaults: The settings where the config maps say nothing.
        queues: The queues, as YAML, if the config maps have none.
        log: Where changes are logged.
        report: Is called with a config map that is bad, and why; the configuration stays as it is.
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
        self._read: ConfigMapsRead | None = None
        """What is in force."""

    def put(self, item: ConfigMap) -> bool:
        """Take a config map that is new or has changed; return whether it is one of the two."""
        name = item.metadata.name
        if name not in {DEFAULTS_NAME, CONFIGS_NAME}:
            return False
        before = self._maps.get(name)
        self._maps[name] = item
        return before is None or (before.data, before.binary_data) != (item.data, item.binary_data)

    def remove(self, name: str) -> bool:
        """Take that a config map is gone, as if it were empty; return whether it is one of the two."""
        return self._maps.pop(name, None) is not None

    def replace(self, items: list[ConfigMap]) -> bool:
        """Take all config maps as they are now; return whether one of the two has changed."""
        names = {item.metadata.name for item in items}
        changes = [self.remove(name) for name in list(self._maps) if name not in names]
        changes += [self.put(item) for item in items]
        return any(changes)

    def read(self) -> ConfigMapsRead:
        """Read the configuration for the start.

        Raises:
            ConfigMapError: A value is bad; it is reported.
        """
        try:
            read = settings_from_config_maps(
                self._maps.get(DEFAULTS_NAME), self._maps.get(CONFIGS_NAME), self._defaults
            )
        except ConfigMapError as error:
            self.refused(error)
            raise
        self._read = read if read.queue_yaml else read._replace(queue_yaml=self._queues)
        return self._read

    def reload(self, update: Callable[[ConfigMapsRead], None]) -> None:
        """Have a changed configuration take effect, as far as it can while the scheduler runs.

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
        """Report that the configuration is bad, on the config map that says the most."""
        self._log.error("the configuration of the cluster is refused: {}", error)
        for name in (CONFIGS_NAME, DEFAULTS_NAME):
            if name in self._maps:
                self._report(self._maps[name], str(error))
                return
