"""The words for the numbers of events."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import pytest

from licorne.model.values.events import ChangeDetail, ChangeType, EventType
from licorne.proxy.core.documents.monitoring import CHANGE_WORDS, DETAIL_WORDS, TYPE_WORDS


@pytest.mark.parametrize(
    ("kind", "words"),
    [(EventType, TYPE_WORDS), (ChangeType, CHANGE_WORDS), (ChangeDetail, DETAIL_WORDS)],
)
def test_every_number_that_says_something_has_words(kind: type[IntEnum], words: Mapping[int, str]) -> None:
    """Zero stands for nothing."""
    assert {member.value for member in kind} - {0} == {int(number) for number in words}
