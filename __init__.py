"""Licorne: a scheduler core for resource managers, on actors or on machine-checked locks.

Importing it starts nothing and configures no logging. See `licorne.proxy.scheduler.Scheduler`.
"""

from loguru import logger

from licorne.model.errors import LicorneError, RequestError
from licorne.proxy.scheduler import Scheduler
from licorne.proxy.si.api import ResourceManager, ResourceManagerCallback, SchedulerAPI

__all__ = [
    "LicorneError",
    "RequestError",
    "ResourceManager",
    "ResourceManagerCallback",
    "Scheduler",
    "SchedulerAPI",
]

logger.disable("licorne")
