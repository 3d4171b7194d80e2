"""The keys by which the model knows the parts of an ask that is for several allocations.

In the older generation of `si.v1` several allocations have the key of one ask, and each has a UUID of its
own. In the model each allocation has a key of its own. The two translate into each other by the text alone:

| the RM's key | its UUID | the key of the model |
|---|---|---|
| `k` | `k`, or none | `k` |
| `k` | `k#allocation-2`, given by the scheduler | `k#allocation-2` |
| `k` | `u`, given by an earlier scheduler | `k#allocation:u` |

An RM of the older generation may not have `#allocation` in a key of its own.
"""

from __future__ import annotations

from typing import Final

PART_MARK: Final = "#allocation"


def numbered_key(ask_key: str, number: int) -> str:
    """Return the key, and the UUID, of a further part that the scheduler makes of an ask."""
    return f"{ask_key}{PART_MARK}-{number}"


def part_key(ask_key: str, uuid: str) -> str:
    """Return the key of the allocation with this UUID and the ask with that key; one of them may be empty."""
    if not ask_key or uuid in ("", ask_key):
        return ask_key or uuid
    if ask_key_of(uuid) == ask_key and number_of(uuid) > 1:
        return uuid
    return f"{ask_key}{PART_MARK}:{uuid}"


def ask_key_of(key: str) -> str:
    """Return the key of the ask that a part belongs to."""
    return key.partition(PART_MARK)[0] if PART_MARK in key else key


def uuid_of(key: str) -> str:
    """Return the UUID by which an RM knows an allocation."""
    rest = key.partition(PART_MARK)[2]
    return rest[1:] if rest.startswith(":") else key


def number_of(key: str) -> int:
    """Return the number of a part that a scheduler has made, 1 for any other."""
    number = key.partition(PART_MARK)[2]
    return int(number[1:]) if number.startswith("-") and number[1:].isdecimal() else 1
