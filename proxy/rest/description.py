"""The route of the description of the interface, `openapi.yaml`, which is a file of this package."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["ROUTES", "description"]

_TYPE: Final = "application/yaml"


@cache
def description() -> bytes:
    """Return the text of the description, OpenAPI 3.1 as YAML in UTF-8."""
    assert __package__ is not None, "a module of a package knows it: please report"
    return (resources.files(__package__) / "openapi.yaml").read_bytes()


async def _description(_: Request) -> Response:
    return Response(description(), headers={"Content-Type": _TYPE})


ROUTES = [Route("/openapi.yaml", _description)]
