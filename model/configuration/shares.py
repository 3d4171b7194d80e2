"""Quotas of queues that are parts of the maximum of their parents: `max: 50%`.

The whole is the maximum of the parent; that of the root is the sum of all nodes. So parts of it follow the
nodes that come and go. All arithmetic is with whole numbers: each quantity is rounded down.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..resources.resource import EMPTY, Resource
from .problems import Position, RuleFinding

ALL_TYPES: Final = "%"
"""The key of the text of a share, where quantities have types."""
WHOLE: Final = 100_000
"""The thousandths of a percent of everything."""
_TEXT: Final = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,3}))?%")


class Share(NamedTuple):
    """A part of the maximum of a parent, in thousandths of a percent."""

    thousandths: int

    def __str__(self) -> str:
        """Return it as a configuration has it."""
        whole, rest = divmod(self.thousandths, 1000)
        return f"{whole}.{rest:03}".rstrip("0").rstrip(".") + "%"

    def of(self, whole: Resource | None) -> Resource:
        """Return the part of each type of a maximum; nothing of one that is missing."""
        if whole is None:
            return EMPTY
        return Resource({name: amount * self.thousandths // WHOLE for name, amount in whole.items()})


def read_share(text: str) -> Share | None:
    """Return the share in a text, `None` if it is not a percentage above 0 and up to 100."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        return None
    share = Share(int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0")))
    return share if 0 < share.thousandths <= WHOLE else None


class Whole(NamedTuple):
    """What percentages of a queue are parts of: the maximum of its parent, `None` for one without.

    `is_of_cluster` marks the cluster, and a maximum that is a part of it: its size is not known.
    """

    maximum: Resource | None
    is_of_cluster: bool = False


CLUSTER: Final = Whole(EMPTY, is_of_cluster=True)


def share_of(whole: Whole, text: str, position: Position, findings: list[RuleFinding]) -> Share | None:
    """Return the share in a text, `None` with a finding if it is not one, or of nothing."""
    share = read_share(text)
    if share is None:
        message = f"{text!r} is not a percentage above 0 and up to 100%, such as 20% or 12.5%"
    elif whole.maximum is None:
        message = f"{text} of the maximum of the parent, which has none: write quantities, or give it one"
    else:
        return share
    findings.append(RuleFinding(position, message))
    return None
