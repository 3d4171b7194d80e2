from __future__ import annotations

from figures import Gauges, peak_bytes, resident_bytes


def test_the_peak_is_at_least_what_is_resident() -> None:
    """Both are in bytes: an interpreter with the messages of si.v1 has ten million at least."""
    assert 10_000_000 < resident_bytes() <= peak_bytes() * 1.01


def test_memory_that_is_kept_is_resident() -> None:
    """Thirty million bytes, written to, show."""
    before = resident_bytes()
    kept = bytearray(b"x" * 30_000_000)

    assert resident_bytes() - before > 15_000_000
    assert len(kept) == 30_000_000


def test_the_gauges_read_the_real_thing_by_default() -> None:
    """The measuring process needs to name none of them."""
    gauges = Gauges()

    assert gauges.resident_bytes is resident_bytes
    assert gauges.clock_seconds() <= gauges.clock_seconds()
