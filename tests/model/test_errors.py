"""The texts of errors: whole for people, and cut where a value of megabytes stands in them."""

from __future__ import annotations

import pytest

from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.reader import load
from licorne.model.errors import LINE_LENGTH_MAX, LicorneError, RequestError, shortened

MEGABYTES = 5_000_000


def test_an_ordinary_text_stays_as_it_is() -> None:
    """Also at the limit, and with many lines."""
    lines = "\n".join(["x" * LINE_LENGTH_MAX] * 50)

    assert (lines, "") == (shortened(lines), shortened(""))


@pytest.mark.parametrize("kind", [LicorneError, RequestError])
def test_an_error_that_repeats_megabytes_is_cut(kind: type[LicorneError]) -> None:
    """Beginning and end stay: they say where it is and what is wanted."""
    text = str(kind(f"f.jsonl:7: {'x' * MEGABYTES}; did you mean this?"))

    assert text.startswith("f.jsonl:7: xxx")
    assert "characters left out" in text
    assert text.endswith("xxx; did you mean this?")
    assert len(text) < LINE_LENGTH_MAX + 100


def test_a_text_of_very_many_lines_is_cut_too() -> None:
    """A value may have line ends in it."""
    assert len(shortened("line\n" * MEGABYTES)) < MEGABYTES // 20


@pytest.mark.parametrize(
    "text",
    [
        f"partitions:\n  - name: default\n    queues: {'x' * MEGABYTES}\n",
        f"partitions:\n  - ? {'x' * MEGABYTES}\n    : 1\n",
    ],
    ids=["value", "key"],
)
def test_a_problem_of_a_configuration_is_cut(text: str) -> None:
    """Its text, and the path that a key of megabytes is part of."""
    with pytest.raises(ConfigurationError) as caught:
        load(text)

    assert len(str(caught.value)) < 5 * LINE_LENGTH_MAX
    assert all(len(problem.path) < LINE_LENGTH_MAX + 100 for problem in caught.value.problems)
