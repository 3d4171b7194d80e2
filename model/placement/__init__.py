"""Placement of applications into queues: rules, their filters, and the decision."""

from __future__ import annotations

from .placement import PlacementRules
from .requests import Placed, PlacementRefusal, PlacementRequest, QueueFacts, QueueLookup, RuleOutcome
from .rules import PlacementRulesError

__all__ = [
    "Placed",
    "PlacementRefusal",
    "PlacementRequest",
    "PlacementRules",
    "PlacementRulesError",
    "QueueFacts",
    "QueueLookup",
    "RuleOutcome",
]
