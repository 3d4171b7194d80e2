"""Walltimes: how long work runs at most by its owner, a duration in the tag `walltime`.

The tag of an ask counts before that of its application, and both before what the queue assumes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..configuration.durations import DurationError, parse_duration_ns
from ..values.allocation import WALLTIME_TAG


def walltime_of(tags: Mapping[str, str]) -> int | None:
    """Return the walltime that tags name, in nanoseconds; `None` if they name none that can be read."""
    text = tags.get(WALLTIME_TAG)
    if text is None:
        return None
    try:
        walltime_ns = parse_duration_ns(text)
    except DurationError:
        return None
    return walltime_ns if walltime_ns > 0 else None


def tag_refusal(whose: str, tags: Mapping[str, str]) -> str | None:
    """Return why the walltime in tags cannot be one, `None` if it can or there is none.

    Args:
        whose: What has the tags, for the text.
        tags: Its tags.
    """
    if WALLTIME_TAG not in tags or walltime_of(tags) is not None:
        return None
    text = tags[WALLTIME_TAG]
    return f"the tag {WALLTIME_TAG} of {whose} is {text[:60]!r}: it must be a duration above zero, as 90m is"
