"""The parameters in the query of our own paths: each is known, and none stands twice."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from ...model.configuration.words import did_you_mean
from .errors import RestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

__all__ = ["parameters_of", "whole_number"]


def parameters_of(
    request: Request, *, needed: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, str]:
    """Return the parameters of a request by their names; one that is empty is left out.

    Raises:
        RestError: One is missing, is unknown or stands twice.
    """
    known = (*needed, *optional)
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            takes = ", ".join(known) or "none"
            text = f"the parameter {name!r} is unknown{did_you_mean(name, known)}; this path takes {takes}"
            raise RestError(HTTPStatus.BAD_REQUEST, text)
        if name in given:
            raise RestError(HTTPStatus.BAD_REQUEST, f"the parameter {name} stands twice")
        given[name] = value
    for name in needed:
        if not given.get(name):
            raise RestError(HTTPStatus.BAD_REQUEST, f"the parameter {name} is missing")
    return {name: value for name, value in given.items() if value}


def whole_number(given: dict[str, str], name: str, *, least: int, most: int, otherwise: int) -> int:
    """Return a parameter that is a whole number.

    Args:
        given: The parameters.
        name: Which of them.
        least: The smallest number that is taken.
        most: The largest one.
        otherwise: The number where the parameter is not given.

    Raises:
        RestError: It is no whole number, or out of this range.
    """
    text = given.get(name)
    if text is None:
        return otherwise
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not is_number or not least <= int(text) <= most:
        raise RestError(HTTPStatus.BAD_REQUEST, f"{name}={text!r} is no whole number from {least} to {most}")
    return int(text)
