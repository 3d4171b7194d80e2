"""The files of a user interface: those of our own page, in the package, or those of a folder."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple, final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from ....model.errors import LicorneError
from ...core.events.words import CHANGE_WORDS, DETAIL_WORDS, TYPE_WORDS

_INDEX: Final = "index.html"
_WORDS: Final = "event_words.js"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing of another origin is loaded, and nothing that stands in the document itself is executed."""
_SAFE: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_ASK_AGAIN: Final = "no-cache"
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_HASHED: Final = re.compile(r"[.-][0-9a-zA-Z]{8,}\.[a-z0-9]+$")
"""File names of a build that change with the content, such as `main.4f1c2d3e.js`."""
_API: Final = ("ws/", "licorne/", "debug/")
"""Paths that are no files: where nothing answers them, they are unknown."""
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

# What the operating system says of these differs from one to the next.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("text/javascript", ".mjs")
mimetypes.add_type("font/woff2", ".woff2")
mimetypes.add_type("application/manifest+json", ".webmanifest")


def _unknown() -> Response:
    return PlainTextResponse("404 page not found\n", 404, headers={"X-Content-Type-Options": "nosniff"})


class _File(NamedTuple):
    content: bytes
    headers: Mapping[str, str]


@final
class PageFiles:
    """The files of our own page, held in memory."""

    def __init__(self) -> None:
        folder = resources.files(__package__) / "static"
        self._files = {
            entry.name: _file(entry.name, entry.read_bytes())
            for entry in folder.iterdir()
            if entry.is_file() and "." + entry.name.rpartition(".")[2] in _TYPES
        }
        self._files[_WORDS] = _file(_WORDS, _words_script())

    async def respond(self, request: Request) -> Response:
        """Return a file, or for a browser that has it already an answer without content."""
        name = request.path_params["path"] or _INDEX
        found = self._files.get(name)
        if found is None:
            return _unknown()
        if request.headers.get("if-none-match") == found.headers["ETag"]:
            return Response(status_code=304, headers=dict(found.headers))
        return Response(found.content, headers=dict(found.headers))


def _words_script() -> bytes:
    """Return the words for what is in an event, as a script that exports them."""
    words = {"TYPES": TYPE_WORDS, "CHANGES": CHANGE_WORDS, "DETAILS": DETAIL_WORDS}
    lines = (f"export const {name} = {json.dumps(dict(texts))};\n" for name, texts in words.items())
    return "".join(lines).encode()


def _file(name: str, content: bytes) -> _File:
    headers = {
        **_SAFE,
        "Content-Security-Policy": _POLICY,
        "Content-Type": _TYPES["." + name.rpartition(".")[2]],
        "Cache-Control": _ASK_AGAIN,
        "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
    }
    return _File(content, headers)


@final
class FolderFiles:
    """The files of a folder with the build of another user interface; a route of that is its `index.html`.

    Raises:
        LicorneError: The folder has no `index.html`.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / _INDEX).is_file():
            raise LicorneError(f"--ui-dir {folder}: there is no {_INDEX} in it")
        self._files = StaticFiles(directory=folder)

    async def respond(self, request: Request) -> Response:
        """Return a file of the folder, for an unknown path without a suffix `index.html`."""
        path = self._files.get_path({**request.scope, "path": "/" + request.path_params["path"]})
        if request.path_params["path"].startswith(_API):
            return _unknown()
        for name in (path if path != "." else _INDEX, _INDEX):
            try:
                response = await self._files.get_response(name, request.scope)
            except HTTPException as error:
                if error.status_code != 404 or "." in path.rpartition("/")[2]:
                    return _unknown()
                continue
            response.headers.update(_SAFE)
            hashed = _HASHED.search(name) is not None
            response.headers["Cache-Control"] = _FOR_EVER if hashed else _ASK_AGAIN
            return response
        return _unknown()
