"""What the documents say of the code is so: diagrams are drawn from it, and links lead somewhere."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest
from support.model.state_diagrams import (
    application_states,
    manager_states,
    object_states,
    pod_application_states,
    recovery_states,
    task_states,
)

from licorne.proxy.base.files.plugins import LAUNCHERS, POLICIES
from licorne.proxy.si import licorne_v1_pb2

ROOT: Final = Path(__file__).parents[2]
ARCHITECTURE: Final = ROOT / "docs" / "architecture.md"
RECOVERY: Final = ROOT / "docs" / "recovery.md"
PODS: Final = ROOT / "docs" / "design" / "005-kubernetes.md"
INDEX: Final = ROOT / "docs" / "README.md"
DOCUMENTS: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCED: Final = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_SPAN: Final = re.compile(r"`[^`\n]*`")
_INLINE: Final = re.compile(r"\]\(\s*<?([^)\s>]+)")
_REFERENCE: Final = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
_ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
"""How links begin that lead out of the checkout: a scheme, a host."""
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_FILE: Final = re.compile(r"`((?:actors|docs|examples|lockcheck|model|proxy|tests)/[\w./-]*)`")
_NAME: Final = re.compile(r"`(licorne(?:\.\w+)+)`")

ENTRY_POINTS: Final = (LAUNCHERS, POLICIES)


def diagram(text: str, name: str) -> str:
    """Return the mermaid block that stands between `<!-- name -->` and `<!-- end -->`."""
    blocks = re.findall(
        rf"<!-- {re.escape(name)} -->\s*```mermaid\n(.*?)\n```\s*<!-- end -->", text, re.DOTALL
    )
    assert len(blocks) == 1, f"there are {len(blocks)} diagrams of {name}"
    return str(blocks[0])


def relative_links(text: str) -> list[str]:
    """Return the links of a document within the checkout, as it writes them; code contains no links."""
    prose = _SPAN.sub("", _FENCED.sub("", text))
    targets = [*_INLINE.findall(prose), *_REFERENCE.findall(prose)]
    return list(dict.fromkeys(target for target in targets if not _ELSEWHERE.match(target)))


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = [re.sub(r"[^\w\- ]", "", title).lower() for title in _HEADING.findall(_FENCED.sub("", text))]
    return {heading.replace(" ", "-") for heading in headings}


def missing(document: Path, links: Iterable[str]) -> list[str]:
    """Return the links of a document that lead to no file, or to no heading of the page."""
    wrong = []
    for link in links:
        name, _, anchor = link.partition("#")
        page = document.parent / name if name else document
        if not page.exists() or (anchor and anchor not in anchors(page.read_text(encoding="utf-8"))):
            wrong.append(link)
    return wrong


def exists(name: str) -> bool:
    """Return whether a dotted name is a module, something in one, or a group of messages or entry points."""
    if name in ENTRY_POINTS:
        return True
    if name.startswith("licorne.v1"):
        return name.rpartition(".")[2] in {"v1", *licorne_v1_pb2.DESCRIPTOR.services_by_name}
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize(
    ("page", "name", "draw"),
    [
        (ARCHITECTURE, "application states", application_states),
        (ARCHITECTURE, "object states", object_states),
        (ARCHITECTURE, "manager states", manager_states),
        (RECOVERY, "recovery states", recovery_states),
        (PODS, "task states", task_states),
        (PODS, "states of an application of pods", pod_application_states),
    ],
)
def test_a_page_shows_the_states_that_the_table_has(page: Path, name: str, draw: Callable[[], str]) -> None:
    """A change of a table needs a new diagram."""
    assert draw() == diagram(page.read_text(encoding="utf-8"), name)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_its_heading(document: Path) -> None:
    """A link that was right once is not forgotten when a file moves."""
    assert [] == missing(document, relative_links(document.read_text(encoding="utf-8")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_of_the_code_exists(document: Path) -> None:
    """Files and folders of the checkout, modules, and what is in them."""
    text = _FENCED.sub("", document.read_text(encoding="utf-8"))

    assert [] == [path for path in _FILE.findall(text) if not (ROOT / path).exists()]
    assert [] == [name for name in _NAME.findall(text) if not exists(name)]


def test_pages_and_examples_import_from_the_facade() -> None:
    """Whatever lies deeper may move: only the pages about the code itself name it."""
    about_code = {ARCHITECTURE, ROOT / "docs" / "change.md", *(ROOT / "docs" / "design").glob("*.md")}
    examples = [
        path for path in (ROOT / "examples").rglob("*") if path.suffix in {".md", ".py", ".yaml", ".ipynb"}
    ]
    deep = [
        str(path.relative_to(ROOT))
        for path in (*DOCUMENTS, *examples)
        if path not in about_code and "licorne.proxy" in path.read_text(encoding="utf-8")
    ]

    assert [] == deep
    inner = re.compile(r"(?:from|import) licorne\.(?!lockcheck\b|policies\b|si\b)")
    assert [] == [str(path) for path in (*DOCUMENTS, *examples) if inner.search(path.read_text("utf-8"))]
    assert [] == re.findall(r"\bproxy\b", (ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_index_lists_every_page_once() -> None:
    """A page that is not listed is not found."""
    listed = re.findall(r"^\* \[[^]]+\]\(([\w-]+\.md)\)", INDEX.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(path.name for path in INDEX.parent.glob("*.md") if path != INDEX) == sorted(listed)


# ------------------------------------------------------------------------------------- the readers


def test_a_diagram_is_read_from_between_its_marks() -> None:
    """Other diagrams of the page do not matter."""
    page = "```mermaid\nno\n```\n<!-- a -->\n```mermaid\none\n  two\n```\n<!-- end -->\n```mermaid\nno\n```\n"

    assert diagram(page, "a") == "one\n  two"
    with pytest.raises(AssertionError, match="0 diagrams of b"):
        diagram(page, "b")


def test_links_are_found_in_prose_alone() -> None:
    """Links to hosts and within code are not looked at."""
    page = (
        "[a](one.md) and [b](two.md#part), [c](https://host/x), [d](#here), `[e](three.md)`\n"
        "```\n[f](four.md)\n```\n![g](five.png 'title') [mail](mailto:x@y)\n\n[h]: six.md\n"
    )

    assert ["one.md", "two.md#part", "#here", "five.png", "six.md"] == relative_links(page)


def test_a_link_to_nothing_is_missing(tmp_path: Path) -> None:
    """Links are read from the folder of the document; a heading must be there as well."""
    (tmp_path / "there.md").write_text("# One `two`, three\n", encoding="utf-8")
    links = ["there.md", "gone.md", ".", "there.md#one-two-three", "there.md#four"]

    assert ["gone.md", "there.md#four"] == missing(tmp_path / "page.md", links)


def test_a_name_exists_if_it_is_a_module_or_in_one() -> None:
    """Names of methods too."""
    names = [
        "licorne.model",
        "licorne.model.nodes.node.Node.try_add",
        "licorne.nowhere",
        "licorne.model.nodes.node.Nod",
    ]

    assert [True, True, False, False] == [exists(name) for name in names]
