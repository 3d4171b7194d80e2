"""The RM's own book finds what a scheduler must never do, and finds nothing where all is well."""

from __future__ import annotations

from typing import Any

import pytest
from support.transcripts.contract_checker import ContractChecker, ContractError

KEY = ("app", "k")


def a_book(*keys: str) -> ContractChecker:
    """Return a book with a running application that has asked for some keys."""
    book = ContractChecker()
    book.note_said("application", {"new": [{"applicationID": "app"}]})
    book.note_heard({"applicationResponse": {"accepted": [{"applicationID": "app"}]}})
    hear_state(book, "Accepted")
    ask(book, *keys)
    return book


def ask(book: ContractChecker, *keys: str) -> None:
    asks = [{"applicationID": "app", "allocationKey": key} for key in keys]
    book.note_said("allocation", {"allocations": asks})


def place(book: ContractChecker, key: str) -> None:
    placed = {"applicationID": "app", "allocationKey": key}
    book.note_heard({"allocationResponse": {"new": [placed]}})


def hear_state(book: ContractChecker, state: str) -> None:
    book.note_heard({"applicationResponse": {"updated": [{"applicationID": "app", "state": state}]}})


def hear_release(book: ContractChecker, key: str, termination: str, message: str = "") -> None:
    release = {"applicationID": "app", "allocationKey": key}
    release |= {"terminationType": termination, "message": message}
    book.note_heard({"allocationResponse": {"released": [release]}})


def say_release(book: ContractChecker, key: str, termination: str) -> None:
    release = {"applicationID": "app", "allocationKey": key, "terminationType": termination}
    book.note_said("allocation", {"releases": {"allocationsToRelease": [release]}})


def documents(*placed: str, waiting: tuple[str, ...] = (), state: str = "Accepted") -> list[Any]:
    return [
        {
            "applicationID": "app",
            "applicationState": state,
            "allocations": [{"allocationKey": key} for key in placed],
            "requests": [{"allocationKey": key} for key in waiting],
        }
    ]


def test_a_book_agrees_with_what_is_so() -> None:
    """One key is placed, one waits, one was rejected and one released."""
    book = a_book("k", "waits", "rejected", "released")
    place(book, "k")
    rejection = {"applicationID": "app", "allocationKey": "rejected", "reason": "no"}
    book.note_heard({"allocationResponse": {"rejectedAllocations": [rejection]}})
    say_release(book, "released", "STOPPED_BY_RM")

    book.check(documents("k", waiting=("waits",)))


def test_what_is_placed_twice_is_found() -> None:
    """A key is announced once."""
    book = a_book("k")
    place(book, "k")

    with pytest.raises(ContractError, match="announced twice"):
        place(book, "k")


def test_what_is_announced_after_its_end_is_found() -> None:
    """But for a key that is asked for again."""
    book = a_book("k")
    place(book, "k")
    say_release(book, "k", "PREEMPTED_BY_SCHEDULER")

    with pytest.raises(ContractError, match="after its end"):
        place(book, "k")
    ask(book, "k")
    place(book, "k")


def test_what_nobody_asked_for_is_found() -> None:
    """No key comes from nowhere."""
    with pytest.raises(ContractError, match="never asked for"):
        place(a_book(), "k")


@pytest.mark.parametrize(("placed", "found"), [((), "for the RM alone"), (("k", "z"), "'z'")])
def test_what_only_one_side_has_placed_is_found(placed: tuple[str, ...], found: str) -> None:
    """Whichever side it is."""
    book = a_book("k")
    place(book, "k")

    with pytest.raises(ContractError, match=found):
        book.check(documents(*placed))


def test_a_lost_ask_is_found() -> None:
    """It neither waits nor is placed, and no callback was made."""
    with pytest.raises(ContractError, match="neither wait"):
        a_book("k").check(documents())


def test_a_member_whose_swap_is_under_way_is_not_lost() -> None:
    """The release of its placeholder names it."""
    book = a_book("ph", "k")
    place(book, "ph")
    hear_release(book, "ph", "PLACEHOLDER_REPLACED", "replacing allocationKey: k")
    place(book, "k")

    book.check(documents("k"))


def test_what_is_to_end_counts_until_it_is_confirmed() -> None:
    """An RM that confirms by itself has done so already."""
    book = a_book("k")
    place(book, "k")
    book.note_said("confirm", "manual")
    hear_release(book, "k", "TIMEOUT")

    book.check(documents("k"))
    assert {KEY: "TIMEOUT"} == book.to_confirm
    say_release(book, "k", "TIMEOUT")

    book.check(documents())
    assert {} == book.to_confirm


def test_a_state_out_of_turn_is_found() -> None:
    """The table of states says what may follow."""
    with pytest.raises(ContractError, match="went from"):
        hear_state(a_book(), "Failed")


@pytest.mark.parametrize("shown", [[], documents(state="Running")])
def test_a_state_that_was_not_told_is_found(shown: list[Any]) -> None:
    """Also an application that is not there."""
    with pytest.raises(ContractError, match="is not Accepted"):
        a_book().check(shown)


def test_an_application_that_is_removed_is_forgotten() -> None:
    """Its asks are over."""
    book = a_book("k")
    book.note_said("application", {"remove": [{"applicationID": "app"}]})

    book.check([])


def test_an_ask_that_goes_with_its_application_without_an_answer_is_found() -> None:
    """Whatever the application has come to."""
    book = a_book("k")
    hear_state(book, "Failing")
    hear_state(book, "Failed")

    with pytest.raises(ContractError, match="neither wait"):
        book.check([])


def test_an_ask_that_goes_with_its_partition_is_answered_by_the_state() -> None:
    """Its application fails because there is no partition any more."""
    book = a_book("k")
    update = {"applicationID": "app", "state": "Failing", "message": "PartitionRemoved"}
    book.note_heard({"applicationResponse": {"updated": [update]}})

    book.check(documents(state="Failing"))


def test_what_is_asked_for_again_after_its_end_is_to_be_answered() -> None:
    """The key may be used again."""
    book = a_book("k")
    place(book, "k")
    hear_release(book, "k", "STOPPED_BY_RM")
    book.check(documents())
    ask(book, "k")

    with pytest.raises(ContractError, match="neither wait"):
        book.check(documents())


def test_a_partition_that_begins_anew_has_nothing() -> None:
    """Nor does one that a configuration has no more."""
    book = a_book("k")
    place(book, "k")
    book.forget_partitions("", note_registration=True)

    book.check([])
