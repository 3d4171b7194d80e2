"""Reasons without the names in them, so that equal ones can be counted."""

from __future__ import annotations

import re


def without_names(reason: str, *names: str) -> str:
    """Return a reason with `...` in place of names; a name inside another word stays."""
    for name in names:
        if name:
            reason = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "...", reason)
    return reason
