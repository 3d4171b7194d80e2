"""A console of rich that writes its own control sequences, and none of the texts that it is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from .standard_output import escaped


@final
class EscapingConsole(Console):
    """A console for texts of others, see `escaped`."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of something, with their texts escaped."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(escaped(segment.text), segment.style)
