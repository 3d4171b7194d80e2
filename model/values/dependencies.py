"""How an application ended, and the terms by which others wait for that, or for their turn in an array.

An application names them in its tags. A removal by the RM names the outcome, see `ApplicationOutcome`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple, final

from ..identifiers import id_refusal

AFTER_TAG: Final = "after"
AFTER_OK_TAG: Final = "afterOk"
AFTER_FAILED_TAG: Final = "afterFailed"
ARRAY_TAG: Final = "array"
ARRAY_LIMIT_TAG: Final = "arrayLimit"
_AFTER: Final = (AFTER_TAG, AFTER_OK_TAG, AFTER_FAILED_TAG)
AFTER_TAGS: Final = frozenset(_AFTER)
NAMES_TAGS: Final = AFTER_TAGS | {ARRAY_TAG}
"""The tags whose values are ids of applications, or names of arrays."""
_TAGS: Final = frozenset({*NAMES_TAGS, ARRAY_LIMIT_TAG})
_NAMES_MAX: Final = 1_000
_LIMIT_MAX: Final = 1_000_000
_QUOTED_MAX: Final = 60


class ApplicationOutcome(Enum):
    """How an application ended; the values are the words of `RemoveApplicationRequest.outcome`."""

    OK = "ok"
    """Also of one that completed, and of one that its RM removed without naming an outcome."""
    FAILED = "failed"


class Terms(NamedTuple):
    """What an application waits for before it may start."""

    names: Mapping[str, ApplicationOutcome | None]
    """Each application or array that must end before, with the outcome that it must have, `None` for any."""
    array: str = ""
    """The array that it is an element of, the empty text without one."""
    limit: int | None = None
    """How many elements of the array may run at once, as far as this element names it."""


class TermsError(NamedTuple):
    """Why the tags of an application make no sense."""

    text: str


NO_TERMS: Final = Terms({})


@final
class Waits:
    """What an application still waits for: others, then its turn in its array."""

    __slots__ = ("never", "terms", "unmet")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.unmet: dict[str, None] = {}
        """The names of those that have not ended yet."""
        self.never = ""
        """The name of one that ended another way than it must: the application can never start."""

    @property
    def is_ready(self) -> bool:
        """Whether it waits at most for its turn."""
        return not self.unmet and not self.never


def tags_for(tags: Mapping[str, str], waits_for: Callable[[str], bool]) -> dict[str, str]:
    """Return tags that name of the awaited applications only those for which a function returns true."""
    kept = {}
    for tag, text in tags.items():
        left = text
        if tag in AFTER_TAGS:
            left = ",".join(name for name in map(str.strip, text.split(",")) if waits_for(name))
        if left or tag not in AFTER_TAGS:
            kept[tag] = left
    return kept


def terms_of(tags: Mapping[str, str]) -> Terms | TermsError:
    """Return what an application with these tags waits for, or which of the tags makes no sense."""
    if not tags or _TAGS.isdisjoint(tags):
        return NO_TERMS
    names, array = _names_of(tags), _array_of(tags)
    if isinstance(names, TermsError):
        return names
    return array if isinstance(array, TermsError) else Terms(names, *array)


def _names_of(tags: Mapping[str, str]) -> dict[str, ApplicationOutcome | None] | TermsError:
    names: dict[str, ApplicationOutcome | None] = {}
    for tag, outcome in zip(_AFTER, (None, ApplicationOutcome.OK, ApplicationOutcome.FAILED), strict=True):
        for name in map(str.strip, tags[tag].split(",") if tag in tags else ()):
            bad = id_refusal(f"a name in the tag {tag}", name)
            if bad is not None:
                return TermsError(bad)
            if not name:
                form = "it must be ids of applications, separated by commas"
                return TermsError(f"the tag {tag} is {_quoted(tags[tag])}: {form}")
            known = names.get(name)
            if known is not None and outcome not in {None, known}:
                both = f"{AFTER_OK_TAG} and {AFTER_FAILED_TAG}"
                return TermsError(f"the tags {both} both name {_quoted(name)}, which cannot end both ways")
            names[name] = outcome or known
    if len(names) > _NAMES_MAX:
        return TermsError(f"its tags name {len(names):,} applications, more than {_NAMES_MAX:,}")
    return names


def _array_of(tags: Mapping[str, str]) -> tuple[str, int | None] | TermsError:
    array, limit = tags.get(ARRAY_TAG), tags.get(ARRAY_LIMIT_TAG)
    if array is None:
        return ("", None) if limit is None else TermsError(f"the tag {ARRAY_LIMIT_TAG} needs {ARRAY_TAG}")
    bad = id_refusal(f"the tag {ARRAY_TAG}", array) if array else f"the tag {ARRAY_TAG} is empty"
    if bad is not None:
        return TermsError(bad)
    if limit is None or (re.fullmatch(r"[0-9]{1,7}", limit) and 0 < int(limit) <= _LIMIT_MAX):
        return array, None if limit is None else int(limit)
    form = f"it must be a number from 1 to {_LIMIT_MAX}"
    return TermsError(f"the tag {ARRAY_LIMIT_TAG} is {_quoted(limit)}: {form}")


def _quoted(text: str) -> str:
    return repr(text[:_QUOTED_MAX])
