"""For whom work counts."""

from __future__ import annotations

from licorne.proxy.play.simulation.accounts import Account, Accounts, Owner, Tally
from licorne.proxy.play.simulation.record import AskEntry, SimulationRecord

ASKED = Owner(queue="root.asked", user="u")
REAL = Owner(queue="root.real", user="u", groups=("g",))


def ask(record: SimulationRecord, account: Account, *keys: str, cores: int = 1) -> None:
    """Ask for work of an account, at the start."""
    for key in keys:
        entry = AskEntry(account=account, application_id="a", resources={"vcore": cores}, asked_at_ns=0)
        record.asked(key, entry, 0)


def test_an_application_counts_as_what_it_asked_for_until_it_is_placed() -> None:
    """And stays so where it is never placed."""
    record = SimulationRecord()
    ask(record, record.accounts.opened(ASKED), "k")
    assert [ASKED] == list(record.accounts.tallies())

    record.rejected("k", 1, "no")

    tally = record.accounts.tallies()[ASKED]
    assert (1, 1) == (tally.submitted, tally.rejected)


def test_all_that_an_application_had_counts_where_it_is_placed() -> None:
    """Also what was placed and used before that was known."""
    record = SimulationRecord()
    account = record.accounts.opened(ASKED)
    ask(record, account, "k1", "k2", cores=2)
    record.placed("k1", 3)
    record.accounts.assigned(account, REAL)
    record.placed("k2", 5)
    record.completed("k1", 10)

    ((owner, tally),) = record.accounts.tallies().items()

    assert (REAL, 2, 2) == (owner, tally.submitted, tally.placed)
    assert (1, 1, [3, 5]) == (tally.running, tally.completed, tally.waits_ns)
    assert [2 * 2 + 4 * 5] == tally.used["vcore"].integrals([0, 10])


def test_an_owner_of_several_applications_has_one_tally() -> None:
    """Whatever they asked for; a second assignment does nothing."""
    record = SimulationRecord()
    for number, asked in enumerate((ASKED, REAL)):
        account = record.accounts.opened(asked)
        ask(record, account, f"k{number}")
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
    ask(record, record.accounts.opened(ASKED), "k")
    record.placed("k", 1)
    told = record.accounts.tallies()[ASKED]
    total = Tally()
    total.add(told)
    total.add(told)
    record.completed("k", 2)

    assert (1, 0, 1, 2) == (told.running, told.completed, told.used["vcore"].value, total.running)
