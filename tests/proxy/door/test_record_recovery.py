"""Random days with a book between a resource manager (RM) and schedulers that are lost: all three agree."""

from __future__ import annotations

import pytest
from support.proxy.booked_days import BookedDay


@pytest.mark.parametrize("seed", range(20))
def test_the_book_restores_what_the_rm_knows_whenever_a_scheduler_is_lost(seed: int) -> None:
    """Requests and answers that were under way are lost with it; in the end nothing is left anywhere."""
    day = BookedDay(seed)
    day.live()
    day.lose_while_nothing_is_under_way()
    day.link.settle()
    day.check()
    day.end()

    book = day.link.book
    assert day.compared > 0
    assert 0 == book.nodes + book.applications + book.asks + book.allocations
    assert 0 == book.foreign_allocations + book.ending
    day.link.stop()
