"""From YAML text to nodes with places."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.configuration.positions import Position
from licorne.model.configuration.problems import RuleFinding
from licorne.model.configuration.text.composing import ALIASED_NODES_MAX, DEPTH_MAX, compose
from licorne.model.configuration.text.nodes import MappingNode, Node, ScalarNode, ScalarTag, SequenceNode

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


def test_a_text_becomes_lists_mappings_and_texts() -> None:
    """Values keep their text as it is written."""
    node = composed("a: [1, 0x10, on]\nb: {c: '10:30', d: ~}\n")

    assert {"a": ["1", "0x10", "on"], "b": {"c": "10:30", "d": "~"}} == plain(node)


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


def test_only_the_first_document_is_read() -> None:
    """What follows is not even looked at for its syntax."""
    assert {"a": "1"} == plain(composed("a: 1\n---\nb: [\n"))


def test_a_key_that_stands_twice_is_refused_where_it_stands_again() -> None:
    """Each second occurrence is named with the line of the first."""
    text = "a: 1\nb:\n  c: 1\n  c: 2\na: 3\n"

    assert [
        ("4:3", "b.c", "the key 'c' stands here twice, first on line 3"),
        ("5:1", "a", "the key 'a' stands here twice, first on line 1"),
    ] == wrong_in(text)


def test_a_key_that_is_no_text_is_refused() -> None:
    """A list cannot be a key."""
    assert [("1:3", "", "a key must be a text")] == wrong_in("? [a]\n: b\n")


def test_a_broken_text_says_where_it_breaks() -> None:
    """A syntax error ends the reading."""
    ((place, path, said),) = wrong_in("a: 'x\nb: y\n")

    assert ("3:1", "") == (place, path)
    assert said.startswith("not YAML: while scanning a quoted scalar")


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


def test_an_alias_stands_for_what_its_anchor_marks() -> None:
    """The same value is there twice."""
    assert {"a": ["1"], "b": ["1"]} == plain(composed("a: &x [1]\nb: *x\n"))


def test_an_anchor_may_be_set_again() -> None:
    """An alias means the last anchor of its name before it."""
    assert {"a": "1", "b": "2", "c": "2"} == plain(composed("a: &x 1\nb: &x 2\nc: *x\n"))


def test_an_alias_without_an_anchor_is_refused() -> None:
    """An alias looks backwards only."""
    assert [("1:4", "a", "the anchor 'x' is not defined before")] == wrong_in("a: *x\nb: &x 1\n")


def test_an_anchor_cannot_contain_itself() -> None:
    """A list in itself has no end."""
    assert [("1:8", "a[0]", "the anchor 'x' contains itself")] == wrong_in("a: &x [*x]\n")


def test_merged_keys_do_not_replace_those_that_are_written() -> None:
    """The keys of the mapping itself go first, then those merged earlier."""
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\n"

    node = composed(text)

    assert isinstance(node, MappingNode)
    assert {"x": "3", "y": "1", "z": "2"} == plain(node.entries["c"].value)


def test_only_mappings_can_be_merged() -> None:
    """A text has no keys."""
    assert [("1:9", "a.<<", "only a mapping can be merged with <<")] == wrong_in("a: {<<: 3}\n")


def test_a_quoted_merge_key_is_a_key() -> None:
    """In quotes `<<` is a text like any other."""
    assert {"<<": "3"} == plain(composed("'<<': 3\n"))


def test_unknown_tags_are_refused() -> None:
    """Only the tags of the core schema are known."""
    assert [
        ("1:4", "a", "the tag '!size' is not known here"),
        ("2:4", "b", "the tag 'tag:yaml.org,2002:set' is not known here"),
    ] == wrong_in("a: !size 3\nb: !!set {c: }\n")


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


@settings(deadline=None, max_examples=150)
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
