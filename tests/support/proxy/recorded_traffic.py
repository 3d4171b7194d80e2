"""Recorded schedulers for tests: what their resource managers heard, and what a replay says."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from google.protobuf.message import Message
from support.proxy.listening import Listener

from licorne import Scheduler
from licorne.model.values.messages import PredicateQuestion, PreemptionQuestion
from licorne.proxy.core.recording.turn_documents import message_document
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.transcripts.replay import Replay, replay_recording
from licorne.proxy.play.transcripts.transcript import (
    read_recording,
    read_transcript,
    recording_files,
    rows_of_files,
)
from licorne.proxy.si import si_pb2 as si


class Hearing(Listener):
    """Keeps each callback as the line that a replay writes for it, without the number of the line."""

    def __init__(self) -> None:
        super().__init__()
        self.callbacks: list[str] = []

    def update_node(self, response: si.NodeResponse) -> None:
        self._keep("nodeResponse", response)
        super().update_node(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._keep("applicationResponse", response)
        super().update_application(response)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._keep("allocationResponse", response)
        super().update_allocation(response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self._keep("schedulingState", request)
        super().update_container_scheduling_state(request)

    def _keep(self, key: str, message: Message) -> None:
        self.keep(json.dumps({key: message_document(message)}, sort_keys=True))

    def keep(self, callback: str) -> None:
        """Keep one callback."""
        self.callbacks.append(callback)


class JudgingHearing(Hearing):
    """Refuses one of four nodes for an ask, another one each time it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0
        self._lock = threading.Lock()

    def predicates(self, args: si.PredicatesArgs) -> None:
        with self._lock:
            self.questions += 1
            number = self.questions
        if crc32(f"{args.allocationKey} {args.nodeID} {number}".encode()) % 4 == 0:
            raise ValueError(f"question {number} is refused")

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> si.PreemptionPredicatesResponse:
        from licorne.proxy.si import si_pb2

        with self._lock:
            self.questions += 1
            number = self.questions
        return si_pb2.PreemptionPredicatesResponse(success=number % 3 > 0, index=args.startIndex)


class LaterHearing(Hearing):
    """Answers its predicates later, on other threads, in random order; a few questions it never answers.

    Args:
        seed: what it answers, and when, depends on this and on the order of the questions.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._random = random.Random(seed)  # noqa: S311 - dice, no secret
        self._lock = threading.Lock()

    def ask_predicates(
        self, questions: Sequence[PredicateQuestion], answer: Callable[[dict[int, Any]], None]
    ) -> None:
        """Refuse about every fourth node, other ones each time."""
        self._answer({place: self._refused(each) for place, each in enumerate(questions)}, answer)

    def ask_preemption_predicates(
        self, questions: Sequence[PreemptionQuestion], answer: Callable[[dict[int, Any]], None]
    ) -> None:
        """Refuse every third question."""
        chosen = {
            place: None if self._random.random() < 1 / 3 else each.start_index
            for place, each in enumerate(questions)
        }
        self._answer(chosen, answer)

    def _refused(self, question: PredicateQuestion) -> dict[str, str] | None:
        """Return the refused nodes, now and then that no answer will come."""
        with self._lock:
            if self._random.random() < 1 / 20:
                return None
            refused = [name for name in question.node_ids if self._random.random() < 1 / 4]
            return {name: f"odd number {self._random.randrange(5)}" for name in refused}

    def _answer(self, answers: dict[int, Any], answer: Callable[[dict[int, Any]], None]) -> None:
        with self._lock:
            places = [place for place in answers if self._random.random() < 19 / 20]
            self._random.shuffle(places)
            at_once = self._random.random() < 1 / 4

        def give() -> None:
            for place in places:
                answer({place: answers[place]})

        if at_once:
            give()
        else:
            threading.Thread(target=give, daemon=True).start()


_NO_CALLBACKS = {"registered", "scheduled", "error", "snapshot"}


def recorded(text: str, engine: EngineName, folder: Path) -> list[dict[str, Any]]:
    """Play a transcript to a stepped scheduler that is recorded; return the documents of the callbacks."""
    output: list[str] = []
    with Scheduler(engine=engine, stepped=True, record=folder) as scheduler:
        Replay(scheduler, output.append).run(read_transcript(text, "transcript"))
    documents = [json.loads(row) for row in output]
    return [document for document in documents if not _NO_CALLBACKS & document.keys()]


def replayed(
    folder: Path, engine: EngineName = "direct", *, may_be_cut: bool = False
) -> list[dict[str, Any]]:
    """Replay the recording of a folder; return the documents of its output.

    Args:
        folder: the folder of the recording, or the one above.
        engine: the engine of the replay.
        may_be_cut: the last line may be incomplete.
    """
    output: list[str] = []
    notes: list[str] = []
    rows = rows_of_files(recording_files(folder))
    replay_recording(read_recording(rows, notes.append), engine, output.append)
    assert may_be_cut or not notes
    return [json.loads(row) for row in output]


def callbacks_in(documents: list[dict[str, Any]], rm_id: str | None = None) -> list[str]:
    """Return the callbacks of one manager, or of all, in the output of a replay, as `Hearing` has them."""
    return [
        json.dumps(
            {key: body for key, body in document.items() if key not in ("line", "rmID", "registeredAt")},
            sort_keys=True,
        )
        for document in documents
        if rm_id is None or document.get("rmID") == rm_id
    ]


def recorded_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of all files of a recording."""
    files = recording_files(folder)
    return [json.loads(row) for path in files for row in path.read_text(encoding="utf-8").splitlines()]
