"""Licorne: a scheduler core for resource managers, on actors or on machine-checked locks.

Importing it starts nothing and configures no logging. See `licorne.proxy.scheduler.Scheduler`. The scheduler
itself is loaded when it is used, so that `licorne.lockcheck` is light for programs that schedule nothing: it
needs no other package, not even loguru.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.model.errors import LicorneError, ReplacedError, RequestError
    from licorne.proxy.client.errors import ConnectionLostError, NotSentError
    from licorne.proxy.client.recovery import Recovery
    from licorne.proxy.client.remote_scheduler import RemoteScheduler
    from licorne.proxy.door.door import Door
    from licorne.proxy.explanation.one_line import explanation_line
    from licorne.proxy.recording.recording import Recording
    from licorne.proxy.rest.application import rest_app
    from licorne.proxy.scheduler.managers.callback_failures import CallbackFailure
    from licorne.proxy.scheduler.scheduler import Scheduler
    from licorne.proxy.si.api import ResourceManager, ResourceManagerCallback, SchedulerAPI

__version__ = "0.1.0"

__all__ = [
    "CallbackFailure",
    "ConnectionLostError",
    "Door",
    "LicorneError",
    "NotSentError",
    "Recording",
    "Recovery",
    "RemoteScheduler",
    "ReplacedError",
    "RequestError",
    "ResourceManager",
    "ResourceManagerCallback",
    "Scheduler",
    "SchedulerAPI",
    "__version__",
    "explanation_line",
    "rest_app",
]

_PLACES = {
    "CallbackFailure": "licorne.proxy.scheduler.managers.callback_failures",
    "ConnectionLostError": "licorne.proxy.client.errors",
    "Door": "licorne.proxy.door.door",
    "LicorneError": "licorne.model.errors",
    "NotSentError": "licorne.proxy.client.errors",
    "Recording": "licorne.proxy.recording.recording",
    "Recovery": "licorne.proxy.client.recovery",
    "RemoteScheduler": "licorne.proxy.client.remote_scheduler",
    "ReplacedError": "licorne.model.errors",
    "RequestError": "licorne.model.errors",
    "ResourceManager": "licorne.proxy.si.api",
    "ResourceManagerCallback": "licorne.proxy.si.api",
    "Scheduler": "licorne.proxy.scheduler.scheduler",
    "SchedulerAPI": "licorne.proxy.si.api",
    "explanation_line": "licorne.proxy.explanation.one_line",
    "rest_app": "licorne.proxy.rest.application",
}
_OF_SERVER = frozenset({"Door", "RemoteScheduler", "rest_app"})
"""The names that need the extra `server`."""


def __getattr__(name: str) -> object:
    """Load what a name stands for when it is used first."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(_PLACES[name])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "licorne":
            raise
        package = "licorne[server]" if name in _OF_SERVER else "licorne"
        raise ModuleNotFoundError(
            f"licorne.{name} needs {error.name}: pip install '{package}'", name=error.name
        ) from error
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


try:
    from loguru import logger
except ModuleNotFoundError:  # installed without dependencies, for lockcheck alone: it does not log by loguru
    pass
else:
    logger.disable("licorne")
