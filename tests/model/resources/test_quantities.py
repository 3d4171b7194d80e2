"""Quantities are shown within 64 bits, and their texts are read as the configuration promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.errors import LicorneError, shortened
from licorne.model.resources.quantities import (
    INT64_MAX,
    INT64_MIN,
    QuantityError,
    parse_quantity,
    parse_vcore,
    saturate,
)

quantities = st.integers(INT64_MIN, INT64_MAX)


@pytest.mark.parametrize(
    ("exact", "expected"),
    [
        (0, 0),
        (-3, -3),
        (INT64_MAX, INT64_MAX),
        (INT64_MIN, INT64_MIN),
        (INT64_MAX + 1, INT64_MAX),
        (INT64_MIN - 1, INT64_MIN),
        (10**40, INT64_MAX),
        (-(10**40), INT64_MIN),
    ],
)
def test_an_exact_integer_is_shown_within_64_bits(exact: int, expected: int) -> None:
    """What 64 bits cannot hold is shown as the border on its side."""
    assert expected == saturate(exact)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("10", 10),
        ("007", 7),
        ("0" * 5000 + "7", 7),
        (" 10 ", 10),
        ("10 k", 10_000),
        ("10\t M", 10_000_000),
        ("1k", 10**3),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("9223372036854775807", INT64_MAX),
    ],
)
def test_a_plain_quantity_is_a_number_with_a_multiplier(text: str, expected: int) -> None:
    """A plain text is an unsigned whole number and, perhaps after white space, a multiplier."""
    assert expected == parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10", 10_000), ("500m", 500), ("500 m", 500), ("2k", 2_000_000), ("1Ki", 1_024_000), ("0m", 0)],
)
def test_a_vcore_quantity_is_counted_in_milli_cores(text: str, expected: int) -> None:
    """Processor time without the milli suffix is multiplied by a further thousand."""
    assert expected == parse_vcore(text)


@pytest.mark.parametrize(
    "text", ["", " ", "-1", "+1", "1.5", "1e3", "ten", "Ki", "1KiB", "1 0", "1kk", "0x10", "\u0661", "1\n\n2"]
)
def test_a_text_that_is_no_whole_number_is_an_invalid_quantity(text: str) -> None:
    """Signs, decimals, exponents, words and other scripts' digits are refused by both parsers, by name."""
    for parse in (parse_quantity, parse_vcore):
        with pytest.raises(QuantityError) as caught:
            parse(text)

        assert f"invalid quantity: {text!r}" == str(caught.value)


@pytest.mark.parametrize("text", ["1K", "1ki", "1mi", "1 K"])
def test_an_unknown_suffix_is_named_as_such(text: str) -> None:
    """A suffix of the right shape that has no multiplier is an invalid suffix for both parsers."""
    for parse in (parse_quantity, parse_vcore):
        with pytest.raises(QuantityError) as caught:
            parse(text)

        assert f"invalid suffix: {text!r}" == str(caught.value)


def test_the_milli_suffix_belongs_to_vcores_only() -> None:
    """A plain quantity has no thousandths."""
    with pytest.raises(QuantityError, match="invalid suffix: '500m'"):
        parse_quantity("500m")


@pytest.mark.parametrize("text", ["9223372036854775808", "8Ei", "10E", "9" * 10_000])
def test_a_plain_quantity_beyond_64_bits_overflows(text: str) -> None:
    """A number or product outside the range is refused rather than saturated."""
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)

    assert shortened(f"invalid quantity: overflow: {text!r}") == str(caught.value)


def test_a_vcore_quantity_overflows_after_the_whole_multiplication() -> None:
    """The further thousand counts for the overflow; milli-cores do not have it."""
    assert 9_223_372_036_854_775_000 == parse_vcore("9223372036854775")
    assert INT64_MAX == parse_vcore(f"{INT64_MAX}m")
    for text in ("9223372036854776", "1Ei", f"{INT64_MAX + 1}m"):
        with pytest.raises(QuantityError, match="invalid quantity: overflow"):
            parse_vcore(text)


def test_a_quantity_error_is_an_error_of_ours() -> None:
    """One base class catches every misuse of the scheduler."""
    assert issubclass(QuantityError, LicorneError)


@given(st.text(alphabet="0159 mkKMGTPEi.-\n\u0661", max_size=22))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    """A parser answers with a quantity that is not negative or with its own error, nothing else."""
    for parse in (parse_quantity, parse_vcore):
        try:
            quantity = parse(text)
        except QuantityError:
            continue
        assert 0 <= quantity <= INT64_MAX
