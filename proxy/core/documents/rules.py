"""The documents of placement rules: RuleDAO."""

from __future__ import annotations

from typing import Literal, Required

from typing_extensions import TypedDict

from ....model.placement.rules import Filter, PlacementRule, QueueRule
from ....model.queues.tree import RECOVERY_QUEUE
from .fields import Names, Texts, without_empty


class FilterDocument(TypedDict, total=False):
    """To whom a rule applies."""

    type: Required[Literal["allow", "deny"]]
    userList: Names
    userExp: str
    groupList: Names
    groupExp: str


class RuleDocument(TypedDict, total=False):
    """A placement rule."""

    name: Required[str]
    parameters: Required[Texts]
    parentRule: RuleDocument
    filter: FilterDocument


def rule_document(rule: PlacementRule) -> RuleDocument:
    """Return the RuleDAO document of a rule, with those of its parent rules."""
    if not isinstance(rule, QueueRule):
        return {"name": rule.name, "parameters": {"queue": RECOVERY_QUEUE}}
    parameters = {"create": str(rule.create).lower(), **rule.parameters}
    document: RuleDocument = {"name": rule.name, "parameters": parameters}
    if not rule.filter.is_empty:
        document["filter"] = filter_document(rule.filter)
    if rule.parent is not None:
        document["parentRule"] = rule_document(rule.parent)
    return document


@without_empty
def filter_document(shown: Filter) -> FilterDocument:
    """Return the FilterDAO document."""
    users, groups = shown.users, shown.groups
    return {
        "type": "allow" if shown.allow else "deny",
        "userList": sorted(users.names),
        "userExp": "" if users.expression is None else users.expression.text,
        "groupList": sorted(groups.names),
        "groupExp": "" if groups.expression is None else groups.expression.text,
    }
