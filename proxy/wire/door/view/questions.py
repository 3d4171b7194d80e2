"""Questions and requests that a door passes to the right workers, and its metrics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from prometheus_client import Metric
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ....core.metrics.exporter import CONTENT_TYPE, process_registry, text_of
from ....core.metrics.losses import configurations_family
from ....views.rest.handlers.questions import parameters_of
from ....views.rest.responses import RestError, json_response
from ..workers import LinkState, PartitionPlace
from .reading import DoorReader, Said, WorkerAnswers, full_name, noted, reader_of
from .worker_client import HeaderFields, WorkerAnswer, WorkerSilentError

_WHICH: Final = ("rm", "partition")
_DEFAULT: Final = "default"
"""The partition of a request without one."""
BELOW: Final = "/ws/v1/partition/"
_ASKED: Final = (b"accept", b"accept-encoding", b"content-type")
"""The fields of a request that are passed on."""
_ANSWERED: Final = (b"content-type", b"content-encoding", b"location", b"cache-control")
"""The fields of an answer that are passed back; others belong to the connection, or are set by the door."""
_WHOLE_BYTES_MAX: Final = 1 << 16
"""The largest size of a body that is sent at once."""
_NO_PARTITIONS: Final = "there are no partitions: no resource manager has registered"
_USAGES: Final = b"usage/"
_FAMILY: Final = "# HELP "


async def _explain(request: Request) -> Response:
    """Ask the workers of all selected partitions: one of them has the application."""
    optional = _WHICH if request.url.path.endswith("/sentences") else ("ask", *_WHICH)
    wanted = parameters_of(request, needed=("application",), optional=optional)
    reader, application = reader_of(request), wanted["application"]
    places = reader.matching(wanted.get("rm"), wanted.get("partition"))
    if not places:
        raise RestError(HTTPStatus.NOT_FOUND, f"application {application!r} is not known")
    if len(places) == 1:
        return await passed(request, places[0], target_of(request))
    answers = await reader.ask(target_of(request), places)
    found = [each for each in answers.said if each.status == HTTPStatus.OK]
    if len(found) > 1:
        names = ", ".join(each.document()["partition"] for each in found)
        text = f"application {application!r} is in several partitions, name one: {names}"
        raise RestError(HTTPStatus.BAD_REQUEST, text)
    if not found and answers.missing:
        place, why = answers.missing[0]
        raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, why or f"{full_name(place)} does not answer")
    return (found[0] if found else _most_telling(answers.said)).response()


def _most_telling(said: Sequence[Said]) -> Said:
    """Return the most informative refusal: one that is not 404, otherwise the longest, which has a hint."""
    return max(said, key=lambda each: (each.status != HTTPStatus.NOT_FOUND, len(each.body)))


async def _next_asks(request: Request) -> Response:
    """List the asks that are tried next, for each partition."""
    wanted = parameters_of(request, optional=("count", *_WHICH))
    reader = reader_of(request)
    places = reader.matching(wanted.get("rm"), wanted.get("partition"))
    answers = await reader.ask(target_of(request), places)
    refused = [each for each in answers.said if each.status != HTTPStatus.OK]
    if refused:
        return refused[0].response()
    order = {full_name(place): number for number, place in enumerate(reader.places())}
    entries = [entry for each in answers.said for entry in each.document()]
    ordered = sorted(entries, key=lambda entry: order.get(entry["partition"], len(order)))
    return noted(json_response(ordered), answers)


async def _dry_run(request: Request) -> Response:
    """Ask the worker of the partition that an application or ask names."""
    parameters_of(request)
    body = await request.body()
    reader = reader_of(request)
    place = _place_of(reader, body)
    if place is None:
        raise RestError(HTTPStatus.BAD_REQUEST, "there is no partition: no resource manager has registered")
    return await passed(request, place, target_of(request), body)


def _place_of(reader: DoorReader, body: bytes) -> PartitionPlace | None:
    """Return the partition of a dry run; the first one if the body is invalid.

    The worker reports the errors in the body.

    Raises:
        RestError: The partition does not exist.
    """
    places = reader.places()
    try:
        wanted = json.loads(body)
    except ValueError:
        wanted = None
    if not isinstance(wanted, dict):
        return next(iter(places), None)
    rm_id = wanted.get("rm")
    own = [each for each in places if rm_id in (None, each.rm_id)]
    name = _partition_named(wanted)
    found = next((each for each in own if name in (each.partition, full_name(each))), None)
    if found is None and own and len({each.rm_id for each in own}) == 1:
        known = ", ".join(map(full_name, own))
        shown = name if name.startswith("[") else f"[{own[0].rm_id}]{name}"
        text = f"there is no partition {shown}; the partitions are: {known}"
        raise RestError(HTTPStatus.BAD_REQUEST, text)
    return found or next(iter(places), None)


def _partition_named(wanted: Mapping[str, Any]) -> str:
    for key in ("application", "ask"):
        part = wanted.get(key)
        if isinstance(part, dict):
            return str(part.get("partitionName") or _DEFAULT)
    return _DEFAULT


QUESTIONS: Final = {
    "/licorne/v1/explain": _explain,
    "/licorne/v1/explain/sentences": _explain,
    "/licorne/v1/next-asks": _next_asks,
    "/licorne/v1/dry-run": _dry_run,
}
"""The endpoints by their paths."""


async def pass_on(request: Request) -> Response:
    """Pass a request below `/ws/v1/partition/{partition}` to the worker of the partition."""
    reader = reader_of(request)
    name = request.path_params["partition"]
    place = next((each for each in reader.places() if name in (each.partition, full_name(each))), None)
    rest = request.scope["raw_path"].removeprefix(BELOW.encode()).partition(b"/")[2]
    if place is None and rest.startswith(_USAGES):
        return await _usages_of_all(request, reader)
    if place is None:
        raise RestError(HTTPStatus.NOT_FOUND, "Partition not found")
    # Always the full name: a worker may have partitions of this name of several RMs.
    path = b"%b%b/%b" % (BELOW.encode(), quote(full_name(place), safe="").encode(), rest)
    return await passed(request, place, _with_query(path, request))


async def _pass_by_query(request: Request) -> Response:
    """Pass a request whose query names a resource manager and a partition, which is required."""
    wanted = request.query_params
    rm_id, name = wanted.get("rm"), wanted.get("partition")
    if not rm_id or not name:
        return await _pass_to_any(request)  # The worker reports which of the two is missing.
    places = reader_of(request).matching(rm_id, name)
    if not places:
        raise RestError(HTTPStatus.NOT_FOUND, _NO_PARTITIONS)
    return await passed(request, places[0], target_of(request))


async def _timeline(request: Request) -> Response:
    """Pass a request whose query names a partition in full; an unknown partition has an empty timeline."""
    name = request.query_params.get("partition")
    for place in reader_of(request).places():
        if name == full_name(place):
            return await passed(request, place, target_of(request))
    return await _pass_to_any(request)


async def _pass_to_any(request: Request) -> Response:
    """Pass a request to which all workers have the same answer."""
    places = reader_of(request).places()
    place = next((each for each in places if each.state is LinkState.RUNNING), next(iter(places), None))
    if place is None:
        raise RestError(HTTPStatus.NOT_FOUND, _NO_PARTITIONS)
    return await passed(request, place, target_of(request))


PASSED: Final = {
    "/licorne/v1/page/node": _pass_by_query,
    "/licorne/v1/page/reasons": _pass_by_query,
    "/licorne/v1/page/waiting": _pass_by_query,
    "/licorne/v1/preemptions": _pass_by_query,
    "/licorne/v1/page/timeline": _timeline,
}
"""The endpoints by their paths."""


async def _usages_of_all(request: Request, reader: DoorReader) -> Response:
    """Answer for an unknown partition: for users and groups it stands for all partitions."""
    answers = await reader.ask(target_of(request))
    found = [each for each in answers.said if each.status == HTTPStatus.OK]
    documents = [each.document() for each in found]
    if documents and all(isinstance(each, list) for each in documents):
        return noted(json_response([row for each in documents for row in each]), answers)
    if not answers.said:
        return json_response([])
    return noted((found or answers.said)[0].response(), answers)


def target_of(request: Request) -> bytes:
    """Return the path of a request with its query, unchanged."""
    return _with_query(request.scope["raw_path"], request)


def _with_query(path: bytes, request: Request) -> bytes:
    query: bytes = request.scope["query_string"]
    return b"%b?%b" % (path, query) if query else path


async def passed(request: Request, place: PartitionPlace, target: bytes, body: bytes = b"") -> Response:
    """Return the answer of the worker of a partition to a request.

    Raises:
        RestError: The worker cannot be asked, or does not answer.
    """
    reader = reader_of(request)
    worker = reader.worker_of(place)
    headers: HeaderFields = [(name, value) for name, value in request.scope["headers"] if name in _ASKED]
    try:
        answer = await reader.client.ask(
            worker.address, target, method=request.method, headers=headers, body=body, token=worker.token
        )
        return await _response(answer)
    except WorkerSilentError as error:
        text = f"partition {full_name(place)}: {error}"
        raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, text) from error


async def _response(answer: WorkerAnswer) -> Response:
    headers = {
        name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers if name in _ANSWERED
    }
    size = answer.header(b"content-length")
    if size and int(size) <= _WHOLE_BYTES_MAX:
        return Response(await answer.body(), answer.status, headers=headers)
    return StreamingResponse(answer.parts(), answer.status, headers=headers)


async def _metrics(request: Request) -> Response:
    """Return the metrics of each worker and of the door; those of the door also without workers."""
    reader = reader_of(request)
    try:
        answers = await reader.ask(b"/ws/v1/metrics")
    except RestError:
        answers = WorkerAnswers((), [(place, "") for place in reader.places()])
    refused = configurations_family(reader.door.metrics.configurations.figures())
    own = text_of([*process_registry().collect(), *_door_families(reader.places()), refused])
    said = [each for each in answers.said if each.status == HTTPStatus.OK]
    # The texts are large, so a thread merges them.
    body = await asyncio.to_thread(merged_metrics, own, said)
    return noted(Response(body, media_type=None, headers={"Content-Type": CONTENT_TYPE}), answers)


METRICS: Final = {"/ws/v1/metrics": _metrics}
"""The endpoints by their paths."""


def merged_metrics(own: str, said: Sequence[Said]) -> bytes:
    """Return the text with the families of all workers and of the door, sorted by name, each once.

    Args:
        own: The text of the door, whose samples keep their labels.
        said: The texts of the workers; a label names the partitions of each sample.
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
    """Return a sample with a further label; the text after its labels is a number."""
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
