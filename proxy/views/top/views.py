"""The views, by the names that a user gives them."""

from __future__ import annotations

from enum import Enum, unique
from typing import final


@final
@unique
class View(Enum):
    """What a table is about; the order is that of their keys 1 to 8."""

    QUEUES = "queues"
    APPLICATIONS = "applications"
    NODES = "nodes"
    USERS = "users"
    GROUPS = "groups"
    EVENTS = "events"
    HEALTH = "health"
    UTILIZATION = "utilization"
