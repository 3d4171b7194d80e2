"""Long lists in pieces whose size follows from what is in them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from licorne.proxy.core.documents.declarations import ITEMS_WANTED, ROWS_MAX, paged


@pytest.mark.parametrize("items", [1, 10, ITEMS_WANTED // 4, 5 * ITEMS_WANTED])
def test_a_piece_has_about_so_many_items(items: int) -> None:
    """From the second one on; one row at least, and not too many."""
    asked: list[int] = []

    def ask(keys: Sequence[int]) -> Sequence[int]:
        asked.append(len(keys))
        return keys

    rows = [row for page in paged(range(2000), ask, lambda _: items) for row in page]

    assert list(range(2000)) == rows
    assert asked[-2] == min(max(ITEMS_WANTED // items, 1), ROWS_MAX)
    assert max(asked[1:]) <= max(ITEMS_WANTED // items, 1)


def test_what_is_gone_is_left_out() -> None:
    """Also where it is a whole piece."""
    pages = paged(range(100), lambda keys: [key for key in keys if key >= 90], lambda _: 1)

    assert list(range(90, 100)) == [row for page in pages for row in page]


def test_a_piece_is_asked_for_when_it_is_wanted() -> None:
    """So that a reader who is slow holds one in memory."""
    asked: list[Sequence[int]] = []
    pages = paged(range(1000), lambda keys: asked.append(keys) or keys, lambda _: 1)  # type: ignore[func-returns-value]

    next(pages)
    assert len(asked) == 1
