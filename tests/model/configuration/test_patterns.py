"""Regular expressions of placement filters."""

from __future__ import annotations

import contextlib
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.configuration.names import PatternError, compile_pattern, is_pattern


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
        ("^[[:^alpha:]]$", ["1"], ["a"]),
        ("^a(?i)b$", ["aB"], ["AB"]),
        (r"^\pL+$", ["né"], ["n1"]),
        ("^.$", ["é", "\N{GRINNING FACE}"], ["", "ab"]),
    ],
)
def test_expressions_mean_what_the_recorded_core_means(pattern: str, yes: list[str], no: list[str]) -> None:
    """They are searched for anywhere; classes are those of ASCII."""
    expression = compile_pattern(pattern)

    assert (yes, []) == (
        [text for text in yes if expression.search(text)],
        [text for text in no if expression.search(text)],
    )


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
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?>a)",
        "(?#a)",
        r"(a)\1",
        r"\Z",
        "\\",
        r"[\Z]",
        r"\x{110000}",
        "(" * 5000,
        "a" * 20_000,
        "(.?){1000}x",
        r"(\pL?){100}",
        "((a{100}){100}){100}",
        "\ud800",
    ],
    ids=lambda pattern: pattern[:12],
)
def test_what_is_no_expression_there_is_refused_here(pattern: str) -> None:
    """Also what only Python understands, and what would take much memory, or time for each character."""
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize("text", [r"^([a-z0-9]+-?)+$", "(a+)+$", "^(a|a)*$", "^(a?){30}a{30}$", "(x+x+)+y"])
def test_time_is_linear_in_the_text(text: str) -> None:
    """A backtracking matcher would not be back within the life of the universe; RE2 takes milliseconds."""
    expression = compile_pattern(text)

    assert not any(expression.search(letter * 10_000 + "!") for letter in "ax")


def test_a_text_that_cannot_be_encoded_is_matched_by_what_is_left_of_it() -> None:
    """Ids may not have lone surrogates, and whatever else comes here does not raise an error."""
    assert compile_pattern("b").search("\ud800b")


def test_expressions_of_one_text_are_equal() -> None:
    """Settings that are read again are compared with those in use."""
    assert compile_pattern("a+") == compile_pattern("a+") != compile_pattern("a*")


def test_without_the_matcher_an_expression_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are platforms for which it has no wheel; configurations without expressions do without it."""
    monkeypatch.setitem(sys.modules, "re2", None)

    with pytest.raises(PatternError, match=r"'a\+' is a regular expression.* pip install google-re2"):
        compile_pattern("a+")


@settings(max_examples=300)
@given(st.text(alphabet="ab-[]^$*+?(){}|\\:.<>=!&~#PQEzxi0129,", max_size=12))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    """No warning and no other error comes out of the compiler."""
    with contextlib.suppress(PatternError):
        compile_pattern(text).search("ab-[]")
