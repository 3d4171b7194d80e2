"""Print figures of `tests/bench/lit_run.py`, beside targets and earlier commits: `targets.py FILE`.

It ends with status 1 if a pace is a regression: less than three quarters of that of the last commits in
`history.jsonl`. Its output ends with the line to append there; `--record` appends it.

What is quoted was not measured by this program. The recorded core ran on one quiet machine whose light was
about 40,000 allocations per second; figures of another machine stand beside it for orientation alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from figures import Figures, figures_from_json
from history import HISTORY, against_history, commit_lines, read_history, to_line
from report import Figure, figures_table, measured_tables
from rich.table import Table

from licorne.proxy.base.terminal.standard_output import is_for_people, output_console, print_table

_LIGHT_RATIO_MIN: Final = 0.5
_REACTION_MILLISECONDS_MAX: Final = 1.0
_APPLICATION_TO_ASK_MAX: Final = 2.5
_BYTES_MAX: Final = (("a node", 8_000), ("an application", 12_000), ("an ask", 4_000))


# Beside the recorded core on one machine, in turns, the same messages to the byte: pure Python on `actors`.
_SIDE_BY_SIDE_DAY: Final = "2026-11-22"


@dataclass(frozen=True, slots=True)
class Quoted:
    """One row of the bench table: the recorded core's median, and the multiple of it that is wanted."""

    recorded_core: str
    wanted: str
    of_go: str = "-"
    """How many times its pace Licorne had, side by side on the day that the heading names."""


_U: Final = Quoted("3,500-4,100/s", "≥ 4x, moonshot 8x")
_BACKLOG_WANTED: Final = "no work until something changes"
_NOT_QUOTED: Final = Quoted("not measured", "-")
_BESIDE_WAITING: Final = Quoted("not measured", "the same whatever waits")

QUOTED: Final[Mapping[str, Quoted]] = {
    "u500": _U,
    "u1000": replace(_U, of_go="4.9x"),
    "u2000": _U,
    "u5000": replace(_U, of_go="5.2x"),
    "a": Quoted("2,050/s", "≥ 8x", "6.1x"),
    "a_fifo": Quoted("7,400/s", "≥ 2.5x", "2.1x"),
    "b": Quoted("5,500/s", "≥ 3x", "2.4x"),
    "c": Quoted("750/s", "≥ 20x", "23x"),
    "d": Quoted("1,500/s", "≥ 12x", "12.5x"),
    "e_fair": Quoted("1,700/s", "≥ 9x", "7.4x"),
    "e_bin": Quoted("1,800/s", "≥ 9x"),
    "f_lock": Quoted("1,700/s, p50 0.39 ms, p99 3.8 ms", "≥ 5x", "0.5x"),
    "f_pipe": Quoted("7,200/s", "≥ 2x", "1.0x"),
    "g_full": Quoted("0.07 core", _BACKLOG_WANTED, "2.3 ms, Go 0.21"),
    "g_frag": Quoted("0.3 core, first scan 1.9 s", _BACKLOG_WANTED, "26 ms, Go 0.18"),
    **dict.fromkeys(("h_backlog_1000", "h_backlog_5000", "h_backlog_20000"), _BESIDE_WAITING),
    **dict.fromkeys(("h_owed_1000", "h_owed_5000", "h_owed_20000"), _BESIDE_WAITING),
    **dict.fromkeys(("a_types", "a_deep", "a_users"), _NOT_QUOTED),
    "k_pods": Quoted("not measured", "an application of one ask ≤ 2.5 asks"),
    **dict.fromkeys(("l_half", "p_predicates", "p_parts", "q_gangs", "q_storm"), _NOT_QUOTED),
}

# The first workload runs at no less than this part of the pace of the second.
_FLATNESS: Final = (
    ("u5000", "u500", 0.8),
    ("d", "a_fifo", 0.8),
    ("c", "u5000", 0.9),
    ("h_backlog_20000", "h_backlog_1000", 0.8),
    ("h_owed_20000", "h_owed_1000", 0.8),
)
# An engine takes at most 1.25 times as long as `direct`.
_ACTORS_TO_DIRECT_MIN: Final = 1 / 1.25


