"""The rule about run times of queues: the properties `runtime.default` and `runtime.max`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..durations import duration_text
from ..positions import Position
from ..problems import RuleFinding
from ..queue_properties import RUNTIME_DEFAULT, RUNTIME_MAX, evaluate, inherit
from ..schema import QueueConfig


def run_times_fit(queue: QueueConfig, above: Mapping[str, str]) -> Iterator[RuleFinding]:
    """Refuse defaults above the maximum, of a queue and all below it.

    Args:
        queue: The queue.
        above: The properties that it inherits.
    """
    properties = inherit(above, queue.properties)
    yield from _fit(queue.properties, properties, queue.positions, queue.position)
    template = queue.child_template
    if template is not None:
        yield from _fit(template.properties, template.properties, template.positions, template.position)
    for child in queue.queues:
        yield from run_times_fit(child, properties)


def _fit(
    own: Mapping[str, str],
    properties: Mapping[str, str],
    positions: Mapping[str, Position],
    fallback: Position,
) -> Iterator[RuleFinding]:
    """Refuse the default of one queue, at its own place."""
    runtime = evaluate(properties, is_leaf=True).runtime
    named = next((name for name in (RUNTIME_DEFAULT, RUNTIME_MAX) if name in own), None)
    if named is None or runtime.default_ns is None or runtime.max_ns is None:
        return
    if runtime.default_ns > runtime.max_ns:
        position = positions.get(f"properties.{named}", fallback)
        texts = f"{RUNTIME_DEFAULT} {duration_text(runtime.default_ns)}", duration_text(runtime.max_ns)
        yield RuleFinding(position, f"{texts[0]} is longer than {RUNTIME_MAX} {texts[1]}")
