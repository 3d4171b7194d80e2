"""Bars of quantities: used, pending, guaranteed and maximum in one line of characters.

Each part has a character of its own, so that a bar can be read without colours: `█` used, `▒` pending, `·`
free up to the maximum, `┃` where the guarantee ends. Pending that the maximum has no room for ends in `▶`.
"""

from __future__ import annotations

from typing import Final

from rich.text import Text

from .tables import Bar

LEGEND: Final = "█ used  ▒ pending  · free  ┃ guaranteed  ▶ pending beyond the maximum"

_STYLES: Final = {"█": "green", "!": "red", "▒": "blue", "·": "dim", "┃": "bold magenta", "▶": "bold blue"}
"""Colours of the sixteen that a terminal adapts to its background; yellow is hard to read on white."""


def bar_text(bar: Bar, width: int) -> Text:
    """Draw a bar.

    What is used beyond the maximum is drawn as `!`. Something used or pending takes a character at least.
    """
    end = bar.maximum if bar.maximum is not None else max(bar.used + bar.pending, bar.guaranteed or 0)
    if width <= 0:
        return Text()
    if end <= 0:
        return Text(("!" if bar.used > 0 else "▶" if bar.pending > 0 else "·") * width, style=_STYLES["·"])
    used = _characters(bar.used, end, width)
    pending = min(_characters(bar.pending, end, width), width - used)
    characters = ["█"] * used + ["▒"] * pending + ["·"] * (width - used - pending)
    if bar.used > end:
        characters[-1] = "!"
    elif bar.pending and bar.used + bar.pending > end:
        characters[-1] = "▶"
    if bar.guaranteed:
        characters[min(width - 1, max(0, bar.guaranteed * width // end - 1))] = "┃"
    text = Text()
    for character in characters:
        text.append(character, _STYLES[character])
    return text


def _characters(quantity: int, end: int, width: int) -> int:
    """Return how many characters a quantity takes."""
    if quantity <= 0:
        return 0
    return min(width, max(1, round(quantity * width / end)))
