"""The cluster: the resource managers, their partitions, and the configuration they run with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, final

from .configuration.names import did_you_mean
from .configuration.problems import ConfigurationError, Problem
from .configuration.reader import (
    DEFAULT_CONFIGURATION,
    checksum,
    load,
    past_window_problems,
    unusable_rule_problems,
)
from .configuration.schema import PartitionConfig, SchedulerConfig
from .errors import RequestError
from .identifiers import id_refusal
from .marks import Marks
from .partition import Partition
from .requests.reconfiguring import Savepoint
from .state.partition_state import PartitionState
from .values.messages import Registration, full_partition_name, short_partition_name


class PartitionMaker(Protocol):
    """Makes the partitions of one registration or reload. If a step raises, the change does not happen."""

    def prepare(self, config: SchedulerConfig) -> None:
        """Make sure that the partitions of a configuration can be made, before anything changes.

        Raises:
            ConfigurationError: They cannot.
        """

    def make(self, name: str, config: PartitionConfig) -> Partition:
        """Make a partition and return its handle."""

    def commit(self, partitions: Mapping[str, Partition]) -> None:
        """Record that the resource manager has these partitions from now on."""

    def drop(self, partition: Partition) -> None:
        """Drop a partition that was made for a change which does not happen; does not raise."""


@dataclass(frozen=True, slots=True)
class Reconfigured:
    """The result of a registration or reload."""

    partitions: Mapping[str, Partition]
    """The partitions of the resource manager, by full name."""
    ended: tuple[Partition, ...] = ()
    """Partitions that it no longer has; they are to be shut down."""
    warnings: tuple[Problem, ...] = ()
    """Warnings about the configuration; none if it was in effect already."""


def _now_ns(state: PartitionState) -> int:
    return state.now_ns()


def check_manager_id(rm_id: str) -> None:
    """Refuse what cannot be the id of a resource manager.

    Raises:
        RequestError: It is empty, too long, or has control characters.
    """
    refusal = id_refusal("the rmID", rm_id) if rm_id else "the rmID is empty"
    if refusal is not None:
        raise RequestError(refusal)


@dataclass(frozen=True, slots=True)
class _ResourceManager:
    """One registered RM and its partitions by full name."""

    config: SchedulerConfig
    """The whole configuration, also where some of its partitions are not made."""
    partitions: Mapping[str, Partition]
    subset: frozenset[str] | None
    """The full names of the partitions that are made of it, `None` for all."""

    @property
    def may_update(self) -> bool:
        """Whether an update may give it partitions: it has some, or asked for some that a text had before."""
        return bool(self.partitions) or self.subset is not None


@final
class Cluster:
    """All partitions of all resource managers of one scheduler."""

    MARKS: Final = Marks(
        reads=("check_update", "configuration_text", "partitions", "configurations"),
        writes=("register", "update_configuration", "forget"),
    )

    def __init__(self) -> None:
        self._managers: dict[str, _ResourceManager] = {}

    def register(
        self, registration: Registration, maker: PartitionMaker, config: SchedulerConfig | None = None
    ) -> Reconfigured:
        """Register an RM, and make its partitions; one that is registered already starts from the beginning.

        A registration that names partitions has only these made. The configuration stays whole: the others
        are checked as well, and each finding has its position.

        Args:
            registration: The registration of the RM.
            maker: Makes the partitions.
            config: The configuration of the registration, if that has been read already.

        Raises:
            ConfigurationError: the configuration is refused. An RM that was registered stays unchanged, as
                with any other error.
            RequestError: the RM gives no id, or names a partition that the configuration lacks.
        """
        rm_id = registration.rm_id
        check_manager_id(rm_id)
        config = config or load(registration.configuration or DEFAULT_CONFIGURATION)
        subset = _checked_subset(registration, config)
        known = self._managers.get(rm_id)
        ended = () if known is None else tuple(known.partitions.values())
        maker.prepare(_part_of(config, subset, rm_id))
        return self._change(rm_id, _Change(maker, {}), config, subset, ended)

    def check_update(
        self, rm_id: str, text: str, maker: PartitionMaker, config: SchedulerConfig | None = None
    ) -> SchedulerConfig | None:
        """Refuse what `update_configuration` would refuse; nothing changes.

        Args:
            rm_id: The id of the RM.
            text: The configuration, empty for the default.
            maker: Prepares the parts of partitions.
            config: The configuration in the text, if it has been read already.

        Returns:
            The configuration in the text, `None` if it is in effect already.

        Raises:
            ConfigurationError: the configuration is refused.
            RequestError: the RM is unknown.
        """
        manager = self._managers.get(rm_id)
        if manager is None or not manager.may_update:
            raise RequestError(f"RM {rm_id} has no active partitions, make sure it is registered")
        text = text or DEFAULT_CONFIGURATION
        if checksum(text) == manager.config.checksum:
            return None
        config = config or load(text)
        unusable = unusable_rule_problems(config)
        first = next(iter(manager.partitions.values()), None)
        if first is not None and any(partition.windows for partition in config.partitions):
            unusable += past_window_problems(config, manager.config, first.read(_now_ns))
        if unusable:
            raise ConfigurationError(unusable)
        maker.prepare(_part_of(config, manager.subset, rm_id))
        return config

    def update_configuration(
        self, rm_id: str, text: str, maker: PartitionMaker, config: SchedulerConfig | None = None
    ) -> Reconfigured:
        """Change the configuration while everything runs.

        The whole text is checked before anything changes; a text that means the same changes nothing. An RM
        that named partitions when it registered has only these changed, made or ended: all of them may be
        gone, and come back by a later text.

        Args:
            rm_id: The id of the RM.
            text: The configuration, empty for the default.
            maker: Makes the partitions.
            config: The configuration in the text, if it has been read already.

        Raises:
            ConfigurationError: the configuration is refused, and nothing has changed, as nothing has whatever
                else is raised.
            RequestError: the RM is unknown.
        """
        config = self.check_update(rm_id, text, maker, config)
        manager = self._managers[rm_id]
        if config is None:
            maker.commit(manager.partitions)
            return Reconfigured(manager.partitions)
        stay = {full_partition_name(entry.name, rm_id) for entry in config.partitions}
        ended = tuple(entry for name, entry in manager.partitions.items() if name not in stay)
        return self._change(rm_id, _Change(maker, manager.partitions), config, manager.subset, ended)

    def _change(
        self,
        rm_id: str,
        change: _Change,
        config: SchedulerConfig,
        subset: frozenset[str] | None,
        ended: tuple[Partition, ...],
    ) -> Reconfigured:
        """Make and change the partitions of a configuration, or change nothing."""
        try:
            partitions = change.run(rm_id, _part_of(config, subset, rm_id))
            change.maker.commit(partitions)
            self._managers[rm_id] = _ResourceManager(config, partitions, subset)
        except BaseException as error:
            change.undo(error)
            raise
        return Reconfigured(partitions, ended, config.warnings)

    def forget(self, rm_id: str) -> tuple[Partition, ...]:
        """Forget an RM; return its partitions, which are to be shut down, none for one that is unknown."""
        known = self._managers.pop(rm_id, None)
        return () if known is None else tuple(known.partitions.values())

    def configuration_text(self, rm_id: str) -> str:
        """Return the text of the configuration that an RM runs with, empty for one that is unknown."""
        manager = self._managers.get(rm_id)
        return "" if manager is None else manager.config.text

    def partitions(self) -> list[Partition]:
        """Return all partitions, those of the RM that registered first before others, by name."""
        return [
            manager.partitions[name]
            for manager in tuple(self._managers.values())
            for name in sorted(manager.partitions)
        ]

    def configurations(self) -> list[tuple[str, SchedulerConfig]]:
        """Return the configurations that are in effect, with their RMs, in the order of registration."""
        return [(rm_id, manager.config) for rm_id, manager in tuple(self._managers.items())]


def _checked_subset(registration: Registration, config: SchedulerConfig) -> frozenset[str] | None:
    """Return the full names of the partitions that a registration has made, `None` for all.

    Raises:
        RequestError: It names one that the configuration lacks.
    """
    if registration.partitions is None:
        return None
    assert registration.partitions, "a registration names a partition to make, or has all made"
    known = {full_partition_name(entry.name, registration.rm_id): entry.name for entry in config.partitions}
    for name in registration.partitions:
        if name not in known:
            short = short_partition_name(name)
            hint = did_you_mean(short, [*known.values()])
            raise RequestError(
                f"the configuration has no partition {short!r:.100}, which `partitions` names{hint}"
            )
    return frozenset(registration.partitions)


def _part_of(config: SchedulerConfig, subset: frozenset[str] | None, rm_id: str) -> SchedulerConfig:
    """Return a configuration with the partitions that are made of it."""
    if subset is None:
        return config
    made = tuple(entry for entry in config.partitions if full_partition_name(entry.name, rm_id) in subset)
    return replace(config, partitions=made)


class _Change:
    """The change of the partitions of one RM to a configuration, as far as it has come."""

    def __init__(self, maker: PartitionMaker, present: Mapping[str, Partition]) -> None:
        self.maker = maker
        self._present = present
        self._made: list[Partition] = []
        self._changed: list[tuple[Partition, Savepoint]] = []

    def run(self, rm_id: str, config: SchedulerConfig) -> dict[str, Partition]:
        """Make the missing partitions, then change the others; return all by full name."""
        wanted = {full_partition_name(entry.name, rm_id): entry for entry in config.partitions}
        partitions = {}
        for name, partition_config in wanted.items():
            partition = self._present.get(name)
            if partition is None:
                partition = self.maker.make(name, partition_config)
                self._made.append(partition)
            partitions[name] = partition
        for name, partition_config in wanted.items():
            if name in self._present:
                self._changed.append((partitions[name], partitions[name].reconfigure(partition_config)))
        return partitions

    def undo(self, cause: BaseException) -> None:
        """Undo the change; what cannot be undone is added to the cause."""
        for partition, before in reversed(self._changed):
            try:
                partition.restore(before)
            except Exception as error:  # noqa: BLE001 - the others are given back what they had
                cause.add_note(f"partition {partition.name} could not be given back what it had: {error!r}")
        for partition in self._made:
            self.maker.drop(partition)
