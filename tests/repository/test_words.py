"""The pages and the code are written in the words of the field: those that left do not come back."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from support.sources import ROOMS, ROOT, Nodes, modules_of, nodes_of, text_of

PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LEFT: Final = {
    r"charge[sd]? back": "release",
    r"c[ao]mes? to nothing": "has no result, without result",
    r"circles?": "cycle, deadlock",
    r"closed (strong )?paths?": "cycle",
    r"fruitless|in vain": "failed, without result",
    r"furnish\w*": "apply_template",
    r"let(s|ting)? go": "release, drop, stop",
    r"nobody|somebody|whoever": "the subject itself: a thread, an ask, a queue",
    r"owes?|spoken for": "entitled, committed",
    r"(?<!there )(is|are|was|were) none of": "is not one of",
    r"(is|are|was|were) wanted": "requested, expected, asked for, required",
    r"no word on": "says nothing of",
    r"(asks?|one|application) that (goes|go) first": "the first ask",
    r"seats?": "entry",
    r"settle[sd]?": "decide",
    r"(stands?|stood) in (the|its|their|your) way": "blocks",
    r"surroundings": "host",
    r"told": "message, reported",
    r"wove|woven|weav(e|es|ing)": "instrument",
}
"""What a page, a docstring or a comment does not say -> what it says instead."""
LEFT_NAMES: Final = {
    "afterwards": "deferred",
    "asking_again|asks_again": "wait_in_loop",
    "beside_others|shared_placing": "place_concurrently",
    "books?": "record, accounts",
    "charge_back": "release",
    "circles?": "cycle, deadlock",
    "closed_path": "cycle",
    "crew": "participants",
    "doom(ed)?": "victim",
    "fruitless|in_vain": "failed, without_result",
    "furnish(ed)?": "apply_template",
    "gathering": "merging",
    "grasps?|grips?": "acquisition, held lock",
    "judgements?|judging": "decision, predicate cache",
    "lawful|unlawful": "keeps_guarantees",
    "lets?_go": "release, drop, stop",
    "letters?": "envelope, message",
    "outlook": "prefetched",
    "ow(e|ed|es)": "entitled, deferred error",
    "seats?|unseat": "entry, remove_entry",
    "sketch(es)?": "preview",
    "spoken_for": "committed",
    "surround|surroundings": "host",
    "told": "message, reported",
    "wove|woven|weave": "instrument",
    "wish(es)?": "pending acquisition",
    "world_moved": "invalidated",
}
"""What no module, class, function, parameter or variable is called -> what it is called instead. A word is a
part of a name between underscores, or between the capitals of a class."""
KEPT_NAMES: Final = {
    "DeadLetter": "the field's own term",
    "DeadLetterHook": "likewise",
    "on_dead_letter": "likewise",
    "_on_dead_letter": "likewise",
    "report_dead_letter": "likewise",
    "owed": "as docs/preemption.md defines it",
    "owedAfter": "likewise",
    "owedBefore": "likewise",
}
"""Names that have such a word nevertheless -> why."""

_LEFT: Final = re.compile(rf"\b({'|'.join(LEFT)})\b", re.IGNORECASE)
_LEFT_NAMES: Final = re.compile(rf"(^|_)({'|'.join(LEFT_NAMES)})(?=_|$)")
_CODE: Final = re.compile(r"^(```|~~~).*?^\1|^ {4}[^ *|-].*?$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def left_words(text: str, code: re.Pattern[str] = _CODE) -> list[str]:
    """Return the words in a text that left, as they occur in its prose; code is passed over."""
    return [match[0] for match in _LEFT.finditer(code.sub("", text))]


@cache
def left_parts(name: str) -> list[str]:
    """Return the parts of a name that left."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return [match[2] for match in _LEFT_NAMES.finditer(parts)]


