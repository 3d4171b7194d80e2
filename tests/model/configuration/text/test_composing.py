"""From YAML text to nodes with places."""

from __future__ import annotations

from typing import Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.configuration.problems import Position, RuleFinding
from licorne.model.configuration.yaml_nodes import MappingNode, Node, ScalarNode, ScalarTag, SequenceNode
from licorne.model.configuration.yaml_text import ALIASED_NODES_MAX, DEPTH_MAX, compose

PARSERS = [yaml.BaseLoader] + ([yaml.CBaseLoader] if yaml.__with_libyaml__ else [])


def composed(text: str) -> Node | None:
    findings: list[RuleFinding] = []
    node = compose(text, findings)
    assert findings == []
    return node


def wrong_in(text: str) -> list[tuple[str, str, str]]:
    findings: list[RuleFinding] = []
    compose(text, findings)
    return [(str(finding.position), finding.position.path, finding.text) for finding in findings]


def plain(node: Node | None) -> object:
    """Return a node as plain lists and dicts of texts."""
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    if isinstance(node, MappingNode):
        return {key: plain(entry.value) for key, entry in node.entries.items()}
    return None if node is None else node.text


READ: Final = {
    "values keep their text as it is written": (
        "a: [1, 0x10, on]\nb: {c: '10:30', d: ~}\n",
        {"a": ["1", "0x10", "on"], "b": {"c": "10:30", "d": "~"}},
    ),
    "a document may have dashes before and behind it": ("--- # first\na: 1\n---\n# no more\n", {"a": "1"}),
    "an alias stands for what its anchor marks": ("a: &x [1]\nb: *x\n", {"a": ["1"], "b": ["1"]}),
    "an alias means the last anchor of its name before it": (
        "a: &x 1\nb: &x 2\nc: *x\n",
        {"a": "1", "b": "2", "c": "2"},
    ),
    "the keys of a mapping replace merged ones, and those merged earlier replace later ones": (
        "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\n",
        {"a": {"x": "1", "y": "1"}, "b": {"y": "2", "z": "2"}, "c": {"x": "3", "y": "1", "z": "2"}},
    ),
    "a quoted merge key is a key": ("'<<': 3\n", {"<<": "3"}),
    "dashes may be alone in their lines": (
        "a:\n  -\n    b: 1\n  -\n    c: 2\n",
        {"a": [{"b": "1"}, {"c": "2"}]},
    ),
    "indentation may be mixed": (
        "a:\n- b: 1\n  c:\n      - d\n      - e:\n            f\n",
        {"a": [{"b": "1", "c": ["d", {"e": "f"}]}]},
    ),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_a_text_becomes_lists_mappings_and_texts(text: str, expected: object) -> None:
    """Anchors and merges are resolved."""
    assert expected == plain(composed(text))


WRONG: Final = {
    "a key that is written twice is refused at its second place": (
        "a: 1\nb:\n  c: 1\n  c: 2\na: 3\n",
        [
            ("4:3", "b.c", "the key 'c' stands here twice, first on line 3"),
            ("5:1", "a", "the key 'a' stands here twice, first on line 1"),
        ],
    ),
    "a list is no key": ("? [a]\n: b\n", [("1:3", "", "a key must be a text")]),
    "an alias without an anchor before it is refused": (
        "a: *x\nb: &x 1\n",
        [("1:4", "a", "the anchor 'x' is not defined before")],
    ),
    "an anchor cannot contain itself": ("a: &x [*x]\n", [("1:8", "a[0]", "the anchor 'x' contains itself")]),
    "a second document is refused where it begins, whatever is in it": (
        "a: 1\n# end\n--- # other\nb: [\n",
        [("3:1", "", "a second document begins here: a file has one")],
    ),
    "a text cannot be merged": ("a: {<<: 3}\n", [("1:9", "a.<<", "only a mapping can be merged with <<")]),
    "tags that are not of the core schema are refused": (
        "a: !size 3\nb: !!set {c: }\n",
        [
            ("1:4", "a", "the tag '!size' is not known here"),
            ("2:4", "b", "the tag 'tag:yaml.org,2002:set' is not known here"),
        ],
    ),
}


@pytest.mark.parametrize(("text", "wrong"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_reported_with_its_place_and_path(
    text: str, wrong: list[tuple[str, str, str]]
) -> None:
    """The path says how to come to the place."""
    assert wrong == wrong_in(text)


def test_every_value_knows_its_place_and_path() -> None:
    """Lines and columns count from 1; the path says how to come here."""
    node = composed("a:\n  - b: x\n")

    assert isinstance(node, MappingNode)
    sequence = node.entries["a"].value
    assert isinstance(sequence, SequenceNode)
    inner = sequence.items[0]
    assert isinstance(inner, MappingNode)
    assert Position(2, 8, "a[0].b") == inner.entries["b"].value.position


@pytest.mark.parametrize("text", ["", "# nothing here\n", "\n\n"])
def test_a_text_without_a_document_has_no_node(text: str) -> None:
    """Comments and blank lines are no document."""
    assert composed(text) is None


def test_an_empty_document_is_null() -> None:
    """Three dashes alone begin a document with nothing in it."""
    node = composed("---\n")

    assert isinstance(node, ScalarNode)
    assert node.tag is ScalarTag.NULL


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("a: 'x\nb: y\n", "3:1", "not YAML: while scanning a quoted scalar"),
        ("a: *\n", "1:5", "not YAML: while scanning an alias"),  # a star without quotes
    ],
)
def test_a_broken_text_says_where_it_breaks(text: str, place: str, why: str) -> None:
    """A syntax error ends the reading."""
    ((where, path, said),) = wrong_in(text)

    assert (place, "") == (where, path)
    assert said.startswith(why)


def test_what_was_wrong_before_a_broken_place_is_reported_too() -> None:
    """A syntax error does not hide what was found before it."""
    wrong = wrong_in("a: 1\na: 2\nb: *\n")

    assert ["2", "3"] == [place.partition(":")[0] for place, _, _ in wrong]


@pytest.mark.parametrize(
    ("text", "place"), [("a: \x01", "1:4"), ("a: é\r\n b\x00", "2:3"), ("\ud800", "1:1")]
)
def test_a_character_that_yaml_does_not_know_is_named_with_its_place(text: str, place: str) -> None:
    """Control characters and lone surrogates are no text."""
    ((where, _, said),) = wrong_in(text)

    assert place == where
    assert said.endswith("is not allowed in YAML")


def test_an_explicit_tag_decides_what_a_value_is() -> None:
    """`!!str 12` is text and so is `! 12`."""
    node = composed("[!!str 12, ! 12, !!int 12, 12]")

    assert isinstance(node, SequenceNode)
    tags = [item.tag for item in node.items if isinstance(item, ScalarNode)]
    assert [ScalarTag.TEXT, ScalarTag.TEXT, ScalarTag.INTEGER, ScalarTag.INTEGER] == tags


def test_nesting_has_a_bound() -> None:
    """One level more than allowed is refused where it begins."""
    allowed = "[" * DEPTH_MAX + "]" * DEPTH_MAX

    assert wrong_in(allowed) == []
    assert [
        (f"1:{DEPTH_MAX + 1}", "", f"lists and mappings nest deeper than {DEPTH_MAX} levels")
    ] == wrong_in(f"[{allowed}]")


def test_nesting_by_aliases_has_the_same_bound() -> None:
    """An alias is as deep as what it stands for."""
    half = "[" * (DEPTH_MAX // 2) + "]" * (DEPTH_MAX // 2)
    text = f"a: &a {half}\nb: {'[' * (DEPTH_MAX // 2)} *a {']' * (DEPTH_MAX // 2)}\n"

    ((_, _, said),) = wrong_in(text)

    assert f"lists and mappings nest deeper than {DEPTH_MAX} levels" == said


def test_aliases_cannot_stand_for_any_number_of_values() -> None:
    """A few lines of aliases of aliases would be millions of values."""
    ten = ", ".join(["*{}"] * 10)
    text = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
        f"{name}: &{name} [{ten.replace('{}', before)}]\n"
        for before, name in zip("abcdef", "bcdefg", strict=True)
    )

    ((_, _, said),) = wrong_in(text)

    assert f"aliases stand for more than {ALIASED_NODES_MAX} values" == said


@settings(max_examples=150)
@given(st.text(alphabet="ab1: -[]{},'\"&*!?<\n#|>~", max_size=30))
def test_arbitrary_text_is_read_or_found_wrong(text: str) -> None:
    """No text makes the reading fail in another way, whichever parser reads it."""
    for parser in PARSERS:
        findings: list[RuleFinding] = []

        node = compose(text, findings, parser=parser)

        assert node is None or isinstance(node, ScalarNode | SequenceNode | MappingNode)
        assert all(finding.position.line >= 1 for finding in findings)


def test_both_parsers_of_pyyaml_give_the_same_nodes() -> None:
    """An installation without libyaml reads the same configuration, with the same places."""
    text = (
        "%YAML 1.1\n---\na: &x {b: [1, 'é\U0001f600', \"x\"], c: on}\n"
        "d:\n- *x\n- <<: *x\n  e: |\n    text\n# end\n"
    )

    nodes = [compose(text, [], parser=parser) for parser in PARSERS]

    assert nodes[0] == nodes[-1]
    assert nodes[0] is not None
