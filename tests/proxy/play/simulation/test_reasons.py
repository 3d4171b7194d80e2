from __future__ import annotations

from licorne.proxy.play.simulation.record import without_names


def test_names_are_left_out_as_whole_words() -> None:
    """Reasons for two applications become one."""
    assert "application ... has no ask ..." == without_names("application a has no ask a-1", "a-1", "a")


def test_an_empty_name_stands_nowhere() -> None:
    """A node rejection may have no application."""
    assert "some text" == without_names("some text", "")
