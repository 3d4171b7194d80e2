from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from fake_core import FakeCore
from rich.console import Console
from simulation_builders import SECOND, a_task, an_application, run

from licorne.proxy.simulation.driver import RunResult
from licorne.proxy.simulation.report import build_report
from licorne.proxy.simulation.report_table import chart_line, format_duration, print_report
from licorne.proxy.simulation.workload import InputNote

if TYPE_CHECKING:
    from licorne.proxy.simulation.books import Books


def _printed(books: Books, width: int = 100, encoding: str = "utf-8") -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    notes = tuple(InputNote(9 - n, f"kinds of thing {n}") for n in range(9))
    report = build_report(
        books, RunResult(1500, 2.0), workload="my work", engine="direct", nodes=3, notes=notes
    )
    print_report(report, Console(file=stream, width=width))
    stream.seek(0)
    return [line.rstrip() for line in stream.read().splitlines()]


def _some_books() -> Books:
    return run(
        FakeCore(refused_queues={"root.none"}),
        an_application(a_task("t1", cores=10), a_task("t2", cores=10), name="a1", queue="root.a"),
        an_application(a_task("t3", cores=1, duration=None), name="a2", queue="root.b"),
        an_application(name="a3", queue="root.none"),
    )


def test_a_person_reads_the_figures_of_each_queue_and_the_total() -> None:
    """Submitted, placed, waiting and completed, then what is not always there, then the waits."""
    lines = _printed(_some_books())

    assert ["root.a", "2", "2", "0", "2", "0", "0", "0s", "1m", "1m"] in [line.split() for line in lines]
    assert ["total", "4", "3", "0", "2", "1", "1", "1m", "2m", "2m"] in [line.split() for line in lines]
    assert ["root.none", "1", "0", "0", "0", "0", "1", "-", "-", "-"] in [line.split() for line in lines]


def test_the_headline_and_the_last_line_say_what_was_run_and_how_fast() -> None:
    """In words."""
    lines = _printed(_some_books())

    assert "my work: 3 nodes, 4 tasks, 3 queues, 2m of virtual time, engine direct" == lines[0]
    assert "1,500 decisions in 2.00 s: 750 decisions per second" == lines[-1]


def test_the_chart_shows_the_cluster_and_each_queue_that_used_something() -> None:
    """Mean, peak and the resource type stand behind each line."""
    lines = [line for line in _printed(_some_books()) if "|" in line]

    assert ["total", "root.a", "root.b"] == [line.split()[0] for line in lines]
    assert lines[1].endswith("| 100.0 % 100.0 % vcore")
    assert "█" * 60 in lines[1]


def test_what_was_rejected_is_told_with_its_reason() -> None:
    """Counted by reason."""
    lines = _printed(_some_books())

    assert "  1 no queue for ..." == lines[lines.index("rejected, and why:") + 1]


def test_many_notes_are_cut_short() -> None:
    """The first eight, and how many there are besides."""
    lines = _printed(_some_books())
    start = lines.index("about the input:")

    assert ("  9 kinds of thing 0", "  and 1 more kinds") == (lines[start + 1], lines[start + 9])


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """But for notes, which may be copied from there."""
    assert all(len(line) <= width for line in _printed(_some_books(), width) if "kinds" not in line)


def test_a_terminal_without_unicode_gets_plain_characters() -> None:
    """Nothing fails to encode."""
    lines = [line for line in _printed(_some_books(), encoding="ascii") if line.startswith("  root.a")]

    assert "@" * 60 in lines[0]


def test_names_are_no_markup() -> None:
    """A queue in brackets is shown as it is."""
    books = run(FakeCore(), an_application(queue="root.[bold]x"), an_application(a_task("u"), name="b"))

    assert any("root.[bold]x" in line for line in _printed(books, 120))


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [
        (0, "0s"),
        (7, "7ns"),
        (250 * 10**6, "250ms"),
        (59 * SECOND, "59s"),
        (60 * SECOND, "1m"),
        (3_661 * SECOND, "1h1m"),
        (90_000 * SECOND, "1d1h"),
        (149 * 86_400 * SECOND, "149d"),
    ],
)
def test_durations_are_written_in_their_two_largest_units(nanoseconds: int, expected: str) -> None:
    """Nobody wants the seconds of a week."""
    assert expected == format_duration(nanoseconds)


def test_a_chart_line_averages_what_does_not_fit() -> None:
    """Two values a column here."""
    assert "█▄▁ " == chart_line([1000, 1000, 1000, 0, 1, 0, 0, 0], 4)


def test_a_short_series_has_a_short_line() -> None:
    """A value is never drawn twice."""
    assert "▄" == chart_line([500], 60)
