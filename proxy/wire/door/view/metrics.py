"""The metrics of a door: those of all workers with the label `worker`, and its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Final

from prometheus_client import Metric
from starlette.requests import Request
from starlette.responses import Response

from ....core.metrics.exporter import CONTENT_TYPE, process_registry, text_of
from ....views.rest.responses import RestError
from ..places import LinkState, PartitionPlace
from .reading import Said, WorkerAnswers, noted, reader_of

_FAMILY: Final = "# HELP "


async def _metrics(request: Request) -> Response:
    """Return what each worker exports, and what the door itself does; the latter also without workers."""
    reader = reader_of(request)
    try:
        answers = await reader.ask(b"/ws/v1/metrics")
    except RestError:
        answers = WorkerAnswers((), [(place, "") for place in reader.places()])
    own = text_of([*process_registry().collect(), *_door_families(reader.places())])
    said = [each for each in answers.said if each.status == HTTPStatus.OK]
    # Large texts: not on the event loop.
    body = await asyncio.to_thread(merged_metrics, own, said)
    return noted(Response(body, media_type=None, headers={"Content-Type": CONTENT_TYPE}), answers)


METRICS: Final = {"/ws/v1/metrics": _metrics}
"""The endpoints by their paths."""


def merged_metrics(own: str, said: Sequence[Said]) -> bytes:
    """Return the text with the families of all workers and of the door, by name, each once.

    Args:
        own: The text of the door, whose samples get no further label.
        said: The texts of the workers; a label says whose a sample is.
    """
    heads: dict[str, str] = {}
    samples: dict[str, list[str]] = {}
    texts = [(own, ""), *((each.body.decode(), f'worker="{_escaped(each.worker.name)}"') for each in said)]
    for text, label in texts:
        name = ""
        for line in text.splitlines():
            if line.startswith(_FAMILY):
                name = line.split(" ", 3)[2]
                heads.setdefault(name, line)
            elif line.startswith("#"):
                heads[name] += "\n" + line if line not in heads[name] else ""
            else:
                samples.setdefault(name, []).append(_labelled(line, label) if label else line)
    parts = ("\n".join([heads[name], *samples.get(name, ())]) + "\n" for name in sorted(heads))
    return "".join(parts).encode()


def _labelled(line: str, label: str) -> str:
    """Return a sample with a further label; what is behind its labels is a number."""
    end = line.rfind("}")
    if end >= 0:
        return f"{line[:end]},{label}{line[end:]}"
    name, _, value = line.partition(" ")
    return f"{name}{{{label}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _door_families(places: Sequence[PartitionPlace]) -> Iterator[Metric]:
    state = Metric(
        "licorne_door_partition", "The state of each partition: 1 for the one that it is in", "gauge"
    )
    waiting = Metric("licorne_door_requests_waiting", "Requests that wait for the worker", "gauge")
    number = Metric(
        "licorne_door_worker_number", "How many workers the partition has had, with this one", "gauge"
    )
    for place in places:
        labels = {"rm": place.rm_id, "partition": place.partition}
        for each in LinkState:
            state.add_sample(state.name, {**labels, "state": each.value.lower()}, int(place.state is each))
        waiting.add_sample(waiting.name, labels, place.waiting)
        number.add_sample(number.name, labels, place.worker_number)
    yield from (state, waiting, number)
