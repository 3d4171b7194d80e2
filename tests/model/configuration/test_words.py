"""What a misspelt word was probably meant to be."""

from __future__ import annotations

import pytest

from licorne.model.configuration.names import did_you_mean

KNOWN = ("queues", "name", "maxApplications")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("queue", "queues"),
        ("QUEUES", "queues"),
        ("nmae", "name"),
        ("maxapplication", "maxApplications"),
        (" name", "name"),
    ],
)
def test_the_nearest_known_word_is_named(word: str, meant: str) -> None:
    """Case and small errors do not matter."""
    assert f"; did you mean {meant!r}?" == did_you_mean(word, KNOWN)


@pytest.mark.parametrize("word", ["colour", "", "x" * 10_000])
def test_nothing_is_said_where_nothing_is_near(word: str) -> None:
    """A wrong guess is worse than none."""
    assert did_you_mean(word, KNOWN) == ""


def test_a_known_word_is_not_offered_for_itself() -> None:
    """It was refused for another reason."""
    assert did_you_mean("name", KNOWN) == ""
