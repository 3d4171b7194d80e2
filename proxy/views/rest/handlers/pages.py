"""Long lists: made and sent page by page, while the scheduler goes on in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..pacing import Pace
from ..requests import pace_of
from ..responses import JSON_TYPE, json_bytes, json_response

T = TypeVar("T")


def paged_response(
    request: Request, pages: Iterator[Sequence[T]], document: Callable[[T], Mapping[str, object]]
) -> Response:
    """Return the answer with a list of documents; what fails in the first page is an error of the request.

    Args:
        request: The request; the time that its pages take counts as time of readers.
        pages: The values, in pages; each page is asked for when the one before it has been sent.
        document: Makes the document of a value.
    """
    first = next(pages, ())
    second = next(pages, None)
    if second is None:
        return json_response([document(value) for value in first])
    body = _counted(pace_of(request), _parts(chain((first, second), pages), document))
    return StreamingResponse(body, headers={"Content-Type": JSON_TYPE})


def _counted(pace: Pace, parts: Iterator[bytes]) -> Iterator[bytes]:
    while True:
        with pace.step():
            part = next(parts, None)
        if part is None:
            return
        yield part


def _parts(pages: Iterator[Sequence[T]], document: Callable[[T], Mapping[str, object]]) -> Iterator[bytes]:
    """Yield the text of the list, a page a part."""
    before = b"["
    for page in pages:
        if page:  # All that was on it may be gone.
            yield before + json_bytes([document(value) for value in page])[1:-1]
            before = b","
    yield b"]\n" if before == b"," else b"[]\n"
