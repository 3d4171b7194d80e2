"""What applications wait for besides room, for the second scheduler: found anew from their whole history."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final, final

from ..plans import one_of
from .queues import ReferenceApplication

_AFTER: Final = {"after": ("ok", "failed"), "afterOk": ("ok",), "afterFailed": ("failed",)}
"""By tag, how another application may have ended."""


@final
class _LinkState:
    """What is known at one moment of the history."""

    def __init__(self) -> None:
        self.alive: dict[str, Mapping[str, str]] = {}
        self.ready: list[str] = []
        """Those that wait for nothing but their turn, in this order."""
        self.turns: set[str] = set()
        self._ended: dict[str, str] = {}
        self._limits: dict[str, int] = {}
        self._failed: set[str] = set()
        """Arrays of which an element has failed."""
        self.awaited: dict[str, dict[str, str]] = {}
        """By application, whom it waits for, each with the tag that names it."""

    def come(self, name: str, tags: Mapping[str, str]) -> None:
        self.alive[name] = tags
        self.awaited[name] = {tags[tag]: tag for tag in _AFTER if tag in tags}
        for each in (name, tags.get("array", "")):
            self._ended.pop(each, None)
        if "arrayLimit" in tags:
            self._limits[tags["array"]] = int(tags["arrayLimit"])
        self._settle()

    def end(self, name: str, outcome: str) -> None:
        array = self.alive.pop(name).get("array", "")
        del self.awaited[name]
        self._ended[name] = outcome
        self._settle()
        self.ready = [each for each in self.ready if each != name]
        self.turns.discard(name)
        self._settle()
        if array and outcome == "failed":
            self._failed.add(array)
        if array and all(other.get("array") != array for other in self.alive.values()):
            self._ended[array] = "failed" if array in self._failed else "ok"
            self._failed.discard(array)
            self._limits.pop(array, None)
            self._settle()

    def _settle(self) -> None:
        for name, awaited in self.awaited.items():
            for other in [each for each in awaited if each in self._ended]:
                tag = awaited.pop(other)
                if self._ended[other] not in _AFTER[tag]:
                    awaited[f"never {other}"] = tag
            if not awaited and name not in self.ready:
                self.ready.append(name)
        for name in self.ready:
            own = self.alive.get(name, {}).get("array", "")
            beside = [each for each in self.turns if own and self.alive.get(each, {}).get("array") == own]
            if own not in self._limits or len(beside) < self._limits[own]:
                self.turns.add(name)


@final
class ReferenceLinks:
    """The history of the applications of one world."""

    def __init__(self) -> None:
        self._history: list[tuple[str, Mapping[str, str] | None, str]] = []
        """Each application that came, with its tags, and each that has ended, without them and with how."""

    def come(self, name: str, tags: Mapping[str, str]) -> None:
        """Note a new application."""
        self._history.append((name, tags, ""))

    def end(self, name: str, outcome: str) -> None:
        """Note the end of an application."""
        self._history.append((name, None, outcome))

    def tell(self, applications: Mapping[str, ReferenceApplication]) -> None:
        """Note at applications why they wait: for others, or their array runs as many as it may."""
        found = self._state()
        for name, application in applications.items():
            reason = "ARRAY_LIMIT" if name in found.ready else "DEPENDENCY"
            application.waits_for = "" if name in found.turns else reason

    def refuses(self, name: str, tags: Mapping[str, str]) -> bool:
        """Return whether a new application would wait for itself."""
        found = self._state()
        reached = {tags[tag] for tag in _AFTER if tag in tags}
        while True:
            more = {
                other
                for each, its_tags in found.alive.items()
                if each in reached or its_tags.get("array") in reached
                for other in found.awaited[each]
            }
            if more <= reached:
                return bool({name, tags.get("array", name)} & reached)
            reached |= more

    def _state(self) -> _LinkState:
        found = _LinkState()
        for name, tags, outcome in self._history:
            if tags is None:
                found.end(name, outcome)
            else:
                found.come(name, tags)
        return found


def drawn_links(name: str, serial: int, text: str) -> dict[str, str]:
    """Return tags by which an application perhaps waits for others: earlier ones, or some that may come."""
    rng = random.Random(f"links {name} {text}")  # noqa: S311 - it plays, and keeps no secret
    tags: dict[str, str] = {}
    if rng.random() < 0.4:
        others = [f"a{number}" for number in range(max(1, serial - 40), serial + 12)]
        tags[one_of(rng, [*_AFTER])] = one_of(rng, (*others, "x", "x", "x"))
    if rng.random() < 0.4:
        tags["array"] = one_of(rng, ("x", "y"))
        if rng.random() < 0.8:
            tags["arrayLimit"] = str(rng.randint(1, 3))
    return tags
