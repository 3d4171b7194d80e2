"""The room of one node, or under one limit, from each moment on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TypeAlias, final

from ..resources.resource import Resource, add, fits, fits_undefined_unlimited, subtract

Fits: TypeAlias = "Callable[[Resource, Resource], bool]"


@final
class Profile:
    """How much room there is, from each moment to the next one; it never changes."""

    __slots__ = ("_fits", "_grows", "_rooms", "_times")

    def __init__(
        self, times: list[int], rooms: list[Resource], fits_in: Fits, *, grows: bool = False
    ) -> None:
        self._times = times
        self._rooms = rooms
        self._fits = fits_in
        self._grows = grows
        """There is never less room than before."""

    @staticmethod
    def of(now_ns: int, room: Resource, gains: Iterable[tuple[int, Resource]], *, is_limit: bool) -> Profile:
        """Return the profile of room that grows: each gain with its moment."""
        sums: dict[int, Resource] = {}
        for at_ns, size in gains:
            part = _limited(size, room) if is_limit else size
            before = sums.get(at_ns)
            sums[at_ns] = part if before is None else add(before, part)
        times, rooms = [now_ns], [room]
        for at_ns in sorted(sums):
            after = add(rooms[-1], sums[at_ns])
            if at_ns <= now_ns:
                rooms[-1] = after
            else:
                times.append(at_ns)
                rooms.append(after)
        return Profile(times, rooms, fits_undefined_unlimited if is_limit else fits, grows=True)

    def less(self, size: Resource, begin_ns: int, end_ns: int | None, *, merges: bool = True) -> Profile:
        """Return the profile with something taken from one moment to another, `None` for ever.

        Steps with the same room become one, unless the steps themselves matter.
        """
        times, rooms = self._times.copy(), self._rooms.copy()
        part = _limited(size, rooms[0]) if self._fits is fits_undefined_unlimited else size
        first = _cut(times, rooms, begin_ns)
        last = len(times) if end_ns is None else _cut(times, rooms, end_ns)
        rooms[first:last] = [subtract(room, part) for room in rooms[first:last]]
        if merges:
            for index in (last, first):  # The later one first: it moves no other.
                if 0 < index < len(rooms) and rooms[index] == rooms[index - 1]:
                    del times[index], rooms[index]
        return Profile(times, rooms, self._fits)

    def first_fit_ns(self, size: Resource, from_ns: int, length_ns: int | None) -> int | None:
        """Return the first moment from which there is room for a time, `None` if there never is."""
        times, rooms, has_room = self._times, self._rooms, self._fits
        count = len(times)
        index = max(0, bisect_right(times, from_ns) - 1)
        while True:
            while index < count and not has_room(rooms[index], size):
                index += 1
            if index == count:
                return None
            start_ns = max(from_ns, times[index])
            end_ns = None if length_ns is None else start_ns + length_ns
            index += 1
            while index < count and (end_ns is None or times[index] < end_ns):
                if not has_room(rooms[index], size):
                    break
                index += 1
            else:
                return start_ns

    def least(self, from_ns: int, length_ns: int | None) -> Resource:
        """Return the most that there is room for from a moment on, for so long."""
        index = max(0, bisect_right(self._times, from_ns) - 1)
        room = self._rooms[index]
        if self._grows:
            return room
        for at_ns, other in zip(self._times[index + 1 :], self._rooms[index + 1 :], strict=True):
            if length_ns is not None and at_ns >= from_ns + length_ns:
                break
            room = Resource({name: min(most, other.get(name)) for name, most in room.items()})
        return room

    def next_change_ns(self, after_ns: int) -> int | None:
        """Return the first moment after this one at which the room changes, `None` if it does not."""
        index = bisect_right(self._times, after_ns)
        return self._times[index] if index < len(self._times) else None


def _limited(size: Resource, room: Resource) -> Resource:
    """Return what counts against a limit: the types that it has."""
    return Resource({name: quantity for name, quantity in size.items() if room.has(name)})


def _cut(times: list[int], rooms: list[Resource], at_ns: int) -> int:
    """Have a step of a profile begin at a moment; return its index."""
    index = bisect_right(times, at_ns) - 1
    if index < 0:
        return 0
    if times[index] != at_ns:
        index += 1
        times.insert(index, at_ns)
        rooms.insert(index, rooms[index - 1])
    return index
