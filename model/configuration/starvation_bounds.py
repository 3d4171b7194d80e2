"""What a configuration says about how long a job may be passed by later comers, for those who check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .durations import short_duration_text
from .problems import RuleFinding
from .queue_properties import BACKFILL_RESERVATIONS, evaluate, inherit
from .schema import QueueConfig


def starvation_bounds(queue: QueueConfig, above: Mapping[str, str] = {}) -> Iterator[RuleFinding]:
    """Walk what each queue promises that backfills, of a queue and all below it.

    Args:
        queue: The queue.
        above: The properties that it inherits.
    """
    properties = inherit(above, queue.properties)
    settings = evaluate(properties, is_leaf=queue.is_leaf)
    if settings.backfill is not None:
        passes, half_life_ns = settings.backfill.passes, settings.fair_half_life_ns
        later = "1 later comer" if passes == 1 else f"{passes} later comers"
        until = ""
        if passes and half_life_ns is not None:
            until = f", within {short_duration_text(half_life_ns)} of the first"
        position = queue.positions.get(f"properties.{BACKFILL_RESERVATIONS}", queue.position)
        yield RuleFinding(position, f"at most {later} may delay a promised start by their shares{until}")
    for child in queue.queues:
        yield from starvation_bounds(child, properties)
