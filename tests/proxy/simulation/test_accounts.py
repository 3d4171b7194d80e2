"""For whom work counts."""

from __future__ import annotations

from licorne.proxy.simulation.accounts import Accounts, Owner, Tally
from licorne.proxy.simulation.record import AskEntry, SimulationRecord

ASKED = Owner(queue="root.asked", user="u")
REAL = Owner(queue="root.real", user="u", groups=("g",))


def test_an_application_counts_as_what_it_asked_for_until_it_is_placed() -> None:
    """And stays so where it is never placed."""
    record = SimulationRecord()
    account = record.accounts.opened(ASKED)
    record.asked("k", AskEntry(account=account, application_id="a", resources={}, asked_at_ns=0), 0)

    assert [ASKED] == list(record.accounts.tallies())

    record.rejected("k", 1, "no")

    assert (1, 1) == (
        record.accounts.tallies()[ASKED].submitted,
        record.accounts.tallies()[ASKED].rejected,
    )


def test_all_that_an_application_had_counts_where_it_is_placed() -> None:
    """Also what was placed and used before that was known."""
    record = SimulationRecord()
    account = record.accounts.opened(ASKED)
    for key in ("k1", "k2"):
        entry = AskEntry(account=account, application_id="a", resources={"vcore": 2}, asked_at_ns=0)
        record.asked(key, entry, 0)
    record.placed("k1", 3)
    record.accounts.assigned(account, REAL)
    record.placed("k2", 5)
    record.completed("k1", 10)

    (tally,) = [record.accounts.tallies()[REAL]]

    assert [REAL] == list(record.accounts.tallies())
    assert (2, 2, 1, 1, [3, 5]) == (
        tally.submitted,
        tally.placed,
        tally.running,
        tally.completed,
        tally.waits_ns,
    )
    assert [2 * 2 + 4 * 5] == tally.used["vcore"].integrals([0, 10])


def test_an_owner_of_several_applications_has_one_tally() -> None:
    """Whatever they asked for; a second assignment does nothing."""
    record = SimulationRecord()
    for number, asked in enumerate((ASKED, REAL)):
        account = record.accounts.opened(asked)
        entry = AskEntry(account=account, application_id="a", resources={"vcore": 1}, asked_at_ns=0)
        record.asked(f"k{number}", entry, 0)
        record.placed(f"k{number}", number)
        record.accounts.assigned(account, REAL)
        record.accounts.assigned(account, ASKED)

    assert [2] == [tally.submitted for tally in record.accounts.tallies().values()]
    assert 2 == record.accounts.tallies()[REAL].used["vcore"].value


def test_an_account_without_work_is_not_reported() -> None:
    """An application may ask for nothing."""
    accounts = Accounts()
    accounts.assigned(accounts.opened(ASKED), REAL)
    accounts.opened(ASKED)

    assert {} == accounts.tallies()


def test_what_is_reported_does_not_change_any_more() -> None:
    """Nor does adding change what was added."""
    record = SimulationRecord()
    account = record.accounts.opened(ASKED)
    entry = AskEntry(account=account, application_id="a", resources={"vcore": 1}, asked_at_ns=0)
    record.asked("k", entry, 0)
    record.placed("k", 1)
    told = record.accounts.tallies()[ASKED]
    total = Tally()
    total.add(told)
    total.add(told)
    record.completed("k", 2)

    assert (1, 0, 1, 2) == (told.running, told.completed, told.used["vcore"].value, total.running)
