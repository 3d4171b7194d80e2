"""What is sent to a partition and not carried out yet: how much there may be, and who waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.waiting import WAIT_SECONDS, stays

from licorne.actors.runtime import mailbox
from licorne.actors.runtime.mailbox import ENTRIES_MAX, Inflow, entries_of


@pytest.mark.parametrize(
    ("args", "entries"), [((), 1), ((object(),), 1), (((), []), 1), ((("a", "b"), ["c"], "text"), 3)]
)
def test_the_entries_of_a_request_are_counted(args: tuple[object, ...], entries: int) -> None:
    """A request without any counts as one."""
    assert entries == entries_of(args)


def waiting(flow: Inflow) -> threading.Thread:
    """Return a thread that waits for room."""
    thread = threading.Thread(target=flow.wait_for_room, daemon=True)
    thread.start()
    return thread


def goes_on(thread: threading.Thread) -> bool:
    thread.join(WAIT_SECONDS)
    return not thread.is_alive()


def test_no_call_waits_below_the_bound() -> None:
    """One request may go beyond it, however large."""
    flow = Inflow()
    flow.add(ENTRIES_MAX - 1)
    flow.wait_for_room()
    flow.add(10 * ENTRIES_MAX)

    assert 11 * ENTRIES_MAX - 1 == flow.entries


@pytest.mark.parametrize(
    "relief", [lambda flow: flow.remove(ENTRIES_MAX // 2), lambda flow: flow.close()], ids=["half", "end"]
)
def test_who_waits_goes_on_when_half_is_carried_out_or_the_partition_ends(
    relief: Callable[[Inflow], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before: to wake for each entry would change threads each time."""
    monkeypatch.setattr(mailbox, "WAIT_SECONDS_MAX", WAIT_SECONDS)
    flow = Inflow()
    flow.add(ENTRIES_MAX)
    thread = waiting(flow)
    flow.remove(ENTRIES_MAX // 2 - 1)
    flow.add(ENTRIES_MAX // 2 - 1)
    waits = stays(thread.is_alive)
    relief(flow)

    assert (True, True) == (waits, goes_on(thread))


def test_no_call_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller may hold a lock that a predicate wants, for which the partition waits."""
    monkeypatch.setattr(mailbox, "WAIT_SECONDS_MAX", 0.01)
    flow = Inflow()
    flow.add(ENTRIES_MAX)

    assert goes_on(waiting(flow))