def main(arguments: Sequence[str], history: Path = HISTORY) -> int:
    """Print the figures of one file beside what is expected of them; return 1 if one is a regression."""
    parser = argparse.ArgumentParser(prog="tests/bench/targets.py", description=__doc__)
    parser.add_argument("figures", type=Path, help="what `lit_run.py` wrote")
    parser.add_argument(
        "--record", action="store_true", help="append the line of this commit to history.jsonl"
    )
    chosen = parser.parse_args(arguments)
    runs = [figures_from_json(line) for line in chosen.figures.read_text(encoding="utf-8").splitlines()]
    wanted = [figure for run in runs for figure in goals(run)]
    measured, earlier = list(commit_lines(runs)), read_history(history)
    paces = [pace for each in measured for pace in against_history(each, earlier)]
    console = output_console()
    tables = [
        quoted_table(runs),
        *measured_tables(runs),
        figures_table("Wanted", [*wanted, *comparisons(runs)]),
    ]
    if paces:
        tables.append(figures_table("Beside earlier commits", paces))
    for table in tables:
        print_table(table, console, plain=not is_for_people())
    lines = "".join(map(to_line, measured))
    sys.stdout.write(lines)
    if chosen.record:
        with history.open("a", encoding="utf-8") as file:
            file.write(lines)
    slower = [pace.subject for pace in paces if not pace.is_met]
    if slower:
        loads = ", ".join(f"{each.load}" for each in measured)
        sys.stderr.write(f"slower than earlier commits (load {loads}): {', '.join(slower)}\n")
    return 1 if slower else 0


def quoted_table(runs: Sequence[Figures]) -> Table:
    """Return the pace of each run beside that of the recorded core."""
    builds = ", ".join(dict.fromkeys(run.build for run in runs))
    table = Table(title=f"Pace, {builds}, and what is quoted from bench.md", title_justify="left")
    for heading in (
        *("workload", "engine", "per second", "recorded core (quoted)", "wanted, x recorded core"),
        f"of Go, {_SIDE_BY_SIDE_DAY}",
    ):
        table.add_column(heading, justify="right" if heading == "per second" else "left")
    for run in runs:
        pace, quoted = run.measurement.pace_per_second, QUOTED[run.workload]
        pace_text = "-" if pace is None else f"{pace:,.0f}"
        quotations = (quoted.recorded_core, quoted.wanted, quoted.of_go)
        table.add_row(run.workload, run.engine_text, pace_text, *quotations)
    return table


def goals(run: Figures) -> Iterator[Figure]:
    """Give the figures of one run of which something is wanted, as far as it has them."""
    measured, name = run.measurement, f"{run.workload} ({run.engine_text})"
    if run.ratio_to_light is not None:
        yield Figure(name, run.ratio_to_light, "x light", wanted_min=_LIGHT_RATIO_MIN)
    if measured.backlog is not None:
        reaction = measured.backlog.reaction_median_seconds * 1_000
        yield Figure(f"{name}, reaction", reaction, "ms", wanted_max=_REACTION_MILLISECONDS_MAX)
    if measured.pods is not None:
        ratio = measured.pods.application_to_ask
        yield Figure(f"{name}, application / ask", ratio, "x", wanted_max=_APPLICATION_TO_ASK_MAX)
    sizes = (measured.bytes_per_node, measured.bytes_per_application, measured.bytes_per_ask)
    for (subject, limit), size in zip(_BYTES_MAX, sizes, strict=True):
        if size is not None:
            yield Figure(f"{name}, {subject}", size, "bytes", wanted_max=limit)


def comparisons(runs: Sequence[Figures]) -> Iterator[Figure]:
    """Give every comparison of two runs for which both were made.

    What is compared are ratios to the light, so that a machine that slows down between two runs does not
    show as a difference between them.
    """
    ratios = {
        (run.engine_text, run.workload): run.ratio_to_light for run in runs if run.ratio_to_light is not None
    }
    for (engine, workload), ratio in ratios.items():
        for flat, reference, quotient_min in _FLATNESS:
            if workload == flat and (engine, reference) in ratios:
                subject = f"{flat} / {reference} ({engine})"
                yield Figure(subject, ratio / ratios[engine, reference], "x", wanted_min=quotient_min)
        if engine == "actors" and ("direct", workload) in ratios:
            quotient = ratio / ratios["direct", workload]
            yield Figure(f"actors / direct ({workload})", quotient, "x", wanted_min=_ACTORS_TO_DIRECT_MIN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
