"""JSON from any source: every text that cannot be read gives a clear error."""

from __future__ import annotations

import json
import sys
from typing import Final, final

from ....model.errors import LicorneError
from ....model.values.documents import Json

DEPTH_MAX: Final = 100
"""How deep lists and objects may nest; no message of `si.v1` needs more than ten levels."""


@final
class JsonError(LicorneError):
    """A text that is no JSON; `column` is where, from 1, `None` where that is not known."""

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
