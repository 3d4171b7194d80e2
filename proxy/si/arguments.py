"""Checks of what a program hands over: a wrong type is refused in one line that names what was expected.

What is checked is an `object` here: the compiled build would refuse another type by an error of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from google.protobuf.message import Message

from ...model.errors import RequestError
from . import si_pb2 as si

_Request: TypeAlias = (
    "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest | si.UpdateConfigurationRequest"
)


def check_message(what: str, given: object, kind: type[Message]) -> None:
    """Refuse what is not a message of a kind; one of another program's copy of `si.v1` is of the kind.

    Raises:
        RequestError: It is something else.
    """
    if type(given) is kind:
        return
    wanted = kind.DESCRIPTOR.full_name
    name = getattr(getattr(type(given), "DESCRIPTOR", None), "full_name", None)
    if name == wanted:
        return
    hint = f"; make it with {kind.__name__}(...)" if name is None else ""
    raise RequestError(f"{what}: expected a message {wanted}, got {name or _shown(given)}{hint}")


def rm_id_of(request: _Request, kind: type[Message]) -> str:
    """Return the id of the resource manager that makes a request.

    Raises:
        RequestError: It is not a request of this kind.
    """
    if type(request) is not kind:
        check_message(kind.__name__, request, kind)
    return request.rmID


def check_messages(what: str, given: object, kind: type[Message]) -> None:
    """Refuse what is not a number of messages; each of them is checked when it is read.

    Raises:
        RequestError: It is one message, a text, or nothing to iterate over.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        wanted = kind.DESCRIPTOR.full_name
        raise RequestError(f"{what}: expected a list of messages {wanted}, got {_shown(given)}")


def check_type(what: str, given: object, *kinds: type) -> None:
    """Refuse a value of another type; `bool` does not count as `int`.

    Raises:
        RequestError: It is of none of these types.
    """
    if not isinstance(given, kinds) or (isinstance(given, bool) and bool not in kinds):
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise RequestError(f"{what}: expected {wanted}, got {_shown(given)}")


def check_names(what: str, given: object) -> None:
    """Refuse what is not a list of texts: one text would be read as a list of letters.

    Raises:
        RequestError: It is one text, or something in it is not a text.
    """
    if isinstance(given, str | bytes):
        raise RequestError(f"{what}={given!r:.100} is one text: give a list of names")
    check_type(what, given, Iterable)
    assert isinstance(given, Iterable), "it has been checked"
    for name in given:
        check_type(f"{what}: a name", name, str)


def check_seconds(what: str, given: object, *, may_be_zero: bool = False) -> None:
    """Refuse what is not a time to wait; it may be without end.

    Raises:
        RequestError: It is not a number, or below zero, or zero where it may not be.
    """
    check_type(what, given, int, float)
    assert isinstance(given, int | float), "it has been checked"
    if not (given > 0 or (may_be_zero and given == 0)):
        raise RequestError(f"{what}={given} is {'below 0' if may_be_zero else 'not above 0'}")


def check_texts(what: str, given: object) -> None:
    """Refuse what is not a mapping of texts to texts; `None` stands for an empty one.

    Raises:
        RequestError: It is something else, or has another key or value in it.
    """
    check_type(what, given, Mapping, type(None))
    if not isinstance(given, Mapping):
        return
    for key, value in given.items():
        check_type(f"{what}: the key", key, str)
        check_type(f"{what}[{key!r:.100}]", value, str)


def _shown(value: object) -> str:
    """Return a value with its type, in one line; the text of a message has several."""
    return "None" if value is None else f"{type(value).__name__} {' '.join(repr(value).split())[:100]}"
