"""How much memory checked locks take."""

from __future__ import annotations

import tracemalloc

import pytest
from lock_memory import bytes_per_lock


@pytest.mark.lockcheck(off=True)  # it counts what its own sessions keep
def test_a_lock_has_more_once_it_was_taken_and_more_where_more_is_looked_at() -> None:
    """Beyond what a plain one has; a million of them still fit."""
    figures = {figure.subject: figure.value for figure in bytes_per_lock(count=2_000)}

    for kind in ("RLock", "RWLock"):
        order, full = (
            (
                figures[f"{kind}, {level}, beyond a plain one"],
                figures[f"{kind}, {level}, the same, once taken"],
            )
            for level in ("order", "full")
        )
        assert 0 < order[0] < order[1] < full[1]
        assert full[0] < 350  # an answerer's properties belong to answerers only
    assert not tracemalloc.is_tracing()
