"""What a parent queue gives to the dynamic leaf queues that placement creates in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..configuration.positions import Position
from ..configuration.schema import ChildTemplateConfig
from ..resources.resource import Resource, strictly_greater_than_zero
from ..resources.texts import resource_from_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTemplate:
    """A template; a quota without any quantity above zero, and a property without text, count as absent."""

    max_applications: int
    properties: Mapping[str, str]
    guaranteed: Resource | None
    maximum: Resource | None
    lend: Resource | None = None
    """`EMPTY` is never here: a template that names no type lends all."""
    positions: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)
    """Where its settings stand, by the names of `QueueConfig.positions`."""

    @classmethod
    def of(cls, config: ChildTemplateConfig | None) -> QueueTemplate | None:
        """Return the template of a configuration, `None` for an empty one."""
        if config is None or config.is_empty:
            return None
        guaranteed = resource_from_texts(config.guaranteed)
        maximum = resource_from_texts(config.max)
        return cls(
            max_applications=config.max_applications,
            properties={name: text for name, text in config.properties.items() if name and text},
            guaranteed=guaranteed if strictly_greater_than_zero(guaranteed) else None,
            maximum=maximum if strictly_greater_than_zero(maximum) else None,
            lend=resource_from_texts(config.lend) or None,
            positions=config.positions,
        )
