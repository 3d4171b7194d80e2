"""What the routes read of a request: the scheduler, and the parameters of its path."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

from anyio import CapacityLimiter
from starlette.requests import Request

from ....model.configuration.names import QUEUE_NAME_RULE, is_queue_name
from ...core.scheduler.answering.views import UnknownPartitionError, Views
from .errors import RestError

if TYPE_CHECKING:
    from ...core.scheduler.scheduler import Scheduler
    from .event_texts import EventTexts
    from .pacing import Pace

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)


def scheduler_of(request: Request) -> Scheduler:
    """Return the scheduler that a request is about."""
    scheduler: Scheduler = request.app.state.scheduler
    return scheduler


def views_of(request: Request) -> Views:
    """Return the views of that scheduler."""
    return scheduler_of(request).views


def events_of(request: Request) -> EventTexts:
    """Return the events that are kept."""
    events: EventTexts = request.app.state.events
    return events


def pace_of(request: Request) -> Pace:
    """Return what counts the time of readers."""
    pace: Pace = request.app.state.pace
    return pace


def checks_of(request: Request) -> CapacityLimiter:
    """Return what lets one check of a configuration run at a time."""
    checks: CapacityLimiter = request.app.state.checks
    return checks


def partition_of(request: Request) -> str:
    """Return the full name of the partition in the path.

    Raises:
        RestError: There is none.
    """
    try:
        return views_of(request).find(request.path_params["partition"])
    except UnknownPartitionError as error:
        raise RestError(HTTPStatus.NOT_FOUND, "Partition not found") from error


def unescaped(request: Request, name: str) -> str:
    """Return a parameter of the path in which escapes count twice: once in the path, once in the name.

    Raises:
        RestError: An escape is wrong.
    """
    text: str = request.path_params[name]
    wrong = _BAD_ESCAPE.search(text)
    if wrong is not None:
        raise RestError(HTTPStatus.BAD_REQUEST, f'invalid URL escape "{wrong[0]}"')
    return unquote_plus(text, errors="replace")


def queue_path_of(request: Request) -> str:
    """Return the path of the queue in the path, in lower case.

    Raises:
        RestError: No queue can have that name.
    """
    path = unescaped(request, "queue")
    if not all(is_queue_name(part) for part in path.split(".")):
        raise RestError(HTTPStatus.BAD_REQUEST, QUEUE_NAME_RULE)
    return path.lower()
