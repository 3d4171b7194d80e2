"""Draw the pictures of docs/which-policy.md: the use of a cluster without a policy and with it, simulated."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from licorne.proxy.play.simulation.reporting.figures import QueueFigures, RunFigures
from licorne.proxy.play.simulation.reporting.report_files import read_figures

HERE: Final = Path(__file__).parent
EXAMPLES: Final = HERE.parents[1] / "examples" / "policies"
LICORNE: Final = Path(sys.executable).with_name("licorne")
WIDTH: Final = 640
HEIGHT: Final = 120
LEFT: Final = 68
HOUR_NS: Final = 3600 * 10**9
_COLOURS: Final = {"root.batch": "#8c9bab", "root.research": "#3b7dd8", "root.services": "#d9822b"}


class Picture(NamedTuple):
    """A policy of examples/policies, and the two titles of its picture."""

    policy: str
    without: str
    with_it: str


PICTURES: Final = (
    Picture("fair", "by the use of the moment", "with fair.half-life: 1d"),
    Picture("gangs", "placed one by one", "with gang.placing: whole"),
    Picture("lend", "all of the guarantee is lent", "with lend: {vcore: 10}"),
    Picture("min-runtime", "the youngest end", "with preemption.min-runtime: 15m"),
)


def figures_of(configuration: str, policy: str) -> RunFigures:
    """Simulate the day of a policy under a configuration of the folder, and return the figures over time."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        command = [LICORNE, "simulate", "--config", f"{configuration}.yaml", "--report-json", figures]
        subprocess.run(  # noqa: S603
            [*command, f"{policy}-day.yaml"], cwd=EXAMPLES, check=True, stdout=subprocess.DEVNULL
        )
        return read_figures(figures)


def chart(figures: RunFigures, title: str, top: int, end_ns: int) -> str:
    """Return the vcore in use, queue above queue, at a height of the picture."""
    base = top + HEIGHT
    leaves = [queue for queue in figures.queues if queue.is_leaf and any(queue.used.get("vcore", ()))]
    capacity = max(figures.cluster_capacity["vcore"])
    below = [0] * len(figures.cluster_capacity["vcore"])
    shapes = [f'<text x="{LEFT}" y="{top - 8}">{escape(title)}</text>']
    for queue in leaves:
        above = [low + used for low, used in zip(below, queue.used["vcore"], strict=True)]
        path = _steps(figures, above, base, capacity, end_ns) + _back(figures, below, base, capacity, end_ns)
        shapes.append(f'<path fill="{_COLOURS[queue.queue]}" d="M{path}Z"/>')
        below = above
    shapes.append(f'<path stroke="#888" fill="none" d="M{LEFT} {top}V{base}H{WIDTH}"/>')
    shapes.append(f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{capacity // 1000} vcore</text>')
    return "".join(shapes)


def _steps(figures: RunFigures, values: list[int], base: int, capacity: int, end_ns: int) -> str:
    """Return the steps of a series from left to right; equal neighbours are one."""
    points: list[str] = []
    last = -1
    for at, value in enumerate(values):
        right_ns = min((at + 1) * figures.interval_ns, figures.end_ns)
        left, right = (_x(ns, end_ns) for ns in (at * figures.interval_ns, right_ns))
        y = round(base - HEIGHT * value / capacity, 1)
        if value == last:
            points[-1] = f"{right} {y}"
        else:
            points += [f"{left} {y}", f"{right} {y}"]
        last = value
    return " ".join(points)


def _back(figures: RunFigures, values: list[int], base: int, capacity: int, end_ns: int) -> str:
    """Return the same steps from right to left."""
    numbers = _steps(figures, values, base, capacity, end_ns).split(" ")
    pairs = [" ".join(numbers[at : at + 2]) for at in range(0, len(numbers), 2)]
    return " " + " ".join(reversed(pairs))


def _x(at_ns: int, end_ns: int) -> float:
    """Return the place of a moment."""
    return round(LEFT + (WIDTH - LEFT) * at_ns / end_ns, 1)


def legend(queues: list[QueueFigures], top: int) -> str:
    """Return the names of the queues with their colours."""
    return "".join(
        f'<rect x="{LEFT + at * 130}" y="{top - 10}" width="11" height="11" fill="{_COLOURS[one.queue]}"/>'
        f'<text x="{LEFT + 16 + at * 130}" y="{top}">{one.queue}</text>'
        for at, one in enumerate(queues)
    )


def drawing(picture: Picture) -> str:
    """Return both charts of a policy on one scale of time, as SVG."""
    runs = [figures_of(name, picture.policy) for name in ("now", picture.policy)]
    end_ns = max(run.end_ns for run in runs)
    leaves = [one for one in runs[1].queues if one.is_leaf and any(one.used.get("vcore", ()))]
    hours = end_ns / HOUR_NS
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 10} 360" width="{WIDTH + 10}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f"{chart(runs[0], picture.without, 26, end_ns)}{chart(runs[1], picture.with_it, 180, end_ns)}"
        f'<text x="{LEFT}" y="316">0</text><text x="{WIDTH}" y="316" text-anchor="end">{hours:.1f} h</text>'
        f"{legend(leaves, 346)}</svg>\n"
    )


def draw_policies(folder: Path = HERE) -> None:
    """Draw all pictures into a folder, one file for each policy."""
    for picture in PICTURES:
        (folder / f"policy-{picture.policy}.svg").write_text(drawing(picture), encoding="utf-8")


if __name__ == "__main__":
    draw_policies()