def names_of(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Yield all names that a module gives: of classes, functions, parameters, attributes and variables."""
    for node in nodes.of(
        *(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef),
        *(ast.arg, ast.Name, ast.Attribute, ast.alias),
    ):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def docstrings_of(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Yield all docstrings, also those of attributes, each with its line."""
    for node in nodes.of(ast.Expr):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, " ".join(text.split())


def texts_of(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Yield the texts of errors and of options: what is raised, asserted or `help`, each with its line."""
    for node in nodes.of(ast.Raise, ast.Assert, ast.keyword):
        match node:
            case ast.Raise(exc=said) | ast.Assert(msg=said) | ast.keyword(arg="help", value=said) if said:
                for part in ast.walk(said):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.lineno, " ".join(part.value.split())


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield all comments, each with its line.

    A source is read token by token only if a word that left stands behind some `#`: that takes longer than to
    parse it.
    """
    if not any(_LEFT.search(line.partition("#")[2]) for line in source.splitlines() if "#" in line):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def places(path: Path, found: Iterable[tuple[int, object]]) -> list[str]:
    """Return what was found in a module, each with its place."""
    return [f"{path.relative_to(ROOT)}:{line} {what}" for line, what in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    """A reader of this field understands it without learning words of ours."""
    assert [] == left_words(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_errors_and_comments_use_the_words_of_the_field(room: str) -> None:
    """A reader of the code is a reader of this field as well, and so is who reads an error or `--help`."""
    found = []
    for path in modules_of(room):
        nodes = nodes_of(path)
        texts = [*docstrings_of(nodes), *texts_of(nodes), *comments_of(text_of(path))]
        words = [(line, word) for line, text in texts for word in left_words(text, re.compile("`[^`]*`"))]
        found += places(path, words)

    assert [] == found


@pytest.mark.parametrize("room", ROOMS)
def test_names_use_the_words_of_the_field(room: str) -> None:
    """Of modules, classes, functions, parameters, attributes and variables."""
    found = []
    for path in modules_of(room):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names = [*((1, part) for part in parts), *names_of(nodes_of(path))]
        found += places(path, [(line, name) for line, name in names if left_parts(name)])

    assert [] == [place for place in found if place.split()[1] not in KEPT_NAMES]


@pytest.mark.parametrize("room", [*ROOMS, "tests"])
def test_what_returns_a_truth_value_says_so_as_others_do(room: str) -> None:
    """Its docstring begins with what it returns (PEP 257)."""
    assert [] == [path for path in modules_of(room) if re.search(r'"""\s*Tell whether', text_of(path))]


def test_words_are_found_in_prose_alone() -> None:
    """Names of code, and what programs print, change with the code."""
    page = "It lets go of\n\n    let go\n\n`seat`\n```text\ntold\n```\n* a list\n    told\nA Seat, seated\n"

    assert ["lets go", "Seat"] == left_words(page)


def test_words_are_found_in_all_names_that_a_module_gives() -> None:
    """Whole words alone: another word may begin or end with the same letters."""
    source = '''
import seat as told
class SeatOrder:
    """It is
    told."""
    def unseat(self, seats):  # nobody
        self._in_vain = lawful = self.seating = 1
        raise Told(f"{seats} are wanted" + str(Option(help="told")))
'''
    nodes = Nodes(ast.parse(source))

    found = [name for _, name in names_of(nodes) if left_parts(name)]
    assert {"SeatOrder", "told", "unseat", "lawful", "seats", "_in_vain"} == set(found)
    assert [(4, "It is told.")] == list(docstrings_of(nodes))
    assert [(6, "# nobody")] == list(comments_of(source))
    assert {(8, "are wanted"), (8, "told")} == {(line, text) for line, text in texts_of(nodes)}


def test_every_name_that_is_kept_is_there() -> None:
    """An exception without a name would let the word come back."""
    names = {name for room in ROOMS for path in modules_of(room) for _, name in names_of(nodes_of(path))}

    assert set() == set(KEPT_NAMES) - names
