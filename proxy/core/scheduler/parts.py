"""The parts of a scheduler, made by its settings: engine, clock, observer, resource managers."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ....actors.engines.engine import ActorsEngine, DirectEngine, Engine
from ....actors.services.clocks import RealClock, VirtualClock
from ....actors.services.log import Log
from ....model.cluster import Cluster
from ....model.configuration.names import flag_of
from ....model.errors import LicorneError
from ....model.policies.policies import GivenPolicies, PolicyFactory
from ....model.queues.use_order import KeptUse
from ...base.process import is_compiled
from ...si.arguments import check_type
from ..events.log import EventDelivery, EventLog
from ..metrics.figures import Metrics
from ..recording.observer import Observer, Unobserved
from ..recording.recording import Recording
from ..resolvers.partition_resolvers import ResolverMaker
from ..resolvers.resolver import UserResolver
from .engine_names import EngineName, engine_named
from .managers.callbacks import CallbackFailures, ErrorHook, Outbox
from .managers.extra_configurations import ExtraConfigurations
from .managers.managers import Incarnations, Managers
from .managers.predicates import AnswerWait

DEFAULT_THREADS: Final = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings:
    """The arguments of `Scheduler`, which describes them.

    Raises:
        LicorneError: An argument has another type, or an impossible value, or nothing is recorded with this
            engine.
    """

    engine: EngineName
    stepped: bool
    threads: int | None
    share_partitions: bool
    resolver: UserResolver | None
    ldap_folder: Path | str
    check_direction: bool
    on_error: ErrorHook | None
    record: Recording | Path | str | None
    predicate_timeout_seconds: float
    kept_use: Mapping[str, KeptUse] | None
    policies: Mapping[str, PolicyFactory] | None

    def __post_init__(self) -> None:
        check_type("stepped", self.stepped, bool)
        check_type("threads", self.threads, int, type(None))
        check_type("share_partitions", self.share_partitions, bool)
        check_type("ldap_folder", self.ldap_folder, Path, str)
        check_type("kept_use", self.kept_use, Mapping, type(None))
        check_type("policies", self.policies, Mapping, type(None))
        check_type("record", self.record, Recording, Path, str, type(None))
        check_type("predicate_timeout_seconds", self.predicate_timeout_seconds, int, float)
        if self.resolver is not None and not callable(getattr(self.resolver, "groups_of", None)):
            raise LicorneError(f"resolver={self.resolver!r:.200} has no method groups_of(user)")
        if not 0 < self.predicate_timeout_seconds < math.inf:
            raise LicorneError(f"predicate_timeout_seconds={self.predicate_timeout_seconds} is not above 0")
        if self.record is not None and self.engine == "threads":
            # Its cycles may begin anew when others have changed something: a replay would not know when.
            raise LicorneError("record is for the engines actors and direct, not for threads")

    @property
    def is_stepped(self) -> bool:
        """Whether nothing runs by itself, and the clock is virtual."""
        return self.stepped or self.engine == "direct"


@final
class SchedulerParts:
    """The parts of one scheduler that need nothing of the scheduler itself.

    Raises:
        LicorneError: The engine is unknown, or cannot have this number of threads, or share partitions; or
            nothing can be recorded into this folder; or a policy is not valid.
    """

    def __init__(self, settings: SchedulerSettings) -> None:
        policies = GivenPolicies(settings.policies or {})
        stepped = settings.is_stepped
        reservations_on = flag_of(os.environ.get("DISABLE_RESERVATION", "")) is not True
        self.extra: Final = ExtraConfigurations()
        self.log: Final = self.extra.log("core.rmproxy")
        self.engine: Final = _engine(settings, self.extra.log("core.actors"))
        self.outbox: Final = Outbox() if stepped else None
        self.answer_wait: Final = AnswerWait(settings.predicate_timeout_seconds) if stepped else None
        self.events: Final = EventLog()
        self.metrics: Final = Metrics()
        incarnations = Incarnations(self.engine)
        fire = incarnations.fire
        self.clock: Final[VirtualClock | RealClock] = (
            VirtualClock(fire) if stepped else RealClock(fire, self.extra.log("core.scheduler"))
        )
        self.observer: Final = _observer(settings, self, policies, reservations_on=reservations_on)
        self.managers: Final = Managers(
            self.engine,
            self.outbox,
            self.extra,
            CallbackFailures(settings.on_error),
            clock=self.clock,
            incarnations=incarnations,
            observer=self.observer,
            metrics=self.metrics,
            reservations_on=reservations_on,
            answer_timeout_ns=int(settings.predicate_timeout_seconds * 1e9),
            answer_wait=self.answer_wait,
            events=self.events,
            kept_use=settings.kept_use or {},
            policies=policies,
        )
        self.event_delivery: Final = EventDelivery(self.events, self.managers.event_receivers)
        self.cluster: Final = self.engine.adopt_cluster(Cluster())
        self.resolvers: Final = ResolverMaker(
            settings.resolver,
            Path(settings.ldap_folder),
            self.clock.now_ns,
            self.extra.log("core.security"),
        )


def _engine(settings: SchedulerSettings, log: Log) -> Engine:
    """Make the engine; `log` gets what happens to its actors.

    Raises:
        LicorneError: The engine is unknown, or cannot have this number of threads, or share partitions.
    """
    stepped, threads, share_partitions = settings.is_stepped, settings.threads, settings.share_partitions
    engine = engine_named(settings.engine)
    if threads is not None and engine != "threads":
        raise LicorneError(f"threads={threads} is for the engine threads, not for {engine}")
    if threads is not None and threads < 1:
        raise LicorneError(f"threads={threads}: there must be one thread at least")
    if share_partitions and engine != "threads":
        raise LicorneError(f"share_partitions=True is for the engine threads, not for {engine}")
    if share_partitions and (stepped or threads == 1):
        raise LicorneError(
            "share_partitions=True needs a scheduler that is not stepped, on two threads or more"
        )
    if share_partitions and is_compiled():
        raise LicorneError("share_partitions=True needs pure Python, and this build of licorne is compiled")
    if engine == "threads":
        from ....actors.locks.threads_engine import ThreadsEngine  # noqa: PLC0415 - loads its locks

        count = threads or (1 if stepped else DEFAULT_THREADS)
        return ThreadsEngine(threads=count, automatic=not stepped, share_partitions=share_partitions, log=log)
    if engine == "direct":
        return DirectEngine()
    workers = 0 if stepped else 2
    return ActorsEngine(
        workers=workers, automatic=not stepped, check_direction=settings.check_direction, log=log
    )


def _observer(
    settings: SchedulerSettings, parts: SchedulerParts, policies: GivenPolicies, *, reservations_on: bool
) -> Observer:
    """Return a recorder if one is asked for; if there can be none, the engine is closed.

    Raises:
        LicorneError: Nothing can be recorded into this folder.
    """
    if settings.record is None:
        return Unobserved()
    from ..recording.recorder import TurnRecorder  # noqa: PLC0415 - few schedulers are recorded
    from ..recording.recording import recording_of  # noqa: PLC0415 - likewise

    try:
        return TurnRecorder(
            recording_of(settings.record),
            now_ns=parts.clock.now_ns,
            log=parts.log,
            may_hold=not settings.is_stepped,
            reservations_on=reservations_on,
            policies=policies,
        )
    except LicorneError:
        parts.engine.close()
        raise
