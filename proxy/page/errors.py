"""Errors as the REST interface writes them."""

from __future__ import annotations

from starlette.responses import JSONResponse

__all__ = ["error_response"]


def error_response(status: int, message: str) -> JSONResponse:
    """Return the response of an error."""
    document = {"status_code": status, "message": message, "description": message}
    return JSONResponse(document, status_code=status, headers={"Cache-Control": "no-store"})
