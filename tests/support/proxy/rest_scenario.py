"""The state behind the recorded answers of the REST interface: a scheduler that has played their scenario."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from support.proxy.golden_bodies import FOLDER

from licorne import Scheduler
from licorne.proxy.scheduler.scheduler import EngineName
from licorne.proxy.transcripts.replay import Replay
from licorne.proxy.transcripts.transcript import read_transcript

__all__ = ["RECORDED", "rest_scenario"]

RECORDED: Final = FOLDER


@contextmanager
def rest_scenario(engine: EngineName = "direct") -> Iterator[Scheduler]:
    """Give a stepped scheduler as it was when the answers were recorded."""
    with Scheduler(engine=engine, stepped=True) as scheduler:
        text = (RECORDED / "scenario.jsonl").read_text(encoding="utf-8")
        Replay(scheduler, lambda _: None).run(read_transcript(text, "scenario.jsonl"))
        yield scheduler
