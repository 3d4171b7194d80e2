"""The resolver of each partition, made from its `usergroupresolver` before anything changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...model.configuration.problems import ConfigurationError, Problem, RuleFinding
from ...model.configuration.reader import DEFAULT_SOURCE
from ...model.values.messages import full_partition_name
from .cached import CachedResolver
from .ldap_resolver import LdapResolver, check_ldap_is_installed
from .ldap_settings import read_ldap_settings
from .operating_system import OperatingSystemResolver
from .resolver import ResolverSettingsError
from .timed import TimedResolver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...actors.log import Log
    from ...model.configuration.schema import PartitionConfig, SchedulerConfig
    from .ldap_settings import LdapSettings
    from .resolver import UserResolver

__all__ = ["LDAP_FOLDER", "PartitionResolver", "PrefetchedSettings", "ResolverMaker"]

LDAP_FOLDER: Final = Path("/run/secrets/ldap")
_OPERATING_SYSTEM: Final = "os"
_LDAP: Final = "ldap"


PrefetchedSettings: TypeAlias = "LdapSettings | ResolverSettingsError | None"


@dataclass(frozen=True, slots=True)
class PartitionResolver:
    """A resolver with the settings that it was made from."""

    kind: str
    settings: LdapSettings | None
    resolver: UserResolver | None
    """`None` if there is none: then each user is in the group of the same name."""


@final
class ResolverMaker:
    """Makes the resolvers of one scheduler, with a cache for each partition.

    Args:
        instead: The resolver of all partitions, in place of the configured ones; `None` to use those.
        ldap_folder: The folder with the settings of the directory server.
        now_ns: The time, in nanoseconds.
        log: Gets harmless problems of the settings of the directory server.
    """

    __slots__ = ("_instead", "_ldap_folder", "_log", "_now_ns")

    def __init__(
        self,
        instead: UserResolver | None,
        ldap_folder: Path,
        now_ns: Callable[[], int],
        log: Log | None = None,
    ) -> None:
        self._log = log
        self._instead = instead
        self._ldap_folder = ldap_folder
        self._now_ns = now_ns

    def prefetch(self, configuration: str) -> PrefetchedSettings:
        """Read the settings of the directory server if a configuration may ask for it; no lock is held.

        Returns:
            The settings or what is wrong with them; `None` if the configuration seems not to ask for them.
        """
        if self._instead is not None or _LDAP not in configuration:
            return None
        try:
            return read_ldap_settings(self._ldap_folder, self._log)
        except ResolverSettingsError as error:
            return error

    def make(
        self,
        rm_id: str,
        config: SchedulerConfig,
        present: Mapping[str, PartitionResolver],
        prefetched: PrefetchedSettings = None,
    ) -> dict[str, PartitionResolver]:
        """Make the resolvers of all partitions of a configuration, by the full names of the partitions.

        A resolver of `present` is kept, with its cache, if kind and settings are the same. The settings of
        the directory server are `prefetched`, which `prefetch` has returned; they are read here only if
        `prefetch` could not see that the configuration asks for them, since it writes `ldap` with escapes.

        Raises:
            ConfigurationError: Resolvers cannot be made; the error has all problems, at their partitions.
        """
        made: dict[str, PartitionResolver] = {}
        problems: list[Problem] = []
        for partition in config.partitions:
            name = full_partition_name(partition.name, rm_id)
            try:
                made[name] = self._resolver(partition.user_group_resolver, present.get(name), prefetched)
            except ResolverSettingsError as error:
                problems += _problems(partition, error)
        if problems:
            raise ConfigurationError(tuple(problems))
        return made

    def _resolver(
        self, kind: str, present: PartitionResolver | None, prefetched: PrefetchedSettings
    ) -> PartitionResolver:
        if self._instead is not None:
            return PartitionResolver("", None, self._instead)
        if kind not in (_OPERATING_SYSTEM, _LDAP):
            return PartitionResolver("", None, None)
        settings = None
        if kind == _LDAP:
            check_ldap_is_installed()
            prefetched = prefetched or self.prefetch(_LDAP)
            if isinstance(prefetched, ResolverSettingsError):
                raise prefetched
            settings = prefetched
        if present is not None and (present.kind, present.settings) == (kind, settings):
            return present
        source = OperatingSystemResolver() if settings is None else LdapResolver(settings)
        return PartitionResolver(kind, settings, CachedResolver(TimedResolver(source), self._now_ns))


def _problems(partition: PartitionConfig, error: ResolverSettingsError) -> list[Problem]:
    position = partition.positions["usergroupresolver.type"]
    kind = partition.user_group_resolver
    return [
        Problem.of(
            RuleFinding(position, f"the user group resolver {kind!r} cannot be used: {text}"), DEFAULT_SOURCE
        )
        for text in error.problems
    ]
