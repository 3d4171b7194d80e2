"""Recordings of schedulers that run by themselves, while threads of two resource managers talk to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.json_format import ParseDict
from support.proxy.recorded_traffic import (
    Hearing,
    JudgingHearing,
    LaterHearing,
    callbacks_in,
    replayed,
)
from support.proxy.running_scheduler import in_threads
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne import RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si

SEEDS: Final = [*range(4), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 100)]]
SHORT_MS: Final = 15
"""How long placeholders and answers of predicates wait: a few turns of a busy scheduler."""


class Managers:
    """Two resource managers that say what random transcripts have, each by two threads."""

    def __init__(self, scheduler: Scheduler, seed: int, make: Callable[[], Hearing]) -> None:
        self.heard: dict[str, list[Hearing]] = {"one": [], "two": []}
        """The callbacks of each, a list of them for each registration."""
        self._scheduler = scheduler
        self._make = make
        self._lines = {
            rm_id: [json.loads(line) for line in simulated_transcript(seed + number, 60)]
            for number, rm_id in enumerate(self.heard)
        }

    def talk(self) -> None:
        """Register both, then say everything else at once."""
        for rm_id, lines in self._lines.items():
            self._say(rm_id, lines[0])
        in_threads(
            *(
                lambda rm_id=rm_id, lines=lines, part=part: self._say_all(rm_id, lines[1 + part :: 2])
                for rm_id, lines in self._lines.items()
                for part in range(2)
            )
        )

    def _say_all(self, rm_id: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            with suppress(RequestError):  # Some of it is refused.
                self._say(rm_id, line)

    def _say(self, rm_id: str, line: dict[str, Any]) -> None:
        verb, body = next(iter(line.items()))
        if verb in REQUESTS:
            request = ParseDict({**body, "rmID": rm_id}, REQUESTS[verb]())
            if verb == "register":
                callback = self._make()
                self._scheduler.register_resource_manager(request, callback)
                self.heard[rm_id].append(callback)
            elif verb == "configuration":
                self._scheduler.update_configuration(request)
            elif verb == "application":
                for new in request.new:
                    new.executionTimeoutMilliSeconds = min(new.executionTimeoutMilliSeconds, SHORT_MS)
                self._scheduler.update_application(request)
            elif verb == "node":
                self._scheduler.update_node(request)
            else:
                self._scheduler.update_allocation(request)


REQUESTS: Final[dict[str, type[Any]]] = {
    "register": si.RegisterResourceManagerRequest,
    "configuration": si.UpdateConfigurationRequest,
    "node": si.NodeRequest,
    "application": si.ApplicationRequest,
    "allocation": si.AllocationRequest,
}


def by_registration(documents: list[dict[str, Any]], rm_id: str) -> list[list[str]]:
    """Return the callbacks of a resource manager in a replay, a list for each registration that has any."""
    lines = {document["registeredAt"] for document in documents if document["rmID"] == rm_id}
    return [
        callbacks_in([document for document in documents if document["registeredAt"] == line], rm_id)
        for line in sorted(lines)
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [Hearing, JudgingHearing, LaterHearing])
def test_the_replay_says_to_each_manager_what_it_heard(
    seed: int, make: Callable[[], Hearing], tmp_path: Path
) -> None:
    """Whatever threads, timers, reloads and moods of predicates came together, byte for byte."""
    with Scheduler(record=tmp_path, predicate_timeout_seconds=SHORT_MS / 1000) as scheduler:
        managers = Managers(scheduler, 10 * seed, make)
        managers.talk()
        scheduler.validate()
    documents = replayed(tmp_path)

    for rm_id, registrations in managers.heard.items():
        heard = [manager.callbacks for manager in registrations if manager.callbacks]
        assert heard
        assert heard == by_registration(documents, rm_id)
