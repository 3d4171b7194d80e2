"""Regular expressions of placement filters."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.configuration.patterns import PatternError, compile_pattern, is_pattern


@pytest.mark.parametrize("text", ["user", "a.b", "user@x", "a-b:c/d#e", "", "a\\b", "a]"])
def test_names_are_no_expressions(text: str) -> None:
    """None of the signs of an expression occurs; the dot and the closing square bracket are none of them."""
    assert not is_pattern(text)


@pytest.mark.parametrize("sign", list("^$*+?()[{}|"))
def test_one_sign_makes_an_expression(sign: str) -> None:
    """Whether it can be read is another question."""
    assert is_pattern(f"a{sign}")


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("dev[0-9]", ["dev1", "xdev2x"], ["dev", "DEV1"]),
        ("^a.*z$", ["az", "abcz"], ["baz1", "za", "az\n"]),
        ("(?i)bob", ["BOB", "xBobx"], ["bo"]),
        ("[[:alpha:]_]+9", ["ab_9"], ["99"]),
        ("^[]a]$", ["]", "a"], ["b"]),
        ("^[^]a]$", ["b"], ["]"]),
        (r"^\Qa+b\E.$", ["a+bc"], ["aab"]),
        (r"^\x{41}\x42\z", ["AB"], ["ABC"]),
        ("^(?P<x>a)(?:b)(?<y>c)$", ["abc"], ["ab"]),
        ("^a{2,3}$", ["aa"], ["a"]),
        ("^a{,2}$", ["a{,2}"], ["aa"]),
        ("^{x}$", ["{x}"], ["x"]),
        ("^a+?b*?$", ["aab"], ["b"]),
        ("^[a&&b|~[-]$", ["&", "[", "|", "-"], ["c"]),
        ("^[--/]$", ["-", "/", "."], ["a"]),
        ("^[+--]$", ["+", ",", "-"], ["."]),
        (r"^\d\w$", ["1a"], ["٣a", "1é"]),
        ("(?m)^b$", ["a\nb\nc"], ["abc"]),
        ("username$$", ["username"], ["username$$"]),
        ("a|b", ["xbx"], ["c"]),
    ],
)
def test_expressions_mean_what_the_recorded_core_means(pattern: str, yes: list[str], no: list[str]) -> None:
    """They are searched for anywhere; classes are those of ASCII."""
    expression = compile_pattern(pattern)

    assert (yes, []) == ([t for t in yes if expression.search(t)], [t for t in no if expression.search(t)])


@pytest.mark.parametrize(
    "pattern",
    [
        "a[b",
        "(",
        "a)",
        "*",
        "a**",
        "a*+",
        "a{2}{3}",
        "a{2}+",
        "a{1001}",
        "a{0,99999}",
        "[z-a]",
        "[[:none:]]",
        "[[:^alpha:]]",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?>a)",
        "(?#a)",
        "a(?i)b",
        r"(a)\1",
        r"\pL",
        r"\Z",
        "\\",
        r"[\Z]",
        r"\x{110000}",
        "(" * 5000,
        "a" * 20_000,
    ],
    ids=lambda pattern: pattern[:12],
)
def test_what_is_no_expression_there_is_refused_here(pattern: str) -> None:
    """Also what only Python understands."""
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@settings(max_examples=300)
@given(st.text(alphabet="ab-[]^$*+?(){}|\\:.<>=!&~#PQEzxi0129,", max_size=12))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    """No warning and no other error comes out of the compiler."""
    with contextlib.suppress(PatternError):
        compile_pattern(text).search("ab-[]")
