"""Figures as files: JSON that is read again for a comparison, and CSV for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ....base.files.input_errors import InputError
from ....base.files.input_files import read_text
from ....base.files.json_text import JsonError, parse_json
from .figures import FORMAT, KIND, QueueFigures, RunFigures

_COLUMNS: Final = ("figure", "queue", "item", "start_ns", "end_ns", "value")

_Row = tuple[str, str, str, int, int, int]


def to_json(figures: RunFigures) -> str:
    """Return the figures as one line of JSON."""
    left_out = None if figures.decayed_fairness else {"decayed_fairness"}
    return f"{figures.model_dump_json(exclude=left_out)}\n"


def read_figures(path: Path) -> RunFigures:
    """Read the figures that `to_json` made.

    Raises:
        InputError: The file cannot be read, or has something else.
    """
    try:
        document = parse_json(read_text(path))
    except JsonError as error:
        raise InputError(path, f"is no JSON: {error}") from error
    wanted = "a document of figures, as `licorne simulate --report-json` writes them"
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(document, dict) or kind != KIND:
        raise InputError(path, f"is not {wanted}: its kind is {kind!r}, not {KIND!r}")
    if document.get("format") != FORMAT:
        raise InputError(path, f"has the format {document.get('format')!r}; this program reads {FORMAT}")
    try:
        # By way of text: in a document of JSON a list stands for a tuple.
        return RunFigures.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the document"
        given = repr(first["input"])
        short = given if len(given) <= 80 else f"{given[:77]}..."
        raise InputError(path, f"is not {wanted}: {place}: {first['msg']}, not {short}") from error


def to_csv(figures: RunFigures) -> str:
    """Return the figures as CSV: a row for each value, with what it is, of which queue, and for what time.

    The columns are `figure`, `queue` (empty for the whole cluster), `item` (a resource type, a class of
    nodes, a reason), `start_ns`, `end_ns` and `value`. Values are in the units of the JSON document.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_rows(figures))
    return file.getvalue()


def _rows(figures: RunFigures) -> Iterator[_Row]:
    """Yield all rows."""
    for name, values in figures.cluster_capacity.items():
        yield from _over_time(figures, "capacity", "", name, values)
    for queue in (figures.total, *figures.queues):
        yield from _queue_rows(figures, queue)
    yield from _over_time(figures, "fairness_permille", "", "", figures.fairness)
    for decayed in figures.decayed_fairness:
        yield from _over_time(figures, "decayed_fairness_permille", decayed.parent, "", decayed.index)
    for use_class, values in zip(figures.packing.classes, figures.packing.by_class, strict=True):
        yield from _over_time(figures, "nodes_permille", "", use_class, values)
    for resource, shares in figures.packing.fragmentation.items():
        yield from _over_time(figures, "fragmentation_permille", "", resource, shares)
    for group in figures.preemptions.groups:
        item = f"{group.reason}: {group.for_queue}" if group.for_queue else group.reason
        yield ("preemptions", group.queue, item, 0, figures.end_ns, group.count)


def _queue_rows(figures: RunFigures, queue: QueueFigures) -> Iterator[_Row]:
    """Yield the rows of one queue."""
    name = queue.queue
    for kind, amounts in (("guaranteed", queue.guaranteed), ("maximum", queue.maximum)):
        for resource, value in amounts.items():
            yield (kind, name, resource, 0, figures.end_ns, value)
    for kind, value in queue.tasks.model_dump().items():
        yield (f"tasks_{kind}", name, "", 0, figures.end_ns, value)
    if queue.waits is not None:
        for kind in ("p50_ns", "p90_ns", "p99_ns", "max_ns"):
            yield (f"wait_{kind}", name, "", 0, figures.end_ns, getattr(queue.waits, kind))
        bounds = [*map(str, figures.wait_bounds_ns), "more"]
        for bound, count in zip(bounds, queue.waits.classes, strict=True):
            yield ("wait_class", name, bound, 0, figures.end_ns, count)
    for kind, series in (("used", queue.used), ("pending", queue.pending)):
        for resource, values in series.items():
            yield from _over_time(figures, kind, name, resource, values)


def _over_time(
    figures: RunFigures, kind: str, queue: str, item: str, values: tuple[int | None, ...]
) -> Iterator[_Row]:
    """Yield a row for each interval that has a value."""
    for at, value in enumerate(values):
        if value is not None:
            start_ns = at * figures.interval_ns
            yield (kind, queue, item, start_ns, min(start_ns + figures.interval_ns, figures.end_ns), value)
