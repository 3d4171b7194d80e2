"""The documents of placement rules: RuleDAO."""

from __future__ import annotations

from ...model.placement.filters import Filter, Names
from ...model.placement.rules import PlacementRule, QueueRule
from ...model.queues.tree import RECOVERY_QUEUE
from ...model.values.documents import Document, Json

__all__ = ["filter_document", "rule_document"]


def rule_document(rule: PlacementRule) -> Document:
    """Return the RuleDAO document of a rule, with those of its parent rules."""
    if not isinstance(rule, QueueRule):
        return {"name": rule.name, "parameters": {"queue": RECOVERY_QUEUE}}
    parameters: dict[str, Json] = {"create": str(rule.create).lower(), **rule.parameters}
    document: Document = {"name": rule.name, "parameters": parameters}
    if shown := filter_document(rule.filter):
        document["filter"] = shown
    if rule.parent is not None:
        document["parentRule"] = rule_document(rule.parent)
    return document


def filter_document(shown: Filter) -> Document:
    """Return the FilterDAO document; without entries it is empty."""
    if shown.is_empty:
        return {}
    kind: Document = {"type": "allow" if shown.allow else "deny"}
    return kind | _names("user", shown.users) | _names("group", shown.groups)


def _names(kind: str, names: Names) -> Document:
    if names.expression is not None:
        return {f"{kind}Exp": names.text}
    return {f"{kind}List": [*sorted(names.names)]} if names.names else {}
