"""Label selectors and node selectors match what Kubernetes says that they match."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.placing import term

from licorne.proxy.kubernetes.placement_objects import LabelSelector, NodeSelector
from licorne.proxy.kubernetes.predicates.selectors import labels_match, node_matches, whole_number

LABELS = {"app": "web", "size": "8", "empty": ""}


class LabelCase(NamedTuple):
    """A label selector, and whether `LABELS` fulfil it."""

    selector: dict[str, Any] | None
    matches: bool


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


LABEL_CASES = {
    "no selector matches nothing": LabelCase(None, matches=False),
    "an empty selector matches everything": LabelCase({}, matches=True),
    "an equal label matches": LabelCase({"matchLabels": {"app": "web"}}, matches=True),
    "another value does not match": LabelCase({"matchLabels": {"app": "db"}}, matches=False),
    "a missing label does not match": LabelCase({"matchLabels": {"tier": "web"}}, matches=False),
    "all labels must match": LabelCase({"matchLabels": {"app": "web", "size": "9"}}, matches=False),
    "one of the values is enough": LabelCase(expression("app", "In", "db", "web"), matches=True),
    "none of the values is not enough": LabelCase(expression("app", "In", "db"), matches=False),
    "a missing label is in no values": LabelCase(expression("tier", "In", ""), matches=False),
    "an empty value can be named": LabelCase(expression("empty", "In", ""), matches=True),
    "a value can be excluded": LabelCase(expression("app", "NotIn", "web"), matches=False),
    "other values are not excluded": LabelCase(expression("app", "NotIn", "db"), matches=True),
    "a missing label is not excluded": LabelCase(expression("tier", "NotIn", "web"), matches=True),
    "an empty value exists": LabelCase(expression("empty", "Exists"), matches=True),
    "a missing label does not exist": LabelCase(expression("tier", "Exists"), matches=False),
    "a label that must be missing is missing": LabelCase(expression("tier", "DoesNotExist"), matches=True),
    "a label that must be missing is there": LabelCase(expression("empty", "DoesNotExist"), matches=False),
    "labels and expressions must match": LabelCase(
        {"matchLabels": {"app": "web"}, **expression("size", "In", "9")}, matches=False
    ),
    "an unknown operator matches nothing": LabelCase(expression("app", "Near", "web"), matches=False),
}


@pytest.mark.parametrize("case", LABEL_CASES.values(), ids=LABEL_CASES)
def test_label_selectors_match_labels(case: LabelCase) -> None:
    """A label selector matches if all that it requires holds."""
    selector = msgspec.convert(case.selector, LabelSelector | None)

    assert case.matches == labels_match(selector, LABELS)


class NodeCase(NamedTuple):
    """The terms of a node selector, and whether the node `n1` with `LABELS` fulfils one."""

    terms: list[dict[str, Any]]
    matches: bool


def named(operator: str, *names: str, key: str = "metadata.name") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(names)}]}


NODE_CASES = {
    "without terms nothing matches": NodeCase([], matches=False),
    "an empty term matches nothing": NodeCase([{}], matches=False),
    "one of the terms is enough": NodeCase([term("app", "In", "db"), term("app", "In", "web")], matches=True),
    "a number can be greater": NodeCase([term("size", "Gt", "7")], matches=True),
    "an equal number is not greater": NodeCase([term("size", "Gt", "8")], matches=False),
    "a number can be less": NodeCase([term("size", "Lt", "9")], matches=True),
    "an equal number is not less": NodeCase([term("size", "Lt", "8")], matches=False),
    "numbers are not compared as texts": NodeCase([term("size", "Lt", "10")], matches=True),
    "a text is neither greater nor less": NodeCase(
        [term("app", "Gt", "1"), term("app", "Lt", "1")], matches=False
    ),
    "a missing label is not less": NodeCase([term("tier", "Lt", "9")], matches=False),
    "a limit must be a number": NodeCase([term("size", "Gt", "few")], matches=False),
    "there is one limit": NodeCase([term("size", "Gt", "1", "2")], matches=False),
    "a missing label is not excluded": NodeCase([term("tier", "NotIn", "web")], matches=True),
    "values that are none of labels spoil a term": NodeCase([term("app", "In", "web", "a b")], matches=False),
    "no values spoil a term": NodeCase([term("app", "NotIn")], matches=False),
    "superfluous values spoil a term": NodeCase([term("app", "Exists", "web")], matches=False),
    "an unknown operator spoils a term": NodeCase([term("app", "Near", "web")], matches=False),
    "a spoilt term leaves the others": NodeCase([term("app", "In"), term("app", "Exists")], matches=True),
    "the node is named": NodeCase([named("In", "n1")], matches=True),
    "another node is named": NodeCase([named("In", "n2")], matches=False),
    "the node is excluded by name": NodeCase([named("NotIn", "n1")], matches=False),
    "another node is excluded by name": NodeCase([named("NotIn", "n2")], matches=True),
    "a term names one node": NodeCase([named("In", "n1", "n2")], matches=False),
    "a node cannot exist by name": NodeCase([named("Exists")], matches=False),
    "other fields are empty": NodeCase([named("In", "n1", key="metadata.uid")], matches=False),
    "name and labels must match": NodeCase([{**named("In", "n1"), **term("app", "In", "db")}], matches=False),
}


@pytest.mark.parametrize("case", NODE_CASES.values(), ids=NODE_CASES)
def test_node_selectors_match_nodes(case: NodeCase) -> None:
    """A node selector matches if one of its terms makes sense and holds."""
    selector = msgspec.convert({"nodeSelectorTerms": case.terms}, NodeSelector)

    assert case.matches == node_matches(selector, LABELS, "n1")


def test_fields_are_skipped_where_nodes_are_judged_by_labels() -> None:
    """A term that names another node matches where no name is given, unless its labels do not."""
    other = msgspec.convert({"nodeSelectorTerms": [named("In", "n2")]}, NodeSelector)

    assert (True, False) == (node_matches(other, LABELS, None), node_matches(other, LABELS, "n1"))


NUMBERS = {
    "0": 0,
    "-12": -12,
    "+8": 8,
    "007": 7,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "9223372036854775808": None,
    "-9223372036854775809": None,
    "": None,
    " 1": None,
    "1_000": None,
    "1.5": None,
    "٣": None,
}


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_numbers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    """Signs and leading zeros are read; what does not fit into 64 bits is no number."""
    assert number == whole_number(text)


KEYS = st.sampled_from(["app", "size", "empty", "tier"])
VALUES = st.lists(st.sampled_from(["web", "8", "", "db"]), min_size=1, max_size=3, unique=True)


@given(KEYS, VALUES)
def test_in_and_not_in_exclude_each_other(key: str, values: list[str]) -> None:
    """Exactly one of `In` and `NotIn` with the same values holds, in both kinds of selectors."""
    operators = ("In", "NotIn")
    of_labels = [
        labels_match(msgspec.convert(expression(key, operator, *values), LabelSelector), LABELS)
        for operator in operators
    ]
    of_nodes = [
        node_matches(
            msgspec.convert({"nodeSelectorTerms": [term(key, operator, *values)]}, NodeSelector), LABELS, "n1"
        )
        for operator in operators
    ]

    assert [True, True] == [sum(of_labels) == 1, of_labels == of_nodes]
