"""What scalars mean by YAML 1.2, and where a flag or a number is wanted."""

from __future__ import annotations

import pytest

from licorne.model.configuration.problems import NOWHERE
from licorne.model.configuration.yaml_nodes import (
    UINT64_MAX,
    MappingNode,
    Node,
    ScalarError,
    ScalarNode,
    ScalarTag,
    SequenceNode,
    kind_of,
    plain_tag,
    read_count,
    read_flag,
    read_number,
    read_text,
)


def plain(text: str) -> ScalarNode:
    return ScalarNode(text, plain_tag(text), NOWHERE)


def quoted(text: str) -> ScalarNode:
    return ScalarNode(text, ScalarTag.TEXT, NOWHERE, plain=False)


A_LIST = SequenceNode((), NOWHERE, 1, 1)
A_MAPPING = MappingNode({}, NOWHERE, 1, 1)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        *((text, ScalarTag.NULL) for text in ("", "~", "null", "Null", "NULL")),
        *((text, ScalarTag.BOOLEAN) for text in ("true", "True", "TRUE", "false", "False", "FALSE")),
        *((text, ScalarTag.INTEGER) for text in ("0", "-1", "+2", "010", "0x1F", "0o17")),
        *((text, ScalarTag.FLOAT) for text in ("1.5", "-.5", "1.", "1e3", ".inf", "-.Inf", ".NaN")),
        *((text, ScalarTag.TEXT) for text in ("on", "no", "Yes", "10:30", "1_000", "0b1", "nULL", "tRUE")),
        *((text, ScalarTag.TEXT) for text in ("2001-01-01", ".", "-", "0x", "1.2.3", "-0x1", "=")),
        ("<<", ScalarTag.MERGE),
    ],
)
def test_plain_scalars_are_what_yaml_1_2_says(text: str, tag: ScalarTag) -> None:
    """The core schema of YAML 1.2 decides; the flags, times and numbers of YAML 1.1 are text."""
    assert tag is plain_tag(text)


@pytest.mark.parametrize("text", ["on", "no", "10:30", "0x10", "1.50", "true", "010"])
def test_a_field_for_text_takes_any_scalar_as_written(text: str) -> None:
    """Nothing is converted on the way to a text."""
    assert text == read_text(plain(text))


def test_null_is_the_empty_text() -> None:
    """A field with nothing in it is as if it were not there."""
    assert read_text(plain("~")) == ""


@pytest.mark.parametrize(("node", "kind"), [(A_LIST, "a list"), (A_MAPPING, "a mapping")])
def test_a_list_or_mapping_is_no_text(node: Node, kind: str) -> None:
    """A field for text says what stands there instead."""
    with pytest.raises(ScalarError, match=f"^expected a text, not {kind}$"):
        read_text(node)


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("TRUE", True), ("False", False), ("", False)])
def test_flags_are_read_without_a_word(text: str, *, flag: bool) -> None:
    """True and false in their three spellings, and nothing for false."""
    assert (flag, None) == read_flag(plain(text))


@pytest.mark.parametrize(("text", "flag"), [("on", True), ("yes", True), ("n", False), ("off", False)])
def test_flags_of_yaml_1_1_are_read_with_a_warning(text: str, *, flag: bool) -> None:
    """The recorded core takes them where it wants a flag."""
    word = "true" if flag else "false"

    assert (
        flag,
        f"{text!r} is text in YAML 1.2; it is taken for {word}, better write that",
    ) == read_flag(plain(text))


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (plain("maybe"), "expected true or false, not the text 'maybe'"),
        (plain("1"), "expected true or false, not 1"),
        (quoted("yes"), "expected true or false, not the text 'yes'"),
        (
            quoted("true"),
            "expected true or false, not the text 'true'; did you mean true, without quotes?",
        ),
        (
            plain("tRue"),
            "expected true or false, not the text 'tRue'; did you mean true, without quotes?",
        ),
        (A_LIST, "expected true or false, not a list"),
        (ScalarNode("x", ScalarTag.BOOLEAN, NOWHERE), "expected true or false, not x"),
    ],
)
def test_what_is_no_flag_is_refused(node: Node, said: str) -> None:
    """The message says what stands there, and what was probably meant."""
    with pytest.raises(ScalarError) as refused:
        read_flag(node)

    assert said == str(refused.value)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("7", 7),
        ("+7", 7),
        ("0x10", 16),
        ("0o10", 8),
        ("", 0),
        ("18446744073709551615", UINT64_MAX),
        ("-0", 0),
    ],
)
def test_counts_are_read_without_a_word(text: str, count: int) -> None:
    """Whole numbers of 64 bits in the three bases of YAML 1.2, and nothing for 0."""
    assert (count, None) == read_count(plain(text))


@pytest.mark.parametrize(
    ("text", "count", "warning"),
    [
        ("1.5", 1, "1.5 is not written as a whole number; it is taken for 1"),
        ("1e3", 1000, "1e3 is not written as a whole number; it is taken for 1000"),
        ("010", 10, "010 is the decimal number 10 in YAML 1.2: drop the leading zero"),
        ("1_000", 1000, "'1_000' is text in YAML 1.2; it is taken for 1000, better write that"),
        ("0b11", 3, "'0b11' is text in YAML 1.2; it is taken for 3, better write that"),
    ],
)
def test_counts_in_odd_spellings_are_read_with_a_warning(text: str, count: int, warning: str) -> None:
    """The recorded core takes them too; the warning says which number is used."""
    assert (count, warning) == read_count(plain(text))


@pytest.mark.parametrize(
    "text",
    ["-1", "18446744073709551616", "9" * 5000, "1e400", ".inf", ".nan", "many", "0x", "0x_", "true", "_1"],
)
def test_what_is_no_count_is_refused(text: str) -> None:
    """Numbers out of range and other things are no counts."""
    with pytest.raises(ScalarError) as refused:
        read_count(plain(text))

    assert f"expected a whole number from 0 to {UINT64_MAX}, not {kind_of(plain(text))}" == str(refused.value)


def test_a_quoted_count_is_refused_with_advice() -> None:
    """A text that looks like a number is still a text."""
    with pytest.raises(ScalarError, match="not the text '3': write it without quotes"):
        read_count(quoted("3"))


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1.0), ("-2.5", -2.5), ("0x10", 16.0), ("1e3", 1000.0), ("", 0.0)]
)
def test_numbers_are_read(text: str, number: float) -> None:
    """Whole numbers and fractions, of either sign."""
    assert number == read_number(plain(text))


@pytest.mark.parametrize(
    "node",
    [plain(".inf"), plain(".nan"), plain("1e999"), plain("9" * 5000), plain("x"), quoted("1"), A_MAPPING],
    ids=lambda node: kind_of(node)[:12],
)
def test_what_is_no_finite_number_is_refused(node: Node) -> None:
    """An infinite weight would make all other weights nothing."""
    with pytest.raises(ScalarError) as refused:
        read_number(node)

    assert f"expected a finite number, not {kind_of(node)}" == str(refused.value)
