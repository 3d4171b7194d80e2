"""What the documents say of the code is so: diagrams are drawn from it, and links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from licorne.model.diagrams import application_states, object_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT: Final = Path(__file__).parents[2]
ARCHITECTURE: Final = ROOT / "docs" / "architecture.md"
DOCUMENTS: Final = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

_FENCED: Final = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_SPAN: Final = re.compile(r"`[^`\n]*`")
_INLINE: Final = re.compile(r"\]\(\s*<?([^)\s>]+)")
_REFERENCE: Final = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
_ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
"""How links begin that do not lead to a file: a scheme, a host, a heading of the same page."""


def diagram(text: str, name: str) -> str:
    """Return the mermaid block that stands between `<!-- name -->` and `<!-- end -->`."""
    blocks = re.findall(
        rf"<!-- {re.escape(name)} -->\s*```mermaid\n(.*?)\n```\s*<!-- end -->", text, re.DOTALL
    )
    assert len(blocks) == 1, f"there are {len(blocks)} diagrams of {name}"
    return str(blocks[0])


def relative_links(text: str) -> list[str]:
    """Return the files that a document links to, as it writes them; what stands in code is no link."""
    prose = _SPAN.sub("", _FENCED.sub("", text))
    targets = [*_INLINE.findall(prose), *_REFERENCE.findall(prose)]
    files = [target.partition("#")[0] for target in targets if not _ELSEWHERE.match(target)]
    return list(dict.fromkeys(files))


def missing(document: Path, links: Iterable[str]) -> list[str]:
    """Return the links of a document that lead nowhere."""
    return [link for link in links if not (document.parent / link).exists()]


@pytest.mark.parametrize(
    ("name", "draw"),
    [("application states", application_states), ("object states", object_states)],
)
def test_the_architecture_shows_the_states_that_the_table_has(name: str, draw: Callable[[], str]) -> None:
    """Whoever changes a table draws its diagram again."""
    assert draw() == diagram(ARCHITECTURE.read_text(encoding="utf-8"), name)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    """A link that was right once is not forgotten when a file moves."""
    assert [] == missing(document, relative_links(document.read_text(encoding="utf-8")))


# ------------------------------------------------------------------------------------- the readers


def test_a_diagram_is_read_from_between_its_marks() -> None:
    """Other diagrams of the page do not matter."""
    page = "```mermaid\nno\n```\n<!-- a -->\n```mermaid\none\n  two\n```\n<!-- end -->\n```mermaid\nno\n```\n"

    assert diagram(page, "a") == "one\n  two"
    with pytest.raises(AssertionError, match="0 diagrams of b"):
        diagram(page, "b")


def test_links_are_found_in_prose_alone() -> None:
    """Links to hosts, to headings and within code are not looked at."""
    page = (
        "[a](one.md) and [b](two.md#part), [c](https://host/x), [d](#here), `[e](three.md)`\n"
        "```\n[f](four.md)\n```\n![g](five.png 'title') [mail](mailto:x@y)\n\n[h]: six.md\n"
    )

    assert ["one.md", "two.md", "five.png", "six.md"] == relative_links(page)


def test_a_link_to_nothing_is_missing(tmp_path: Path) -> None:
    """Links are read from the folder of the document."""
    (tmp_path / "there.md").touch()

    assert ["gone.md"] == missing(tmp_path / "page.md", ["there.md", "gone.md", "."])
