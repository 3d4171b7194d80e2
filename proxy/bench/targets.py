"""What the recorded core did, and what is wanted here: figures of the project's bench table, quoted.

None of these was measured by this program. The recorded core ran on one quiet machine whose light was about
40,000 allocations per second; figures of another machine stand beside them for orientation alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .figures import Figures

__all__ = [
    "BYTES_PER_APPLICATION_MAX",
    "BYTES_PER_ASK_MAX",
    "BYTES_PER_NODE_MAX",
    "LIGHT_RATIO_MIN",
    "QUOTED",
    "REACTION_SECONDS_MAX",
    "Comparison",
    "Quoted",
    "comparisons",
]

LIGHT_RATIO_MIN: Final = 0.5
REACTION_SECONDS_MAX: Final = 0.001
BYTES_PER_ASK_MAX: Final = 4_000
BYTES_PER_NODE_MAX: Final = 8_000
BYTES_PER_APPLICATION_MAX: Final = 12_000


@dataclass(frozen=True, slots=True)
class Quoted:
    """One row of the bench table: the recorded core's median, and the multiple of it that is wanted."""

    recorded_core: str
    wanted: str


_U: Final = Quoted("3,500-4,100/s", "≥ 4x, moonshot 8x")
_BACKLOG_WANTED: Final = "no work until something changes"

QUOTED: Final[Mapping[str, Quoted]] = {
    "u500": _U,
    "u1000": _U,
    "u2000": _U,
    "u5000": _U,
    "a": Quoted("2,050/s", "≥ 8x"),
    "a_fifo": Quoted("7,400/s", "≥ 2.5x"),
    "b": Quoted("5,500/s", "≥ 3x"),
    "c": Quoted("750/s", "≥ 20x"),
    "d": Quoted("1,500/s", "≥ 12x"),
    "e_fair": Quoted("1,700/s", "≥ 9x"),
    "e_bin": Quoted("1,800/s", "≥ 9x"),
    "f_lock": Quoted("1,700/s, p50 0.39 ms, p99 3.8 ms", "≥ 5x"),
    "f_pipe": Quoted("7,200/s", "≥ 2x"),
    "g_full": Quoted("0.07 core", _BACKLOG_WANTED),
    "g_frag": Quoted("0.3 core, first scan 1.9 s", _BACKLOG_WANTED),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs beside each other: how their ratios to the light compare, and how they should."""

    subject: str
    quotient: float
    quotient_min: float

    @property
    def is_met(self) -> bool:
        """Whether the quotient is as wanted."""
        return self.quotient >= self.quotient_min


# The first workload runs at no less than this part of the pace of the second.
_FLATNESS: Final = (("u5000", "u500", 0.8), ("d", "a_fifo", 0.8), ("c", "u5000", 0.9))
# An engine takes at most 1.25 times as long as `direct`.
_ACTORS_TO_DIRECT_MIN: Final = 1 / 1.25


def comparisons(figures: Iterable[Figures]) -> Iterator[Comparison]:
    """Give every comparison of the table for which both sides were run.

    What is compared are ratios to the light, so that a machine that slows down between two runs does not
    show as a difference between them.
    """
    ratios = {
        (run.engine, run.workload): run.ratio_to_light for run in figures if run.ratio_to_light is not None
    }
    for (engine, workload), ratio in ratios.items():
        for flat, reference, quotient_min in _FLATNESS:
            if workload == flat and (engine, reference) in ratios:
                subject = f"{flat} / {reference} ({engine.value})"
                yield Comparison(subject, ratio / ratios[engine, reference], quotient_min)
        if engine is Engine.ACTORS and (Engine.DIRECT, workload) in ratios:
            quotient = ratio / ratios[Engine.DIRECT, workload]
            yield Comparison(f"actors / direct ({workload})", quotient, _ACTORS_TO_DIRECT_MIN)
