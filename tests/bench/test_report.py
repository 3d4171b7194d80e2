from __future__ import annotations

import io

from bench_fakes import some_figures
from figures import Backlog, Churn, Figures, HalfLoad, Pods
from report import measured_tables
from rich.console import Console


def rendered(*runs: Figures) -> str:
    """Return the tables as text, wide enough that nothing is cut."""
    console = Console(file=io.StringIO(), width=250)
    for table in measured_tables(runs):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_a_workload_does_not_show_is_a_dash() -> None:
    """Two applications tell nothing of the memory of one."""
    (row,) = [line for line in rendered(some_figures()).splitlines() if "7,000" in line]

    assert "-" in [cell.strip() for cell in row.split("│")]


def test_churn_and_backlog_have_tables_of_their_own_where_there_are_any() -> None:
    """A run of u500 alone shows neither; latencies and reactions are in milliseconds."""
    churn = Churn(per_second=5_000.0, latency_p50_seconds=0.000_25, latency_p99_seconds=0.002)
    backlog = Backlog(waiting_cpu_share=0.07, reaction_median_seconds=0.000_5, reaction_max_seconds=0.004)
    both = rendered(
        some_figures("f_lock", pace=None, churn=churn), some_figures("g_full", pace=None, backlog=backlog)
    )

    assert "0.250" in both
    assert "2.000" in both
    assert "0.0700" in both
    assert "4.000" in both
    assert "Churn" not in rendered(some_figures())
    assert "Backlog" not in rendered(some_figures())


def test_half_load_has_a_table_of_its_own() -> None:
    """Latencies are in milliseconds, beside what was offered."""
    half_load = HalfLoad(offered_per_second=7_123.0, latency_p50_seconds=0.000_15, latency_p99_seconds=0.003)
    text = rendered(some_figures("l_half", half_load=half_load))

    assert all(each in text for each in ("Half load", "7,123", "0.150", "3.000"))
    assert "Half load" not in rendered(some_figures())


def test_applications_of_one_ask_have_a_table_of_their_own() -> None:
    """Processor time is in microseconds, beside how many asks an application costs."""
    figures = some_figures(
        "k_pods", pods=Pods(cpu_seconds_per_application=0.000_25, cpu_seconds_per_ask=0.000_1)
    )

    assert all(each in rendered(figures) for each in ("Applications of one ask", "250", "100", "2.50"))
    assert "Applications of one ask" not in rendered(some_figures())
