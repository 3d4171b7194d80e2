"""The views of `licorne top`; the command knows them before anything of a view is loaded."""

from __future__ import annotations

from enum import Enum, unique
from typing import final


@final
@unique
class View(Enum):
    """The subjects of tables; the order is that of their keys 1 to 8."""

    QUEUES = "queues"
    APPLICATIONS = "applications"
    NODES = "nodes"
    USERS = "users"
    GROUPS = "groups"
    EVENTS = "events"
    HEALTH = "health"
    UTILIZATION = "utilization"
