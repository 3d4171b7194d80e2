"""The cluster: the resource managers, their partitions, and the configuration they run with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

from .configuration.checksum import checksum
from .configuration.reader import (
    DEFAULT_CONFIGURATION,
    ConfigurationError,
    load,
    unusable_rule_problems,
)
from .errors import RequestError
from .marks import reads, writes
from .messages import full_partition_name, short_partition_name

if TYPE_CHECKING:
    from .configuration.problems import Problem
    from .configuration.schema import PartitionConfig, SchedulerConfig
    from .messages import Registration
    from .partition import Partition

__all__ = ["Cluster", "PartitionMaker"]


class PartitionMaker(Protocol):
    """What makes a partition and returns its handle, and what lets one go."""

    def prepare(self, rm_id: str, config: SchedulerConfig) -> None:
        """Make sure that the partitions of a configuration can be had, before anything changes.

        Raises:
            ConfigurationError: they cannot.
        """

    def make(self, name: str, rm_id: str, config: PartitionConfig) -> Partition:
        """Make a partition."""

    def release(self, partition: Partition) -> None:
        """Let a partition go that has been shut down."""


@dataclass(slots=True)
class _ResourceManager:
    """One registered RM and its partitions by full name."""

    registration: Registration
    config: SchedulerConfig
    partitions: dict[str, Partition]


@final
class Cluster:
    """All partitions of all resource managers of one scheduler."""

    def __init__(self, maker: PartitionMaker) -> None:
        self._maker = maker
        self._managers: dict[str, _ResourceManager] = {}
        self._warnings: tuple[Problem, ...] = ()

    @writes
    def register(self, registration: Registration) -> dict[str, Partition]:
        """Take an RM in, and make its partitions; one that is known starts afresh.

        Raises:
            ConfigurationError: the configuration is refused. An RM that was registered stays as it was.
            RequestError: the RM gives no id.
        """
        rm_id = registration.rm_id
        if not rm_id:
            raise RequestError("the rmID is empty")
        config = load(registration.configuration or DEFAULT_CONFIGURATION)
        self._maker.prepare(rm_id, config)
        known = self._managers.get(rm_id)
        if known is not None:
            for partition in known.partitions.values():
                self._end(partition)
        partitions = {}
        for partition_config in config.partitions:
            name = full_partition_name(partition_config.name, rm_id)
            partitions[name] = self._maker.make(name, rm_id, partition_config)
        self._managers[rm_id] = _ResourceManager(registration, config, partitions)
        self._warnings = config.warnings
        return dict(partitions)

    @writes
    def update_configuration(self, rm_id: str, text: str) -> dict[str, Partition]:
        """Change the configuration while everything runs; return the partitions that are there now.

        The whole text is checked before anything changes; a text that means the same changes nothing.

        Raises:
            ConfigurationError: the configuration is refused, and nothing has changed.
            RequestError: the RM is unknown.
        """
        manager = self._managers.get(rm_id)
        if manager is None or not manager.partitions:
            raise RequestError(f"RM {rm_id} has no active partitions, make sure it is registered")
        text = text or DEFAULT_CONFIGURATION
        if checksum(text) == manager.config.checksum:
            return dict(manager.partitions)
        config = load(text)
        unusable = unusable_rule_problems(config)
        if unusable:
            raise ConfigurationError(unusable)
        self._maker.prepare(rm_id, config)
        wanted = {full_partition_name(entry.name, rm_id): entry for entry in config.partitions}
        for name, partition_config in wanted.items():
            partition = manager.partitions.get(name)
            if partition is None:
                manager.partitions[name] = self._maker.make(name, rm_id, partition_config)
            else:
                partition.reconfigure(partition_config)
        for name in [name for name in manager.partitions if name not in wanted]:
            self._end(manager.partitions.pop(name))
        manager.config = config
        self._warnings = config.warnings
        return dict(manager.partitions)

    @writes
    def take_warnings(self) -> tuple[Problem, ...]:
        """Return the warnings about the configuration that was taken last, once."""
        warnings, self._warnings = self._warnings, ()
        return warnings

    def _end(self, partition: Partition) -> None:
        partition.shut_down()
        self._maker.release(partition)

    @writes
    def stop(self) -> None:
        """End all partitions of all resource managers."""
        for manager in self._managers.values():
            for partition in manager.partitions.values():
                self._end(partition)
        self._managers.clear()

    @reads
    def partitions(self) -> list[Partition]:
        """Return all partitions, by RM and name."""
        return [
            manager.partitions[name]
            for _, manager in sorted(self._managers.items())
            for name in sorted(manager.partitions)
        ]

    @reads
    def partition(self, short_name: str) -> Partition | None:
        """Return the first partition that an RM calls so."""
        for partition in self.partitions():
            if short_partition_name(partition.name) == short_name:
                return partition
        return None
