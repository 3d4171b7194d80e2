"""What explanations copy of an application: no more than they are about."""

from __future__ import annotations

from support.model.builders import a_resource
from support.model.harness import Harness


def waiting_keys(
    harness: Harness, *, only_key: str | None = None, first_of_shapes: bool = False
) -> list[str]:
    report = harness.application().report(only_key=only_key, first_of_shapes=first_of_shapes)
    assert ("urgent", "small-1", "small-2", "large-1", "large-2") == report.waiting_keys
    return [waiting.ask.allocation_key for waiting in report.waiting]


def test_of_asks_that_wait_only_those_are_copied_that_are_asked_for() -> None:
    """All, one, or the first one of each shape; the places are known of all."""
    harness = Harness()
    harness.submit()
    harness.ask("small-1", "small-2", resource=a_resource(memory=1))
    harness.ask("large-1", "large-2", resource=a_resource(memory=9))
    harness.ask("urgent", resource=a_resource(memory=1), priority=5)

    assert ["urgent", "small-1", "small-2", "large-1", "large-2"] == waiting_keys(harness)
    assert ["large-1"] == waiting_keys(harness, only_key="large-1")
    assert [] == waiting_keys(harness, only_key="unknown")
    assert ["urgent", "small-1", "large-1"] == waiting_keys(harness, first_of_shapes=True)


def test_of_allocations_only_the_one_is_copied_that_is_asked_for() -> None:
    """Also by the key of the member that is to take the place of a placeholder."""
    harness = Harness()
    harness.nodes("n1", capacity=a_resource(memory=30))
    harness.submit(placeholder_ask=a_resource(memory=10))
    harness.ask("other", "holder", task_group_name="group", placeholder=True)
    harness.run_until_idle()
    harness.ask("member", task_group_name="group")
    harness.run_until_idle()

    def held(only_key: str | None) -> list[str]:
        report = harness.application().report(only_key=only_key)
        return [placed.allocation.allocation_key for placed in report.held]

    assert {"other", "holder"} == set(held(None))
    assert ["holder"] == held("holder")
    assert 1 == len(held("member"))
    assert [] == held("unknown")
