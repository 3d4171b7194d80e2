"""The applications that rest beside promises: which ask waits longest."""

from __future__ import annotations

from support.model.builders import an_ask

from licorne.model.state.expected_ends import PassedBy


def test_the_oldest_ask_is_found_that_still_rests_and_was_not_tried() -> None:
    """Those that were tried stay: another walk may not try them."""
    passed_by, resting = PassedBy(), {"a", "b", "c"}
    for key, created_at_ns in (("c", 3), ("a", 1), ("b", 2)):
        passed_by.add(an_ask(key, created_at_ns=created_at_ns), resting.__contains__)

    assert (1, "a") == passed_by.first(resting.__contains__, lambda _: False)
    assert (2, "b") == passed_by.first(resting.__contains__, lambda key: key == "a")
    assert (1, "a") == passed_by.first(resting.__contains__, lambda _: False)
    resting.remove("a")
    assert (2, "b") == passed_by.first(resting.__contains__, lambda _: False)
    assert passed_by.first(resting.__contains__, lambda _: True) is None


def test_what_rests_no_longer_is_not_kept_for_ever() -> None:
    """One that rests for ever would otherwise keep all that came after it."""
    passed_by = PassedBy()
    for number in range(10_000):
        passed_by.add(an_ask(f"ask-{number}", created_at_ns=number), lambda key: key == "ask-0")

    assert len(passed_by) < 2_000
