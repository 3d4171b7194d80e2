"""The state behind the recorded answers of the REST interface: a scheduler that has played their scenario."""

from __future__ import annotations

from typing import Final

from support.proxy.event_rows import replayed
from support.proxy.golden_bodies import FOLDER

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName

RECORDED: Final = FOLDER


def rest_scenario(engine: EngineName = "direct") -> Scheduler:
    """Return a stepped scheduler as it was when the answers were recorded; the caller stops it."""
    return replayed((RECORDED / "scenario.jsonl").read_text(encoding="utf-8"), engine)
