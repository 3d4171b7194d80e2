"""Quantities of Kubernetes, from their texts to whole numbers of the scheduler."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.resources.quantities import QuantityError
from licorne.proxy.kubernetes.quantities import amounts, milli_value, quantity_nano, rounded_up

INT64_MAX: Final = 2**63 - 1
UNITS: Final = {
    "": Fraction(1),
    **{suffix: Fraction(1000) ** -(3 - power) for power, suffix in enumerate(("n", "u", "m"))},
    **{suffix: Fraction(1000) ** (power + 1) for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"))},
    **{f"{letter}i": Fraction(1024) ** (power + 1) for power, letter in enumerate("KMGTPE")},
}


class Row(NamedTuple):
    text: str | float
    whole: int
    milli: int


CASES: Final = {
    "a whole number is itself": Row("2", 2, 2000),
    "thousandths of a core are counted": Row("500m", 1, 500),
    "millionths are rounded up": Row("1500u", 1, 2),
    "billionths are rounded up": Row("1n", 1, 1),
    "what is finer than a billionth is rounded up": Row("0.0000000001", 1, 1),
    "a fraction is exact": Row("0.1", 1, 100),
    "a fraction may lack its digits before the point": Row(".5", 1, 500),
    "a fraction may lack its digits behind the point": Row("5.", 5, 5000),
    "decimal suffixes are powers of a thousand": Row("1k", 1000, 10**6),
    "binary suffixes are powers of 1024": Row("1.5Gi", 3 << 29, (3 << 29) * 1000),
    "a number of bytes that no float holds is exact": Row("9007199254740993", 2**53 + 1, (2**53 + 1) * 1000),
    "E is a suffix": Row("1E", 10**18, INT64_MAX),
    "E with a number is an exponent": Row("1E3", 1000, 10**6),
    "an exponent may be negative": Row("1500e-3", 2, 1500),
    "an exponent may have a sign": Row("2e+2", 200, 200_000),
    "a sign is read": Row("+3", 3, 3000),
    "a negative quantity is rounded away from zero": Row("-1.5", -2, -1500),
    "what is over 64 bits saturates": Row("8Ei", INT64_MAX, INT64_MAX),
    "what is over 64 bits in thousandths saturates there": Row("1Ei", 1 << 60, INT64_MAX),
    "an absurd exponent saturates": Row("1e999999999999", INT64_MAX, INT64_MAX),
    "an absurd negative exponent is the least that there is": Row("1e-999999999999", 1, 1),
    "zero is zero whatever its exponent": Row("0e999999", 0, 0),
    "JSON may have a number": Row(3, 3, 3000),
    "JSON may have a fraction": Row(0.25, 1, 250),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_quantity_is_read_exactly(case: Row) -> None:
    """As whole pieces and as thousandths, both rounded up."""
    nano = quantity_nano(case.text)

    assert (case.whole, case.milli) == (rounded_up(nano), milli_value(nano))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1 Gi",
        "Gi",
        ".",
        "+",
        "1K",
        "1ki",
        "1GB",
        "1.2.3",
        "0x10",
        "1e",
        "1e1.5",
        "--1",
        "\u0661",
    ],
)
def test_a_text_that_is_no_quantity_is_named(text: str) -> None:
    """The error says which text it is."""
    with pytest.raises(QuantityError, match=re.escape(f"{text!r} is not a quantity")):
        quantity_nano(text)


def test_a_text_without_end_is_not_read() -> None:
    """A million digits cost no time, and do not fill a log."""
    with pytest.raises(QuantityError) as caught:
        quantity_nano("1" * 1_000_000)

    assert len(str(caught.value)) < 400


@given(
    st.sampled_from(["", "-", "+"]),
    st.from_regex(r"[0-9]{1,25}|[0-9]{0,20}\.[0-9]{1,20}|[0-9]{1,20}\.", fullmatch=True),
    st.sampled_from(sorted(UNITS)) | st.integers(-40, 40).map(lambda power: f"e{power}"),
)
def test_a_quantity_is_its_number_times_its_unit(sign: str, number: str, suffix: str) -> None:
    """By exact fractions, rounded away from zero, within 64 bits."""
    unit = UNITS[suffix] if suffix in UNITS else Fraction(10) ** int(suffix[1:])
    whole, _, fraction = number.partition(".")
    size = (Fraction(int(whole or "0")) + Fraction(int(fraction or "0"), 10 ** len(fraction))) * unit
    bound = INT64_MAX + (sign == "-")
    expected = [min(math.ceil(size * factor), bound) * (-1 if sign == "-" else 1) for factor in (1, 1000)]

    nano = quantity_nano(f"{sign}{number}{suffix}")

    assert expected == [rounded_up(nano), milli_value(nano)]


def test_cores_are_counted_in_thousandths_and_named_as_the_scheduler_names_them() -> None:
    """Every other resource keeps its name and is counted in bytes or pieces."""
    nanos = {
        "cpu": quantity_nano("1.5"),
        "memory": quantity_nano("1Ki"),
        "nvidia.com/gpu": quantity_nano("2"),
    }

    assert {"vcore": 1500, "memory": 1024, "nvidia.com/gpu": 2} == amounts(nanos)


def test_two_names_of_one_resource_are_refused() -> None:
    """Neither of them may win silently."""
    with pytest.raises(QuantityError, match="cpu and vcore mean one resource"):
        amounts({"cpu": 1, "vcore": 1})
