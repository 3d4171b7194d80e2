"""What simulated managers submit: gangs, asks, and the tags by which they ask for policies.

Tags are drawn by dice of their own, which the names of applications and asks decide: so whatever else a seed
decides falls as it does without them, and what is named alike has the same tags in a plan of fewer steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, final

from ....model.requests.submission_terms import GANG_PLACING_TAG, GANG_SIZE_TAG, GANG_WAIT_TAG
from ....model.values.allocation import WALLTIME_TAG
from ..configurations import GANGS, SPARE, task_size
from ..plans import one_of
from .cluster_record import KnownApplication, Size, Task

_WALLTIMES: Final = ("1ms", "20ms", "20ms", "1s", "1s", "10s", "10s", "1h", "1h", "2h", "soon")
"""The last one is none, and two hours are more than some queues allow."""
_WAITS: Final = ("20ms", "5s", "5s", "5s", "1m", "1m", "1m", "never")
_COMPLETE: Final = 0.6
"""How many gangs without placeholders have all their asks sent with the application."""
_OF_GANGS: Final = 0.3
"""How many applications go to the leaf of entitled gangs, where there is one; as many to their victims'."""
_FILLER: Final = {"memory": 15, "vcore": 150}
"""What the latter ask for."""
_MEMBER: Final = {"memory": 10, "vcore": 100}


@final
class Submissions:
    """The submissions of one manager.

    Args:
        text: Decides which tags it sends: many managers send none.
        new_name: Returns a name that was not used before, for a kind of one letter.
    """

    def __init__(self, text: str, new_name: Callable[[str], str]) -> None:
        self._text = text
        self._new_name = new_name
        rng = self._dice("")
        self._walltimes = one_of(rng, (0.0, 0.0, 0.5))
        """How likely an application or an ask has a walltime."""
        self._gangs = one_of(rng, (0.0, 0.0, 0.5))
        """How likely an application says whether its gang is placed whole."""

    def queue(self, name: str, drawn: str, leaves: Sequence[str]) -> str:
        """Return the queue of a new application: what was drawn, or one for gangs and their victims."""
        place = self._dice(f"queue {name}").random() if GANGS in leaves else 1.0
        return GANGS if place < _OF_GANGS else SPARE if place < 2 * _OF_GANGS else drawn

    def begin(self, application: KnownApplication, rng: random.Random) -> list[Task]:
        """Perhaps make a new application a gang, and give it tags; return what it asks for at once."""
        if rng.random() < 0.3:
            for group in ("tg1", "tg2")[: rng.randint(1, 2)]:
                application.gang[group] = (rng.randint(1, 3), task_size(rng))
            application.hard = rng.random() < 0.3
            application.timeout_ms = one_of(rng, (0, 2_000, 10_000))
        elif rng.random() < 0.1:
            application.timeout_ms = one_of(rng, (5_000, 20_000))
        if application.queue in (GANGS, SPARE) and not application.gang:
            is_gang, dice = application.queue == GANGS, self._dice(f"members {application.name}")
            count = dice.randint(2, 3) if is_gang else dice.randint(6, 14)
            application.tags |= {GANG_SIZE_TAG: str(count)} if is_gang else {}
            return [self.task(application, dict(_MEMBER if is_gang else _FILLER)) for _ in range(count)]
        tasks = self._placeholders(application)
        walltime = self._walltime(application.name)
        if walltime:
            application.tags[WALLTIME_TAG] = walltime
        return tasks + [self.task(application, size) for size in self._say_placing(application)]

    def task(self, application: KnownApplication, size: Size, kind: str = "k") -> Task:
        """Return something new that an application wants to run."""
        key = self._new_name(kind)
        return Task(key, application.name, application.partition, size, walltime=self._walltime(key))

    def lacking(self, application: KnownApplication) -> list[Task]:
        """Return all members of a gang that is placed whole: some have ended, or were rejected."""
        count = int(application.tags.get(GANG_SIZE_TAG, "0"))
        tasks = [self.task(application, dict(_MEMBER)) for _ in range(count)]
        tasks += self._placeholders(application)
        for task in tasks:
            task.walltime = ""  # It may be one that is refused.
        return tasks

    def _placeholders(self, application: KnownApplication) -> list[Task]:
        tasks = []
        for group, (count, size) in application.gang.items():
            for _ in range(count):
                task = self.task(application, size, "p")
                task.group, task.placeholder = group, True
                tasks.append(task)
        return tasks

    def _say_placing(self, application: KnownApplication) -> list[Size]:
        """Perhaps say that a gang is placed whole; return the sizes of its members without placeholders."""
        tags = application.tags
        rng = self._dice(f"gang {application.name}")
        if rng.random() >= self._gangs:
            return []
        if rng.random() < 0.5:
            tags[GANG_WAIT_TAG] = one_of(rng, _WAITS)
        if application.gang:
            tags[GANG_PLACING_TAG] = one_of(rng, ("whole", "whole", "whole", "stepwise"))
            return []
        size = rng.randint(2, 5)
        tags[GANG_SIZE_TAG] = str(size)
        application.hard = rng.random() < 0.3
        sizes = [task_size(rng) for _ in range(rng.randint(1, 2))]
        return [one_of(rng, sizes) for _ in range(size)] if rng.random() < _COMPLETE else []

    def _walltime(self, name: str) -> str:
        """Return the walltime of an application or an ask with this name, the empty text for none."""
        if not self._walltimes:
            return ""
        rng = self._dice(name)
        return one_of(rng, _WALLTIMES) if rng.random() < self._walltimes else ""

    def _dice(self, name: str) -> random.Random:
        return random.Random(f"tags {name} {self._text}")  # noqa: S311 - it plays, and keeps no secret
