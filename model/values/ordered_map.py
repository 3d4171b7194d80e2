"""A map that is walked in the order of its keys, for keys that mostly leave at the front.

It is a dict beside a sorted list of its keys. To take the first key away, or to add one behind the last,
costs a step; elsewhere it moves the keys behind, which for the some thousand applications of a queue or
asks of an application is less than one call into Python. `sortedcontainers.SortedDict` does the same
with a bound for millions of keys, and takes five to ten times as long for these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OrderedMap"]

Key = TypeVar("Key", bound=tuple[Any, ...])
Value = TypeVar("Value")
_SLACK: Final = 64
"""Keys that may lie dead at the front before the list is cut."""


@final
class OrderedMap(Generic[Key, Value]):
    """A dict in the order of its keys. A walk must end before the map changes."""

    __slots__ = ("_keys", "_start", "_values")

    def __init__(self) -> None:
        self._values: dict[Key, Value] = {}
        self._keys: list[Key] = []
        self._start = 0

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __getitem__(self, key: Key) -> Value:
        return self._values[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        if key not in self._values:
            keys = self._keys
            if not keys or key > keys[-1]:
                keys.append(key)
            else:
                insort(keys, key, lo=self._start)
        self._values[key] = value

    def __delitem__(self, key: Key) -> None:
        del self._values[key]
        keys = self._keys
        start = self._start
        if keys[start] != key:
            del keys[bisect_left(keys, key, lo=start)]
            return
        self._start = start + 1
        if not self._values:
            keys.clear()
            self._start = 0
        elif start > _SLACK and start * 2 > len(keys):
            del keys[: start + 1]
            self._start = 0

    def get(self, key: Key) -> Value | None:
        """Return a value, `None` if the key is not there."""
        return self._values.get(key)

    def first_key(self) -> Key:
        """Return the smallest key."""
        return self._keys[self._start]

    def last_key(self) -> Key:
        """Return the largest key."""
        return self._keys[-1]

    def keys(self) -> list[Key]:
        """Return the keys in order."""
        return self._keys[self._start :]

    def values(self) -> Iterator[Value]:
        """Walk the values in the order of their keys."""
        values = self._values
        keys = self._keys
        for index in range(self._start, len(keys)):
            yield values[keys[index]]

    def after(self, key: Key) -> Iterator[Value]:
        """Walk the values behind a key, which need not be there."""
        values = self._values
        keys = self._keys
        for index in range(bisect_right(keys, key, lo=self._start), len(keys)):
            yield values[keys[index]]
