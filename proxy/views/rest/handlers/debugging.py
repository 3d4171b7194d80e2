"""The routes that show the process itself: where its threads stand, and what has no counterpart here."""

from __future__ import annotations

import sys
import threading
import traceback
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from ....core.documents.operations import Operation
from ..errors import error_response
from ..unrouted import redirect

_PROFILES = (
    *("", "heap", "threadcreate", "goroutine", "allocs", "block"),
    *("mutex", "cmdline", "profile", "symbol", "trace"),
)


def _stack(_: Request) -> Response:
    """Return where each thread stands, with the innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"thread {ident} [{names.get(ident, 'not of Python')}]:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sorted(sys._current_frames().items())  # noqa: SLF001 - there is no other way
    ]
    return PlainTextResponse("\n".join(parts))


def _stack_moved(request: Request) -> Response:
    return redirect("/debug/stack", request.method)


def _state_dump_moved(request: Request) -> Response:
    return redirect("/debug/fullstatedump", request.method)


def _profile(_: Request) -> Response:
    text = "There are no profiles of Go here: use py-spy on the process, or /debug/stack"
    return error_response(HTTPStatus.NOT_IMPLEMENTED, text)


OPERATIONS = [
    Operation(
        "/debug/stack",
        _stack,
        "debugging",
        "Where each thread of the process stands",
        "The threads",
        {"text/plain": str},
    ),
    Operation("/ws/v1/stack", _stack_moved, "debugging", "Redirects to `/debug/stack`", refusals=[301]),
    Operation(
        "/ws/v1/fullstatedump",
        _state_dump_moved,
        "monitoring",
        "Redirects to `/debug/fullstatedump`",
        refusals=[301],
    ),
    *(
        Operation(
            f"/debug/pprof/{name}",
            _profile,
            "debugging",
            "A profile of Go, which there is not",
            refusals=[501],
            name=f"profile_{name}" if name else "profiles",
        )
        for name in _PROFILES
    ),
]
