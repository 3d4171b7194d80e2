"""Questions to a door: they go to the workers that may know the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ....views.rest.handlers.questions import parameters_of
from ....views.rest.responses import RestError, json_response
from ..places import PartitionPlace
from .passing import passed, target_of
from .reading import DoorReader, Said, full_name, noted, reader_of

_WHICH: Final = ("rm", "partition")
_DEFAULT: Final = "default"
"""The partition of a request that names none."""


async def _explain(request: Request) -> Response:
    """Ask the workers of all partitions that are meant: one of them has the application."""
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
    """Return the refusal that says most: one that is not 404, or else the longest, which has a hint."""
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
    """Return the partition that a dry run is about; the first one if the body is not as it should be.

    What is wrong with the body the worker says.

    Raises:
        RestError: There is no such partition.
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
