"""Answers with JSON, in the form that clients of the REST interface expect.

The text is UTF-8 without blanks and ends with a newline; the characters of HTML are escaped, as in Go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.responses import Response

JSON_TYPE: Final = "application/json; charset=UTF-8"
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_INDENTING: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2)
_ESCAPED: Final = tuple((character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029")


def json_bytes(document: Mapping[str, object] | Sequence[object], *, indented: bool = False) -> bytes:
    """Return a document as JSON, without a newline at its end."""
    text = (_INDENTING if indented else _ENCODER).encode(document)
    for character, escaped in _ESCAPED:
        if character in text:
            text = text.replace(character, escaped)
    return text.encode(errors="replace")  # A lone half of a surrogate pair is no text.


def json_response(document: Mapping[str, object] | Sequence[object], *, status: int = 200) -> Response:
    """Return the answer that has a document."""
    return Response(
        json_bytes(document) + b"\n", status, media_type=None, headers={"Content-Type": JSON_TYPE}
    )
