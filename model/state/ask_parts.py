"""The allocations of asks of a partition, where an ask is not for one allocation with its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from ..values.allocation import ask_key_of, number_of, numbered_key, uuid_of

_BOUND_MIN: Final = 4096
"""At how many parts unused ones are searched for; then again at twice as many as are used."""


@final
class AskParts:
    """The keys of the parts of each ask, see `licorne.model.values.allocation`.

    Those that have ended are forgotten at times.

    Args:
        used_among: Given an application and some keys, returns those of the keys that it uses now.
    """

    def __init__(self, used_among: Callable[[str, Sequence[str]], Sequence[str]]) -> None:
        self._used_among = used_among
        self._parts: dict[tuple[str, str], dict[str, None]] = {}
        """The keys of the parts with a separate key, by application and key of the ask."""
        self._keys: dict[tuple[str, str], str] = {}
        """The keys of parts that the RM has named, by application and UUID."""
        self._noted = 0
        self._bound = _BOUND_MIN

    def has_parts(self, application_id: str, ask_key: str) -> bool:
        """Return whether an ask has, or has had lately, parts with separate keys."""
        return (application_id, ask_key) in self._parts

    def of(self, application_id: str, ask_key: str) -> list[str]:
        """Return the parts of an ask that wait or run, the oldest first."""
        further = self._parts.get((application_id, ask_key), {})
        return list(self._used_among(application_id, (ask_key, *further)))

    def further(self, application_id: str, ask_key: str, count: int) -> list[str]:
        """Return keys for more parts of an ask, to be added at once.

        No UUID is given again while a part is left. An ask without parts begins with its own key.
        """
        self._forget_unused_at_times()
        known = self.of(application_id, ask_key)
        if known:
            self._forget_ended(application_id, ask_key, known)
            parts = self._parts.get((application_id, ask_key), {})
            first = max((number_of(key) for key in parts), default=1) + 1
            keys = [numbered_key(ask_key, number) for number in range(first, first + count)]
        else:
            self._forget(application_id, ask_key)
            keys = [ask_key, *(numbered_key(ask_key, number) for number in range(2, count + 1))][:count]
        for key in keys:
            self._add(application_id, key)
        return keys

    def note(self, application_id: str, key: str) -> None:
        """Note an allocation that the RM has named."""
        self._forget_unused_at_times()
        self._add(application_id, key)

    def _add(self, application_id: str, key: str) -> None:
        ask_key, uuid = ask_key_of(key), uuid_of(key)
        if key == ask_key:
            return
        parts = self._parts.setdefault((application_id, ask_key), {})
        self._noted += key not in parts
        parts[key] = None
        if uuid != key:
            self._keys[application_id, uuid] = key

    def with_uuid(self, application_id: str, uuid: str) -> str:
        """Return the key of the allocation that the RM knows by a UUID alone."""
        return self._keys.get((application_id, uuid), uuid)

    def owner_of(self, ask_key: str) -> str:
        """Return an application that has an ask with this key and with parts, else the empty text."""
        names = (name for name, key in self._parts if key == ask_key and self.of(name, key))
        return next(names, "")

    def _forget_unused_at_times(self) -> None:
        if self._noted <= self._bound:
            return
        for application_id, ask_key in list(self._parts):
            known = self.of(application_id, ask_key)
            if known:
                self._forget_ended(application_id, ask_key, known)
            else:
                self._forget(application_id, ask_key)
        self._bound = max(_BOUND_MIN, 2 * self._noted)

    def _forget_ended(self, application_id: str, ask_key: str, known: Sequence[str]) -> None:
        """Forget the parts of an ask that have ended, but the one with the last number."""
        parts = self._parts.get((application_id, ask_key))
        if not parts:
            return
        last = max(parts, key=number_of)
        for key in parts.keys() - {*known, last}:
            del parts[key]
            self._noted -= 1
            self._keys.pop((application_id, uuid_of(key)), None)

    def _forget(self, application_id: str, ask_key: str) -> None:
        for key in self._parts.pop((application_id, ask_key), {}):
            self._noted -= 1
            self._keys.pop((application_id, uuid_of(key)), None)
