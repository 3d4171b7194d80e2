"""JSON from any source, and messages of `si.v1` in it: what cannot be read gives a clear error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar, cast, final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from ....model.configuration.names import did_you_mean
from ....model.errors import LicorneError
from ....model.values.documents import Json

DEPTH_MAX: Final = 100
"""How deep lists and objects may nest; no message of `si.v1` needs more than ten levels."""
_MessageType = TypeVar("_MessageType", bound=Message)
_BITS: Final = {FieldDescriptor.CPPTYPE_INT32: 32, FieldDescriptor.CPPTYPE_INT64: 64}


@final
class JsonError(LicorneError):
    """A text that is not JSON; `column` is the place, from 1, `None` if unknown."""

    def __init__(self, text: str, column: int | None = None) -> None:
        super().__init__(text)
        self.column = column


def parse_json(text: str) -> Json:
    """Read one line of JSON.

    Raises:
        JsonError: It is not JSON, nests too deep, or has a number with thousands of digits.
    """
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg[:1].lower() + error.msg[1:], error.colno) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        digits = sys.get_int_max_str_digits()
        raise JsonError(f"a number has more than {digits} digits") from None
    if _nests_deeper(value, DEPTH_MAX):
        raise _too_deep()
    return value


def _too_deep() -> JsonError:
    return JsonError(f"lists and objects nest deeper than {DEPTH_MAX} levels")


def _nests_deeper(value: Json, depth: int) -> bool:
    """Return whether lists and objects nest deeper; without recursion, which deep values would break."""
    level = [value]
    for _ in range(depth + 1):
        level = [
            part
            for one in level
            if isinstance(one, list | dict)
            for part in (one if isinstance(one, list) else one.values())
        ]
        if not level:
            return False
    return True


class MessageError(LicorneError):
    """JSON that is not a message of the expected kind; the text begins with the place in the message."""


def read_message(kind: type[_MessageType], body: Json) -> _MessageType:
    """Read a message.

    Raises:
        MessageError: Something in it is unknown or of the wrong kind.
    """
    if not isinstance(body, dict):
        raise MessageError(f"expected an object, not {body!r}")
    try:
        return ParseDict(body, kind())
    except (ParseError, ValueError, TypeError, AttributeError) as error:
        # Which of these is raised depends on the version of protobuf, and so does its text.
        said = next(_misfits(body, kind(), ""), " ".join(str(error).split()))
        raise MessageError(said) from error


def _misfits(body: Json, kind: Message, path: str) -> Iterator[str]:
    """Yield what does not fit a message."""
    if not isinstance(body, dict):
        yield f"{path}: expected an object, not {body!r}"
        return
    # Protobuf's own types name two classes of descriptors, which have the same interface.
    found = cast("Sequence[FieldDescriptor]", kind.DESCRIPTOR.fields)
    fields = {name: field for field in found for name in (field.name, field.json_name)}
    for key, value in body.items():
        place = f"{path}.{key}" if path else key
        if key not in fields:
            yield f"{place}: unknown field{did_you_mean(key, sorted(fields))}"
        elif value is not None:
            yield from _misfits_of_field(value, fields[key], place)


def _misfits_of_field(value: Json, field: FieldDescriptor, path: str) -> Iterator[str]:
    """Yield what does not fit a field: a map, a list, a message or a scalar."""
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        if not isinstance(value, dict):
            yield f"{path}: expected an object, not {value!r}"
            return
        for key, entry in value.items():
            yield from _misfits_of_text(key, path)
            yield from _misfits_of_one(entry, message.fields_by_name["value"], f"{path}[{key}]")
    elif _is_list(field):
        if not isinstance(value, list):
            yield f"{path}: expected a list, not {value!r}"
            return
        for index, entry in enumerate(value):
            yield from _misfits_of_one(entry, field, f"{path}[{index}]")
    else:
        yield from _misfits_of_one(value, field, path)


def _is_list(field: FieldDescriptor) -> bool:
    """Return whether a field holds a list; the attribute for that differs between versions of protobuf."""
    assert field.containing_type is not None, "it is a field of a message: please report"
    return hasattr(getattr(GetMessageClass(field.containing_type)(), field.name), "append")


def _misfits_of_one(value: Json, field: FieldDescriptor, path: str) -> Iterator[str]:
    """Yield what does not fit a message or a scalar."""
    if field.message_type is not None:
        yield from _misfits(value, GetMessageClass(field.message_type)(), path)
    elif field.enum_type is not None:
        names = [one.name for one in field.enum_type.values]
        if not isinstance(value, int) and value not in names:
            hint = did_you_mean(value, names) if isinstance(value, str) else ""
            yield f"{path}: {value!r} is not one of {', '.join(names)}{hint}"
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(value, bool):
            yield f"{path}: expected true or false, not {value!r}"
    elif field.cpp_type in _BITS:
        yield from _misfits_of_number(value, _BITS[field.cpp_type], path)
    else:
        yield from _misfits_of_text(value, path)


def _misfits_of_text(value: Json, path: str) -> Iterator[str]:
    """Yield what does not fit a text: JSON can have halves of characters, a message can not."""
    if not isinstance(value, str):
        yield f"{path}: expected a text, not {value!r}"
    elif any("\ud800" <= character <= "\udfff" for character in value):
        yield f"{path}: half a character stands in {value!r}"


def _misfits_of_number(value: Json, bits: int, path: str) -> Iterator[str]:
    """Yield what does not fit a signed number; as in JSON of protobuf, it may be in quotes."""
    number = _whole(value)
    if number is None:
        yield f"{path}: expected a whole number, not {value!r}"
    elif not -(1 << bits - 1) <= number < 1 << bits - 1:
        yield f"{path}: {value!r} is out of the range of {bits} bits"


def _whole(value: Json) -> int | None:
    """Return a value as a whole number, `None` if it is not one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        return (
            int(value)
            if isinstance(value, str) or (isinstance(value, float) and value.is_integer())
            else None
        )
    except ValueError:
        return None
