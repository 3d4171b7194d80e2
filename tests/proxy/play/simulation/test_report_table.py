from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import SECOND, a_node, a_task, an_application, run

from licorne.model.configuration.durations import parse_duration_ns, short_duration_text
from licorne.proxy.base.terminal.standard_output import counted
from licorne.proxy.play.simulation.accounts import Owner
from licorne.proxy.play.simulation.driver import RunResult
from licorne.proxy.play.simulation.record import AskEntry, SimulationRecord
from licorne.proxy.play.simulation.report import build_report
from licorne.proxy.play.simulation.report_table import chart_line, print_report
from licorne.proxy.play.simulation.workloads.workload import InputNote


def _printed(
    record: SimulationRecord, width: int = 100, encoding: str = "utf-8", *, plain: bool = False
) -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    notes = tuple(InputNote(9 - n, f"kinds of thing {n}") for n in range(9))
    report = build_report(
        record, RunResult(1500, 2.0), workload="my work", engine="direct", nodes=3, notes=notes
    )
    print_report(report, Console(file=stream, width=width), plain=plain)
    stream.seek(0)
    return [line.rstrip() for line in stream.read().splitlines()]


def _some_record() -> SimulationRecord:
    return run(
        FakeCore(refused_queues={"root.none"}),
        an_application(a_task("t1", cores=10), a_task("t2", cores=10), name="a1", queue="root.a"),
        an_application(a_task("t3", cores=1, duration=None), name="a2", queue="root.b"),
        an_application(name="a3", queue="root.none"),
    )


def test_a_person_reads_the_figures_of_each_queue_and_the_total() -> None:
    """The counts that are not zero everywhere, and the waits."""
    lines = _printed(_some_record())

    assert ["queue", "submitted", "placed", "running", "completed", "rejected", "median", "p95", "max"] in [
        line.split() for line in lines
    ]
    assert ["root.a", "2", "2", "0", "2", "0", "0s", "1m", "1m"] in [line.split() for line in lines]
    assert ["total", "4", "3", "1", "2", "1", "1m", "2m", "2m"] in [line.split() for line in lines]
    assert ["root.none", "1", "0", "0", "0", "1", "-", "-", "-"] in [line.split() for line in lines]


def test_the_headline_and_the_last_line_say_what_was_run_and_how_fast() -> None:
    """In words."""
    lines = _printed(_some_record())

    assert "my work: 3 nodes, 4 tasks, 3 queues, 2m of virtual time, engine direct" == lines[0]
    assert "1,500 decisions in 2.00 s: 750 decisions per second" == lines[-1]


def test_the_chart_shows_the_cluster_and_each_queue_that_used_something() -> None:
    """Mean, peak and the resource type stand behind each line."""
    lines = [line for line in _printed(_some_record()) if "|" in line]

    assert ["total", "root.a", "root.b"] == [line.split()[0] for line in lines]
    assert lines[1].endswith("| 100.0 % 100.0 % vcore")
    assert "█" * 60 in lines[1]


def test_what_was_rejected_is_reported_with_its_reason() -> None:
    """Counted by reason."""
    lines = _printed(_some_record())

    assert "  once: no queue for ..." == lines[lines.index("rejected, and why:") + 1]


def test_many_notes_are_cut_short() -> None:
    """The first eight, and how many there are besides."""
    lines = _printed(_some_record())
    start = lines.index("about the input:")

    assert ("  9 times: kinds of thing 0", "  and 1 more kind") == (lines[start + 1], lines[start + 9])


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """But for notes, which may be copied from there."""
    assert all(len(line) <= width for line in _printed(_some_record(), width) if "kinds" not in line)


def test_a_terminal_without_unicode_gets_plain_characters() -> None:
    """Nothing fails to encode."""
    lines = [line for line in _printed(_some_record(), encoding="ascii") if line.startswith("  root.a")]

    assert "@" * 60 in lines[0]


