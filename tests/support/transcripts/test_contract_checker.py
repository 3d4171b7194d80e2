"""The RM's own book finds what a scheduler must never do, and finds nothing where all is well."""

from __future__ import annotations

from typing import Any

import pytest
from support.transcripts.contract_checker import ContractChecker, ContractError

KEY = ("app", "k")


def a_checker(*keys: str) -> ContractChecker:
    """Return a book with a running application that has asked for some keys."""
    checker = ContractChecker()
    checker.note_said("application", {"new": [{"applicationID": "app"}]})
    checker.note_heard({"applicationResponse": {"accepted": [{"applicationID": "app"}]}})
    hear_state(checker, "Accepted")
    ask(checker, *keys)
    return checker


def ask(checker: ContractChecker, *keys: str) -> None:
    asks = [{"applicationID": "app", "allocationKey": key} for key in keys]
    checker.note_said("allocation", {"allocations": asks})


def place(checker: ContractChecker, key: str) -> None:
    placed = {"applicationID": "app", "allocationKey": key}
    checker.note_heard({"allocationResponse": {"new": [placed]}})


def hear_state(checker: ContractChecker, state: str) -> None:
    checker.note_heard({"applicationResponse": {"updated": [{"applicationID": "app", "state": state}]}})


def hear_release(checker: ContractChecker, key: str, termination: str, message: str = "") -> None:
    release = {"applicationID": "app", "allocationKey": key}
    release |= {"terminationType": termination, "message": message}
    checker.note_heard({"allocationResponse": {"released": [release]}})


def say_release(checker: ContractChecker, key: str, termination: str) -> None:
    release = {"applicationID": "app", "allocationKey": key, "terminationType": termination}
    checker.note_said("allocation", {"releases": {"allocationsToRelease": [release]}})


def documents(*placed: str, waiting: tuple[str, ...] = (), state: str = "Accepted") -> list[Any]:
    return [
        {
            "applicationID": "app",
            "applicationState": state,
            "allocations": [{"allocationKey": key} for key in placed],
            "requests": [{"allocationKey": key} for key in waiting],
        }
    ]


def test_the_checker_accepts_what_is_so() -> None:
    """One key is placed, one waits, one was rejected and one released."""
    checker = a_checker("k", "waits", "rejected", "released")
    place(checker, "k")
    rejection = {"applicationID": "app", "allocationKey": "rejected", "reason": "no"}
    checker.note_heard({"allocationResponse": {"rejectedAllocations": [rejection]}})
    say_release(checker, "released", "STOPPED_BY_RM")

    checker.check(documents("k", waiting=("waits",)))


def test_asks_that_are_dropped_in_the_older_generation_have_had_their_answer() -> None:
    """The message lists them apart; whatever it does not list is still missed."""
    checker = a_checker("dropped", "lost")
    dropped = {"applicationID": "app", "allocationKey": "dropped", "terminationType": "TIMEOUT"}
    checker.note_heard({"allocationResponse": {"releasedAsks": [dropped]}})

    with pytest.raises(ContractError, match=r"\[\('app', 'lost'\)\] neither wait"):
        checker.check(documents())


def test_what_is_placed_twice_is_found() -> None:
    """A key is announced once."""
    checker = a_checker("k")
    place(checker, "k")

    with pytest.raises(ContractError, match="announced twice"):
        place(checker, "k")


def test_what_is_announced_after_its_end_is_found() -> None:
    """But for a key that is asked for again."""
    checker = a_checker("k")
    place(checker, "k")
    say_release(checker, "k", "PREEMPTED_BY_SCHEDULER")

    with pytest.raises(ContractError, match="after its end"):
        place(checker, "k")
    ask(checker, "k")
    place(checker, "k")


def test_what_was_not_asked_for_is_found() -> None:
    """No key comes from nowhere."""
    with pytest.raises(ContractError, match="never asked for"):
        place(a_checker(), "k")


@pytest.mark.parametrize(("placed", "found"), [((), "for the RM alone"), (("k", "z"), "'z'")])
def test_what_only_one_side_has_placed_is_found(placed: tuple[str, ...], found: str) -> None:
    """Whichever side it is."""
    checker = a_checker("k")
    place(checker, "k")

    with pytest.raises(ContractError, match=found):
        checker.check(documents(*placed))


def test_a_lost_ask_is_found() -> None:
    """It neither waits nor is placed, and no callback was made."""
    with pytest.raises(ContractError, match="neither wait"):
        a_checker("k").check(documents())


def test_a_member_whose_swap_is_under_way_is_not_lost() -> None:
    """The release of its placeholder names it."""
    checker = a_checker("ph", "k")
    place(checker, "ph")
    hear_release(checker, "ph", "PLACEHOLDER_REPLACED", "replacing allocationKey: k")
    place(checker, "k")

    checker.check(documents("k"))


def test_what_is_to_end_counts_until_it_is_confirmed() -> None:
    """An RM that confirms by itself has done so already."""
    checker = a_checker("k")
    place(checker, "k")
    checker.note_said("confirm", "manual")
    hear_release(checker, "k", "TIMEOUT")

    checker.check(documents("k"))
    assert {KEY: "TIMEOUT"} == checker.to_confirm
    say_release(checker, "k", "TIMEOUT")

    checker.check(documents())
    assert {} == checker.to_confirm


def test_a_state_out_of_turn_is_found() -> None:
    """The table of states says what may follow."""
    with pytest.raises(ContractError, match="went from"):
        hear_state(a_checker(), "Failed")


@pytest.mark.parametrize("shown", [[], documents(state="Running")])
def test_a_state_that_was_not_reported_is_found(shown: list[Any]) -> None:
    """Also an application that is not there."""
    with pytest.raises(ContractError, match="is not Accepted"):
        a_checker().check(shown)


def test_an_application_that_is_removed_is_forgotten() -> None:
    """Its asks are over."""
    checker = a_checker("k")
    checker.note_said("application", {"remove": [{"applicationID": "app"}]})

    checker.check([])


def test_an_ask_that_goes_with_its_application_without_an_answer_is_found() -> None:
    """Whatever the application has come to."""
    checker = a_checker("k")
    hear_state(checker, "Failing")
    hear_state(checker, "Failed")

    with pytest.raises(ContractError, match="neither wait"):
        checker.check([])


def test_an_ask_that_goes_with_its_partition_is_answered_by_the_state() -> None:
    """Its application fails because there is no partition any more."""
    checker = a_checker("k")
    update = {"applicationID": "app", "state": "Failing", "message": "PartitionRemoved"}
    checker.note_heard({"applicationResponse": {"updated": [update]}})

    checker.check(documents(state="Failing"))


def test_what_is_asked_for_again_after_its_end_is_to_be_answered() -> None:
    """The key may be used again."""
    checker = a_checker("k")
    place(checker, "k")
    hear_release(checker, "k", "STOPPED_BY_RM")
    checker.check(documents())
    ask(checker, "k")

    with pytest.raises(ContractError, match="neither wait"):
        checker.check(documents())


def test_a_partition_that_begins_anew_has_nothing() -> None:
    """Nor does one that a configuration has no more."""
    checker = a_checker("k")
    place(checker, "k")
    checker.forget_partitions("", note_registration=True)

    checker.check([])
