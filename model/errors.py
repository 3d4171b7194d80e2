"""The errors a caller can cause: one base class, each error names the offending value."""

from __future__ import annotations

from typing import Final

LINE_LENGTH_MAX: Final = 2_000
"""How long a line may be for a reader; a longer one repeats a value of megabytes."""

_TEXT_LENGTH_MAX: Final = 200_000


def shortened(text: str) -> str:
    """Return a text for people: of long lines the beginning and the end, and how much is left out."""
    if len(text) <= LINE_LENGTH_MAX:
        return text
    lines = (_cut(line, LINE_LENGTH_MAX) for line in text.split("\n"))
    return _cut("\n".join(lines), _TEXT_LENGTH_MAX)


def _cut(text: str, length_max: int) -> str:
    """Leave the middle of a text out if it is too long."""
    if len(text) <= length_max:
        return text
    half = length_max // 2
    return f"{text[:half]} [... {len(text) - 2 * half:,} characters left out ...] {text[-half:]}"


class LicorneError(Exception):
    """Misuse by a caller or bad input; the call has changed nothing.

    Its text is short enough to read, however long the values are that it names.
    """

    def __str__(self) -> str:
        return shortened(super().__str__())


class RequestError(LicorneError):
    """A request that the scheduler refuses as a whole: an unknown resource manager, for example."""


class ReplacedError(RequestError):
    """The resource manager has registered elsewhere; the text names the address.

    Its work continues there. It has to register again on purpose to take it back.
    """


def error_text(error: BaseException) -> str:
    """Return the text of an error, with its type unless it is one of ours, raised on purpose."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text of a foreign error
        text = "its text cannot be read"
    kind = type(error).__name__
    if not text:
        return kind
    return text if isinstance(error, LicorneError) else f"{kind}: {text}"