def test_in_a_pipe_each_row_is_a_line_with_the_whole_name() -> None:
    """Without frames and bars, and with every column, so that programs find what they look for."""
    name = f"root.{'a' * 64}.{'b' * 64}"
    record = run(
        FakeCore(),
        an_application(a_task("t1", cores=10), queue=name),
        an_application(a_task("t2"), name="b", queue="root.b"),
    )
    lines = _printed(record, 10_000, plain=True)

    assert [name, "1", "1", "0", "0", "1", "0", "0", "0", "0s", "0s", "0s"] in [
        line.split() for line in lines
    ]
    assert [
        "queue",
        "submitted",
        "placed",
        "waiting",
        "running",
        "completed",
        "rejected",
        "withdrawn",
        "preempted",
    ] == (lines[1].split()[:9])
    assert ["wait-median", "wait-p95", "wait-max"] == lines[1].split()[9:]
    assert [name, "vcore", "50.0%", "100.0%"] in [line.split() for line in lines]
    assert [] == [line for line in lines if set(line) & set("─━│┃▁█|")]


def test_users_and_groups_have_figures_of_their_own() -> None:
    """Each where there are several; work of a user in two groups counts in both."""
    record = SimulationRecord()
    for number, (user, groups) in enumerate([("anna", ("a", "b")), ("ben", ("b",)), ("carl", ())]):
        account = record.accounts.opened(Owner(queue="root.q", user=user, groups=groups))
        entry = AskEntry(account=account, application_id="x", resources={"vcore": 1}, asked_at_ns=0)
        record.asked(f"k{number}", entry, 0)
    rows = [line.split()[:3] for line in _printed(record, 200)]

    assert [["anna", "1", "0"], ["ben", "1", "0"], ["carl", "1", "0"]] == [
        row for row in rows if row[:1] in (["anna"], ["ben"], ["carl"])
    ]
    assert [["a", "1", "0"], ["b", "2", "0"]] == [row for row in rows if row[:1] in (["a"], ["b"])]
    assert ["(no", "group)", "1"] in rows


def test_one_user_and_one_group_have_no_table_of_their_own() -> None:
    """It would repeat the total."""
    assert [] == [line for line in _printed(_some_record()) if line.startswith(("user", "group"))]


def test_of_very_many_users_a_person_sees_those_with_the_most_work() -> None:
    """Programs see all."""
    record = SimulationRecord()
    for number in range(30):
        account = record.accounts.opened(Owner(queue="root.q", user=f"u{number:02}"))
        for piece in range(number + 1):
            entry = AskEntry(account=account, application_id="x", resources={}, asked_at_ns=0)
            record.asked(f"k{number}-{piece}", entry, 0)
    for_people = [line.split()[0] for line in _printed(record) if line.startswith("u")]
    for_programs = [line.split()[0] for line in _printed(record, 10_000, plain=True) if line.startswith("u")]

    assert ["user", *(f"u{number}" for number in range(10, 30))] == for_people
    assert "and 10 more users, all of them in a pipe or with --json" in _printed(record)
    assert 30 == len([name for name in for_programs if name not in {"user", "use-of"}])


def test_one_of_something_is_singular() -> None:
    """Also the reasons, each with its count."""
    lines = _printed(run(FakeCore(), an_application(), nodes=(a_node(),)))

    assert "my work: 3 nodes, 1 task, 1 queue, 1m of virtual time, engine direct" == lines[0]
    assert "  once: kinds of thing 8" not in lines
    assert ("1 node", "2 nodes", "0 nodes", "1,000 nodes") == tuple(
        counted(count, "node") for count in (1, 2, 0, 1000)
    )


@given(st.integers(0, 2**63 - 1))
def test_a_duration_that_is_written_can_be_read(nanoseconds: int) -> None:
    """But for what is cut off, which is less than what is left."""
    read_ns = parse_duration_ns(short_duration_text(nanoseconds))

    assert read_ns <= nanoseconds <= max(2 * read_ns - 1, 0)


def test_names_are_no_markup() -> None:
    """A queue in brackets is shown as it is."""
    record = run(FakeCore(), an_application(queue="root.[bold]x"), an_application(a_task("u"), name="b"))

    assert any("root.[bold]x" in line for line in _printed(record, 120))


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
    """The seconds of a week do not matter."""
    assert expected == short_duration_text(nanoseconds)


def test_a_chart_line_averages_what_does_not_fit() -> None:
    """Two values a column here."""
    assert "█▄▁ " == chart_line([1000, 1000, 1000, 0, 1, 0, 0, 0], 4)


def test_a_short_series_has_a_short_line() -> None:
    """A value is never drawn twice."""
    assert "▄" == chart_line([500], 60)
