"""Placement of applications into queues: rules, their filters, and the decision.

It decides on the path of a queue and changes nothing. It may import `model.configuration`, `model.values`
and `model.resources`.
"""

from __future__ import annotations

from .placement import PlacementRules
from .rules import (
    PlacementQueue,
    PlacementRefusal,
    PlacementRequest,
    PlacementRulesError,
    QueueChoice,
    QueueLookup,
    RuleOutcome,
)

__all__ = [
    "PlacementQueue",
    "PlacementRefusal",
    "PlacementRequest",
    "PlacementRules",
    "PlacementRulesError",
    "QueueChoice",
    "QueueLookup",
    "RuleOutcome",
]
