"""Rules about the order of nodes; `§` marks where an error is reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.model.configurations import below_root, errors_at_marks

from licorne.model.configuration.policies import NODE_ORDER_WORDS
from licorne.model.configuration.reader import load

PAGE: Final = Path(__file__).parents[4] / "docs" / "configuration.md"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("''", "fair"),
        ("~", "fair"),
        *((word, word) for word in NODE_ORDER_WORDS),
        ("policy/gpu", "policy/gpu"),
    ],
)
def test_each_policy_can_be_configured(written: str, meant: str) -> None:
    """Without one the policy is fair."""
    (partition,) = load(below_root("", f"nodesortpolicy: {{type: {written}}}\ntopology: [rack]")).partitions

    assert meant == partition.node_sort_policy.word


def test_the_page_names_each_policy() -> None:
    """One that stands nowhere is not used."""
    (row,) = re.findall(r"^\| `nodesortpolicy.type` .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert [] == [word for word in NODE_ORDER_WORDS if f"`{word}`:" not in row]


@pytest.mark.parametrize(
    ("policy", "hint"),
    [("Fair", "; did you mean 'fair'?"), ("bin_packing", "; did you mean 'binpacking'?"), ("random", "")],
)
def test_other_policies_are_refused(policy: str, hint: str) -> None:
    """Case matters; the policy that was meant is named."""
    text = below_root("", f"nodesortpolicy: {{type: §{policy}}}")

    assert [f"undefined policy: {policy}{hint}"] == errors_at_marks(text)


def test_weights_are_not_negative() -> None:
    """Zero is allowed, each negative one is reported."""
    text = below_root("", "nodesortpolicy: {resourceweights: {memory: §-1.5, vcore: 0, pods: §-2}}")

    assert [
        "negative resource weight for memory is not allowed: -1.5",
        "negative resource weight for pods is not allowed: -2",
    ] == errors_at_marks(text)


@pytest.mark.parametrize(
    ("weight", "kind"), [("heavy", "the text 'heavy'"), (".inf", ".inf"), ("[1]", "a list")]
)
def test_weights_are_finite_numbers(weight: str, kind: str) -> None:
    """An infinite weight would leave the others without any."""
    text = below_root("", f"nodesortpolicy: {{resourceweights: {{memory: §{weight}}}}}")

    assert [f"expected a finite number, not {kind}"] == errors_at_marks(text)
