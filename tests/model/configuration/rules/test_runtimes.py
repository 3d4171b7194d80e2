"""Rules about run times of queues; `§` marks where an error is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import below_root, errors_at_marks, errors_of, warnings_at_marks

DURATION: Final = "and must be a duration above zero, such as '90m'"

REFUSED: Final[dict[str, tuple[str, str]]] = {
    "a default is a duration": (
        below_root("- {name: a, properties: {runtime.default: §soon}}"),
        f"runtime.default is 'soon', {DURATION}",
    ),
    "a maximum is above zero": (
        below_root("- {name: a, properties: {runtime.max: §0s}}"),
        f"runtime.max is '0s', {DURATION}",
    ),
    "an overrun is one of two words": (
        below_root("- {name: a, properties: {runtime.overrun: §kill}}"),
        "runtime.overrun is 'kill', and must be 'extend' or 'end'",
    ),
    "a default is not above the maximum": (
        below_root("- {name: a, properties: {runtime.default: §2h, runtime.max: 1h}}"),
        "runtime.default 2h0m0s is longer than runtime.max 1h0m0s",
    ),
    "nor above the maximum of a queue further up": (
        below_root(
            "- name: a\n  properties: {runtime.max: 1h}\n"
            "  queues: [{name: b, properties: {runtime.default: §2h}}]"
        ),
        "runtime.default 2h0m0s is longer than runtime.max 1h0m0s",
    ),
    "a maximum is not below the default of a queue further up": (
        below_root(
            "- name: a\n  properties: {runtime.default: 2h}\n"
            "  queues: [{name: b, properties: {runtime.max: §1h}}]"
        ),
        "runtime.default 2h0m0s is longer than runtime.max 1h0m0s",
    ),
    "a template is read as a queue is": (
        below_root("- {name: a, parent: true, childtemplate: {properties: {runtime.max: §x}}}"),
        f"runtime.max is 'x', {DURATION}",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_run_times_that_cannot_be_meant_are_refused(case: tuple[str, str]) -> None:
    """Each at its own place, and once."""
    text, error = case

    assert [error] == errors_at_marks(text)


def test_run_times_that_fit_are_accepted() -> None:
    """A default may be the maximum, and a queue may allow more than the one above it."""
    text = """
    - name: a
      properties: {runtime.max: 1h, runtime.default: 1h, runtime.overrun: END}
      queues: [{name: b, properties: {runtime.max: 2d, runtime.overrun: extend}}]
    """

    assert [] == errors_of(below_root(text))


def test_run_times_at_a_parent_without_queues_are_a_warning() -> None:
    """Nothing inherits them."""
    text = below_root("- {name: a, parent: true, properties: {runtime.max: §1h}}")
    effect = "runtime.max has no effect at a parent without configured queues; did you mean childtemplate?"

    assert [effect] == warnings_at_marks(text)
