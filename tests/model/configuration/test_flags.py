"""Words for true and false."""

from __future__ import annotations

import pytest

from licorne.model.configuration.names import flag_of


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("1 t T true True TRUE", True),
        ("0 f F false False FALSE", False),
        ("2 y yes on tRUE n no off nil -1", None),
    ],
)
def test_the_words_of_go_are_flags_and_no_others(words: str, *, flag: bool | None) -> None:
    """In three spellings each, a digit and two letters."""
    assert {flag} == {flag_of(word) for word in words.split()}


@pytest.mark.parametrize("text", ["", " ", " true", "true\n"])
def test_a_flag_has_nothing_around_it(text: str) -> None:
    """Who wants to allow that strips it."""
    assert flag_of(text) is None
