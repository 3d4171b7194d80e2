"""The resolver of each partition, made from its `usergroupresolver` before anything changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias, final

from ....actors.services.log import Log
from ....lockcheck import Lock, excludes
from ....model.configuration.problems import ConfigurationError, Problem, RuleFinding
from ....model.configuration.reader import DEFAULT_SOURCE
from ....model.configuration.schema import PartitionConfig, SchedulerConfig
from ....model.values.messages import full_partition_name
from .ldap import LdapResolver, LdapSettings, check_ldap_is_installed, read_ldap_settings
from .resolver import (
    CachedResolver,
    ResolverSettingsError,
    ResolverUnavailableError,
    UserResolutionError,
    UserResolver,
)

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
    """`None` without a resolver: then each user is in the group of the same name."""


@final
class ResolverMaker:
    """Makes the resolvers of one scheduler, with a cache for each partition.

    Args:
        instead: The resolver of all partitions, instead of the configured ones; `None` to use those.
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


@final
class OperatingSystemResolver:
    """Asks the databases of users and groups of this machine.

    Raises:
        ResolverSettingsError: This operating system has no such databases.
    """

    __slots__ = ()

    def __init__(self) -> None:
        try:
            import grp  # noqa: F401, PLC0415 - not every system has it
            import pwd  # noqa: F401, PLC0415 - likewise
        except ImportError as error:
            problem = f"this operating system has no database of users (module {error.name!r})"
            raise ResolverSettingsError((problem,)) from error

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups, the primary one first, the others by number; one without a name is its number.

        Raises:
            UserResolutionError: The user is not known here, or the databases cannot be read.
        """
        import os  # noqa: PLC0415 - beside the others
        import pwd  # noqa: PLC0415 - not every system has it

        try:
            account = pwd.getpwnam(user)
            others = set(os.getgrouplist(user, account.pw_gid)) - {account.pw_gid}
            names = [_group_name(number) for number in (account.pw_gid, *sorted(others))]
        except (KeyError, ValueError):  # A text that cannot be a name, say with a zero byte, is a ValueError.
            raise UserResolutionError(f"user {user!r} is not known to the operating system") from None
        except OSError as error:
            raise ResolverUnavailableError(
                f"user {user!r}: the operating system cannot be asked: {error}"
            ) from error
        return tuple(dict.fromkeys(names))


def _group_name(number: int) -> str:
    import grp  # noqa: PLC0415 - not every system has it

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


TIMEOUT_SECONDS: Final = 10.0
LOOK_UPS_MAX: Final = 8
_LookUp: TypeAlias = "Future[tuple[str, ...]]"


@final
class TimedResolver:
    """Another resolver with a time limit.

    Callers that ask for the same user at the same time wait for the same look-up.

    Args:
        resolver: The resolver to ask; called on a separate thread.
        timeout_seconds: How long a caller waits at most.
        look_ups_max: How many look-ups run at the same time; more wait for their turn.
    """

    __slots__ = ("_guard", "_look_ups_max", "_resolver", "_running", "_timeout_seconds", "_turns")

    def __init__(
        self,
        resolver: UserResolver,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        look_ups_max: int = LOOK_UPS_MAX,
    ) -> None:
        self._resolver = resolver
        self._timeout_seconds = timeout_seconds
        self._look_ups_max = look_ups_max
        self._turns = threading.BoundedSemaphore(look_ups_max)
        self._guard = Lock("look-ups")
        self._running: dict[str, _LookUp] = {}

    @excludes()
    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of a user.

        Raises:
            UserResolutionError: The resolver does not know the user, or gave no answer in time.
        """
        deadline = monotonic() + self._timeout_seconds
        look_up = self._join(user)
        if look_up is None:
            if not self._turns.acquire(timeout=self._timeout_seconds):
                raise ResolverUnavailableError(
                    f"user {user!r} was not looked up within {self._timeout_seconds:g} s: "
                    f"{self._look_ups_max} other look-ups are without an answer"
                )
            look_up = self._begin(user)
        try:
            return look_up.result(max(0.0, deadline - monotonic()))
        except TimeoutError:
            raise ResolverUnavailableError(
                f"user {user!r}: no answer within {self._timeout_seconds:g} s"
            ) from None

    def _join(self, user: str) -> _LookUp | None:
        """Return the look-up of the user that runs already."""
        with self._guard:
            return self._running.get(user)

    def _begin(self, user: str) -> _LookUp:
        """Begin a look-up; the caller has taken a turn, which its end gives back."""
        with self._guard:
            look_up = self._running.get(user)
            if look_up is not None:
                self._turns.release()  # Another caller began while this one waited for a turn.
                return look_up
            look_up = self._running[user] = Future()
        name = "licorne-user-look-up"
        threading.Thread(target=self._look_up, args=(user, look_up), name=name, daemon=True).start()
        return look_up

    def _look_up(self, user: str, look_up: _LookUp) -> None:
        try:
            groups = self._resolver.groups_of(user)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the callers that wait
            outcome: tuple[str, ...] | BaseException = error
        else:
            outcome = groups
        with self._guard:
            del self._running[user]
        self._turns.release()
        if isinstance(outcome, BaseException):
            look_up.set_exception(outcome)
        else:
            look_up.set_result(outcome)
