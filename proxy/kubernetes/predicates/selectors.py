"""Conditions on labels: of pods and namespaces (label selectors), and of nodes (node selectors).

Both are lists of requirements, all of which must hold. They differ in the meaning of an empty or a missing
list, in the operators, and in the treatment of invalid requirements: the API server refuses an invalid label
selector, but accepts some invalid node selectors, whose terms then match no node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from licorne.proxy.kubernetes.placement_objects import (
    LabelRequirement,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
)

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

_NAME_FIELD = "metadata.name"


def labels_match(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether labels fulfil a selector: an empty one always matches, a missing one (`None`) never."""
    if selector is None:
        return False
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    if selector.match_expressions:
        return all(_holds(requirement, labels) for requirement in selector.match_expressions)
    return True


def node_matches(selector: NodeSelector, labels: Mapping[str, str], name: str | None) -> bool:
    """Return whether a node fulfils one of the terms of a selector; without terms, no node does.

    Args:
        selector: The terms, one of which must hold.
        labels: The labels of the node.
        name: The name of the node. With `None`, requirements on fields are skipped: Kubernetes selects the
            nodes that can reach a volume only by their labels.
    """
    return any(term_holds(term, labels, name) for term in selector.node_selector_terms)


def whole_number(text: str) -> int | None:
    """Read a decimal number that fits into 64 bits with a sign, by the rules of Go; `None` if it is not one.

    Python's own `int` would accept more: spaces, underscores, digits of other scripts.
    """
    if not _WHOLE_NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if _INT64_MIN <= number <= _INT64_MAX else None


def term_holds(term: NodeSelectorTerm, labels: Mapping[str, str], name: str | None) -> bool:
    """Return whether a node fulfils all requirements of a term; see `node_matches`."""
    if not term.match_expressions and not term.match_fields:
        return False
    for requirement in term.match_expressions:
        if not _holds(requirement, labels):
            return False
    if name is not None:
        for requirement in term.match_fields:
            if not _field_holds(requirement, name):
                return False
    # This check is last because it takes longest, and because most terms that do not hold fail earlier.
    return all(map(_is_valid, term.match_expressions)) and all(map(_is_valid_on_field, term.match_fields))


def _holds(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    operator = requirement.operator
    if operator == "In":
        return value is not None and value in requirement.values
    if operator == "NotIn":
        return value is None or value not in requirement.values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    return value is not None and _compares(requirement, value)


def _compares(requirement: LabelRequirement, value: str) -> bool:
    """Return whether a label is greater or less than the single value of a requirement, as numbers."""
    if len(requirement.values) != 1:
        return False
    left, right = whole_number(value), whole_number(requirement.values[0])
    if left is None or right is None:
        return False
    if requirement.operator == "Gt":
        return left > right
    return requirement.operator == "Lt" and left < right


def _field_holds(requirement: LabelRequirement, name: str) -> bool:
    value = name if requirement.key == _NAME_FIELD else ""
    return (value in requirement.values) == (requirement.operator == "In")


def _is_valid(requirement: LabelRequirement) -> bool:
    """Return whether a requirement on a label is valid; a term with an invalid one never holds."""
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            number_fits = len(values) > 0
        case "Exists" | "DoesNotExist":
            number_fits = len(values) == 0
        case "Gt" | "Lt":
            number_fits = len(values) == 1 and whole_number(values[0]) is not None
        case _:
            return False
    return number_fits and all(map(_LABEL_VALUE.fullmatch, values))


def _is_valid_on_field(requirement: LabelRequirement) -> bool:
    return requirement.operator in {"In", "NotIn"} and len(requirement.values) == 1
