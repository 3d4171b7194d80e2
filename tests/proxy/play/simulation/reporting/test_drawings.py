"""Drawings in cells, and what a page shows first."""

from __future__ import annotations

from licorne.proxy.play.simulation.reporting.page_parts import alert, interval, share_bar, table


def test_drawings_are_to_scale_and_texts_are_escaped() -> None:
    """A bar is a share of the largest value, an interval lies around zero; nothing is empty."""
    page = table("t", ("name", "", ""), [("<a>", share_bar(1, 4), interval(-10, 5, 10, 10))])

    assert "&lt;a&gt;" in page
    assert '<span class="bar" style="width:25.0%"></span>' in page
    assert 'd="M50 0V16M2.0 8H98.0M74.0 3V13"' in page
    assert "width:0.0%" in share_bar(0, 0)
    assert '<p class="alert">1 &lt; 2</p>' == alert("1 < 2")
