from __future__ import annotations

import io

import pytest

from licorne.proxy.play.simulation.driver import NoProgress, TerminalProgress, progress_on


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_there_is_no_bar_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where colours are forced."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()

    with progress_on(stream, "work") as progress:
        progress.advanced(1, 2, 3)

    assert isinstance(progress, NoProgress)
    assert "" == stream.getvalue()


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share that is done, the virtual time, and the time that remains."""
    monkeypatch.setenv("TERM", "xterm")
    stream = _Terminal()

    with progress_on(stream, "work") as progress:
        progress.advanced(1, 4, 90 * 10**9)
        assert isinstance(progress, TerminalProgress)
        progress._bar.refresh()

    assert "work" in stream.getvalue()
    assert "25%" in stream.getvalue()
    assert "1m30s" in stream.getvalue()
    assert "remaining:" in stream.getvalue()


def test_a_workload_without_work_has_a_bar_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is divided by nothing."""
    monkeypatch.setenv("TERM", "xterm")
    with progress_on(_Terminal(), "work") as progress:
        progress.advanced(0, 0, 0)
