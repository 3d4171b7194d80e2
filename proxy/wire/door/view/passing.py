"""Requests that name one partition: they are passed to the REST interface of its worker."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ....views.rest.responses import RestError, json_response
from ..places import LinkState, PartitionPlace
from .reading import DoorReader, full_name, noted, reader_of
from .worker_client import HeaderFields, WorkerAnswer, WorkerSilentError

BELOW: Final = "/ws/v1/partition/"
_ASKED: Final = (b"accept", b"accept-encoding", b"content-type")
"""The fields of a request that go on."""
_ANSWERED: Final = (b"content-type", b"content-encoding", b"location", b"cache-control")
"""The fields of an answer that come back; others are of the connection, or the door has its own."""
_WHOLE_BYTES_MAX: Final = 1 << 16
"""Up to this size a body is sent at once."""
_NO_PARTITIONS: Final = "there are no partitions: no resource manager has registered"
_USAGES: Final = b"usage/"


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
    # The full name, also for a short one: a worker may have partitions of this name of several RMs.
    path = b"%b%b/%b" % (BELOW.encode(), quote(full_name(place), safe="").encode(), rest)
    return await passed(request, place, _with_query(path, request))


async def _pass_by_query(request: Request) -> Response:
    """Pass a request whose query names a resource manager and a partition, which is needed."""
    wanted = request.query_params
    rm_id, name = wanted.get("rm"), wanted.get("partition")
    if not rm_id or not name:
        return await _pass_to_any(request)  # It says which of the two is missing.
    places = reader_of(request).matching(rm_id, name)
    if not places:
        raise RestError(HTTPStatus.NOT_FOUND, _NO_PARTITIONS)
    return await passed(request, places[0], target_of(request))


async def _timeline(request: Request) -> Response:
    """Pass a request whose query names a partition in full; one that is unknown has no points anywhere."""
    name = request.query_params.get("partition")
    for place in reader_of(request).places():
        if name == full_name(place):
            return await passed(request, place, target_of(request))
    return await _pass_to_any(request)


async def _pass_to_any(request: Request) -> Response:
    """Pass a request to which any worker has the same answer."""
    places = reader_of(request).places()
    place = next((each for each in places if each.state is LinkState.RUNNING), next(iter(places), None))
    if place is None:
        raise RestError(HTTPStatus.NOT_FOUND, _NO_PARTITIONS)
    return await passed(request, place, target_of(request))


PASSED: Final = {
    "/licorne/v1/page/node": _pass_by_query,
    "/licorne/v1/page/reasons": _pass_by_query,
    "/licorne/v1/page/timeline": _timeline,
}
"""The endpoints by their paths."""


async def _usages_of_all(request: Request, reader: DoorReader) -> Response:
    """Answer for a partition that is unknown: for users and groups it stands for all partitions."""
    answers = await reader.ask(target_of(request))
    found = [each for each in answers.said if each.status == HTTPStatus.OK]
    documents = [each.document() for each in found]
    if documents and all(isinstance(each, list) for each in documents):
        return noted(json_response([row for each in documents for row in each]), answers)
    if not answers.said:
        return json_response([])
    return noted((found or answers.said)[0].response(), answers)


def target_of(request: Request) -> bytes:
    """Return the path of a request with its query, as it came."""
    return _with_query(request.scope["raw_path"], request)


def _with_query(path: bytes, request: Request) -> bytes:
    query: bytes = request.scope["query_string"]
    return b"%b?%b" % (path, query) if query else path


async def passed(request: Request, place: PartitionPlace, target: bytes, body: bytes = b"") -> Response:
    """Return what the worker of a partition answers to a request.

    Raises:
        RestError: It cannot be asked, or does not answer.
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
