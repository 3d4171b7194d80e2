"""Texts and tables of the page: amounts, shares and times for people, with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from .....model.configuration.durations import short_duration_text

_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})


def number(value: int) -> str:
    """Write a whole number with separators."""
    return f"{value:,}"


def decimal(value: float) -> str:
    """Write a number with as many decimals as three digits need."""
    if 0 < abs(value) < 1:
        return f"{value:.3g}"
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(resource: str, value: int) -> str:
    """Write a resource amount: cores for `vcore`, binary units for what is in bytes."""
    if resource == "vcore":
        return f"{decimal(value / 1000)} cores"
    if resource in _BYTES:
        unit = 0
        scaled: float = value
        while abs(scaled) >= 1024 and unit + 1 < len(_BYTE_UNITS):
            scaled, unit = scaled / 1024, unit + 1
        return f"{decimal(scaled)} {_BYTE_UNITS[unit]}"
    return decimal(value)


def unit_of(resource: str) -> str:
    """Return the name of a resource type for a caption."""
    return {"vcore": "processor cores"}.get(resource, resource)


def percent(permille: int | None) -> str:
    """Write thousandths as percent."""
    return "–" if permille is None else f"{permille / 10:.1f} %"  # noqa: RUF001 - a dash for no value


def factor(permille: int | None) -> str:
    """Write thousandths as a factor."""
    return "–" if permille is None else f"{permille / 1000:.2f} ×"  # noqa: RUF001 - likewise, and the sign


def time(nanoseconds: int | None) -> str:
    """Write a duration."""
    return "–" if nanoseconds is None else short_duration_text(nanoseconds)  # noqa: RUF001 - likewise


def change_of(now: int | None, before: int | None, kind: str) -> str:
    """Write a difference with its sign.

    Args:
        now: The value of this run, `None` where there is none.
        before: The value of the other run.
        kind: `time`, `percent`, `factor` or `count`.
    """
    if now is None or before is None:
        return "–"  # noqa: RUF001 - likewise
    difference = now - before
    if difference == 0:
        return "same"
    sign = "+" if difference > 0 else "−"  # noqa: RUF001 - the sign for minus
    size = abs(difference)
    if kind == "time":
        return f"{sign}{short_duration_text(size)}"
    if kind == "factor":
        return f"{sign}{factor(size)}"
    return f"{sign}{size / 10:.1f} pp" if kind == "percent" else f"{sign}{size:,}"


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    is_long: bool = False,
) -> str:
    """Return a table; cells are plain text.

    Args:
        caption: What it shows.
        headings: One for each column.
        rows: The cells of each row.
        texts: How many columns are text; the others are numbers.
        is_long: Whether only the caption is shown at first.
    """
    kinds = ["" if at < texts else ' class="n"' for at in range(len(headings))]
    head = "".join(
        f'<th scope="col"{kind}>{escape(text)}</th>' for kind, text in zip(kinds, headings, strict=True)
    )
    body = []
    for row in rows:
        first, *others = row
        cells = "".join(
            f"<td{kind}>{escape(text)}</td>" for kind, text in zip(kinds[1:], others, strict=True)
        )
        body.append(f'<tr><th scope="row"{kinds[0]}>{escape(first)}</th>{cells}</tr>')
    label = escape(caption)
    hidden = ' class="hidden"' if is_long else ""
    text = (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table><caption{hidden}>{label}'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
    return f"<details><summary>{label}</summary>{text}</details>" if is_long else text
