"""JSON that anybody may have written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.proxy.base.files.json_text import DEPTH_MAX, JsonError, parse_json

DEEP = 200_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_a_value_is_read_as_python_reads_it(value: object) -> None:
    """Only what no message needs is refused."""
    assert value == parse_json(json.dumps(value))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}")])
@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 900, 990, DEEP])
def test_what_nests_too_deep_is_refused(opening: str, closing: str, depth: int) -> None:
    """Also where Python reads it, and would fail when it writes it into a message."""
    with pytest.raises(JsonError, match=f"nest deeper than {DEPTH_MAX} levels"):
        parse_json(opening * depth + "1" + closing * depth)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}")])
def test_the_deepest_that_is_allowed_is_read(opening: str, closing: str) -> None:
    """The limit is the last level that counts."""
    assert parse_json(opening * DEPTH_MAX + "1" + closing * DEPTH_MAX)


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    """In our words: those of Python say how to allow it."""
    with pytest.raises(JsonError, match=r"^a number has more than [0-9]+ digits$"):
        parse_json("9" * 10_000)


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [("", 1, "expecting value"), ('{"a": nope}', 7, "expecting value"), ("[1] 2", 5, "extra data")],
)
def test_what_is_no_json_is_named_with_its_column(text: str, column: int, said: str) -> None:
    """Lines are counted by who knows the file."""
    with pytest.raises(JsonError) as caught:
        parse_json(text)

    assert (column, said) == (caught.value.column, str(caught.value))
