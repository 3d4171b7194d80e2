"""Licorne: a scheduler core for resource managers, on actors or on machine-checked locks.

Programs import from here and from `licorne.lockcheck` alone: `from licorne import Scheduler, si`, where `si`
has the messages of `si.v1`. Importing it starts nothing and configures no logging. Each name is loaded when
it is used, so that `licorne.lockcheck` is light for programs that schedule nothing: it needs no other
package.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.model import policies
    from licorne.model.errors import LicorneError, ReplacedError, RequestError
    from licorne.proxy.base.files.input_files import inspect_configuration
    from licorne.proxy.base.process import prepare_process
    from licorne.proxy.core.explanation.one_line import explanation_line
    from licorne.proxy.core.health import health_document
    from licorne.proxy.core.metrics.exporter import SchedulerCollector, exposition, registry_of
    from licorne.proxy.core.recording.recording import Recording
    from licorne.proxy.core.resolvers.partition_resolvers import TimedResolver
    from licorne.proxy.core.resolvers.resolver import CachedResolver, StaticResolver
    from licorne.proxy.core.scheduler.managers.callbacks import CallbackFailure
    from licorne.proxy.core.scheduler.scheduler import Scheduler
    from licorne.proxy.fronts.async_parts import Placed, Refused
    from licorne.proxy.fronts.async_scheduler import AsyncScheduler
    from licorne.proxy.fronts.simulations import Comparison, Run, Workload, compare, load, simulate
    from licorne.proxy.play.transcripts.saved_moment import saved_lines
    from licorne.proxy.si import si_pb2 as si
    from licorne.proxy.si.api import (
        DeferredPredicates,
        ResourceManager,
        ResourceManagerCallback,
        SchedulerAPI,
    )
    from licorne.proxy.views.dumps import PeriodicDumps, read_usage, state_dump, state_dump_file
    from licorne.proxy.views.rest.application import rest_app
    from licorne.proxy.wire.client.errors import ConnectionLostError, NotSentError
    from licorne.proxy.wire.client.recovery import OnRejection, Recovery
    from licorne.proxy.wire.client.remote_scheduler import RemoteScheduler
    from licorne.proxy.wire.door.door import Door
    from licorne.proxy.wire.door.launchers.local import LocalLauncher
    from licorne.proxy.wire.door.workers import LaunchedWorker, Launcher, LaunchError

__version__ = "0.1.0"

__all__ = [
    "AsyncScheduler",
    "CachedResolver",
    "CallbackFailure",
    "Comparison",
    "ConnectionLostError",
    "DeferredPredicates",
    "Door",
    "LaunchError",
    "LaunchedWorker",
    "Launcher",
    "LicorneError",
    "LocalLauncher",
    "NotSentError",
    "OnRejection",
    "PeriodicDumps",
    "Placed",
    "Recording",
    "Recovery",
    "Refused",
    "RemoteScheduler",
    "ReplacedError",
    "RequestError",
    "ResourceManager",
    "ResourceManagerCallback",
    "Run",
    "Scheduler",
    "SchedulerAPI",
    "SchedulerCollector",
    "StaticResolver",
    "TimedResolver",
    "Workload",
    "__version__",
    "compare",
    "explanation_line",
    "exposition",
    "health_document",
    "inspect_configuration",
    "load",
    "policies",
    "prepare_process",
    "read_usage",
    "registry_of",
    "rest_app",
    "saved_lines",
    "si",
    "simulate",
    "state_dump",
    "state_dump_file",
]

_PLACES = {
    "AsyncScheduler": "licorne.proxy.fronts.async_scheduler",
    "CachedResolver": "licorne.proxy.core.resolvers.resolver",
    "CallbackFailure": "licorne.proxy.core.scheduler.managers.callbacks",
    "Comparison": "licorne.proxy.fronts.simulations",
    "ConnectionLostError": "licorne.proxy.wire.client.errors",
    "DeferredPredicates": "licorne.proxy.si.api",
    "Door": "licorne.proxy.wire.door.door",
    "LaunchError": "licorne.proxy.wire.door.workers",
    "LaunchedWorker": "licorne.proxy.wire.door.workers",
    "Launcher": "licorne.proxy.wire.door.workers",
    "LicorneError": "licorne.model.errors",
    "LocalLauncher": "licorne.proxy.wire.door.launchers.local",
    "NotSentError": "licorne.proxy.wire.client.errors",
    "OnRejection": "licorne.proxy.wire.client.recovery",
    "Placed": "licorne.proxy.fronts.async_parts",
    "PeriodicDumps": "licorne.proxy.views.dumps",
    "Recording": "licorne.proxy.core.recording.recording",
    "Recovery": "licorne.proxy.wire.client.recovery",
    "Refused": "licorne.proxy.fronts.async_parts",
    "RemoteScheduler": "licorne.proxy.wire.client.remote_scheduler",
    "ReplacedError": "licorne.model.errors",
    "RequestError": "licorne.model.errors",
    "ResourceManager": "licorne.proxy.si.api",
    "ResourceManagerCallback": "licorne.proxy.si.api",
    "Run": "licorne.proxy.fronts.simulations",
    "Scheduler": "licorne.proxy.core.scheduler.scheduler",
    "SchedulerAPI": "licorne.proxy.si.api",
    "SchedulerCollector": "licorne.proxy.core.metrics.exporter",
    "StaticResolver": "licorne.proxy.core.resolvers.resolver",
    "TimedResolver": "licorne.proxy.core.resolvers.partition_resolvers",
    "Workload": "licorne.proxy.fronts.simulations",
    "compare": "licorne.proxy.fronts.simulations",
    "explanation_line": "licorne.proxy.core.explanation.one_line",
    "exposition": "licorne.proxy.core.metrics.exporter",
    "health_document": "licorne.proxy.core.health",
    "inspect_configuration": "licorne.proxy.base.files.input_files",
    "load": "licorne.proxy.fronts.simulations",
    "prepare_process": "licorne.proxy.base.process",
    "read_usage": "licorne.proxy.views.dumps",
    "registry_of": "licorne.proxy.core.metrics.exporter",
    "rest_app": "licorne.proxy.views.rest.application",
    "saved_lines": "licorne.proxy.play.transcripts.saved_moment",
    "simulate": "licorne.proxy.fronts.simulations",
    "state_dump": "licorne.proxy.views.dumps",
    "state_dump_file": "licorne.proxy.views.dumps",
}
_MODULES = {"policies": "licorne.model.policies", "si": "licorne.proxy.si.si_pb2"}
"""Modules under a name of the facade: the interface of policies, and the messages of `si.v1`."""
_OF_SERVER = frozenset(
    {"Door", "RemoteScheduler", "SchedulerCollector", "exposition", "registry_of", "rest_app"}
)
"""The names that need the extra `server`."""


def __getattr__(name: str) -> object:
    """Load what a name stands for when it is used first."""
    place = _MODULES.get(name) or _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "licorne":
            raise
        package = "licorne[server]" if name in _OF_SERVER else "licorne"
        raise ModuleNotFoundError(
            f"licorne.{name} needs {error.name}: pip install '{package}'", name=error.name
        ) from error
    value: object = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
