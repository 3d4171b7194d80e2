"""Applications that are created if they are missing: the RM need not know whether one has just completed."""

from __future__ import annotations

import pytest
from support.model.builders import a_resource
from support.model.harness import Harness

from licorne.model.values.messages import ApplicationsAnswered

FIVE = a_resource(memory=5)
IF_MISSING = {"licorne/create-if-missing": "true"}


def completing(released: str = "a") -> Harness:
    """Return a partition whose application has nothing any more; by the release of one it has 30 seconds."""
    h = Harness()
    h.nodes("one")
    h.submit()
    h.ask("a", resource=FIVE)
    h.run_until_idle()
    h.release(released)
    assert "Completing" == h.states()[-1]
    return h


def test_one_that_is_there_is_accepted_and_stays_as_it_is() -> None:
    """Its queue, its user and what it has are those from before."""
    h = Harness("- name: leaf\n- name: other")
    h.nodes("one")
    h.submit()
    h.ask("a", resource=FIVE)
    h.run_until_idle()
    h.forget()

    assert h.submit(queue_name="root.other", user="ada", tags=IF_MISSING) is None

    assert [("app",)] == [answer.accepted for answer in h.heard(ApplicationsAnswered)]
    assert (FIVE, FIVE) == (h.queue().allocated, h.user_usage("bob"))


def test_one_that_has_completed_is_created() -> None:
    """It is a new application of the same id, and its asks are placed."""
    h = completing()
    h.advance(31)
    assert "Completed" == h.states()[-1]

    assert h.submit(tags=IF_MISSING) is None
    h.ask("b", resource=FIVE)
    h.run_until_idle()

    assert {"a": "one", "b": "one"} == h.placements


def test_one_that_is_about_to_complete_waits_for_its_asks() -> None:
    """For as long as from the beginning, once more."""
    h = completing()
    h.advance(29)
    assert h.submit(tags=IF_MISSING) is None

    h.advance(29)
    assert "Completing" == h.states()[-1]
    assert () == h.ask("b", resource=FIVE)

    h.run_until_idle()
    assert "Running" == h.states()[-1]


def test_one_that_waits_longer_already_goes_on_waiting() -> None:
    """After the release of all that it had it has an hour."""
    h = completing(released="")

    h.submit(tags=IF_MISSING)
    h.advance(3_000)

    assert "Completing" == h.states()[-1]


@pytest.mark.parametrize("value", ["false", ""])
def test_without_the_tag_one_that_is_there_is_refused(value: str) -> None:
    """As ever: two applications of one id are a mistake."""
    h = completing()

    rejection = h.submit(tags={"licorne/create-if-missing": value})

    assert rejection is not None
    assert "application already existed" in rejection.reason
