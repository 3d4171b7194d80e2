"""The site of these pages, and of the docstrings of public names: `make site`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_LINK: Final = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_ENTRY: Final = re.compile(r"\[([^]]+)\]\(([^)#]+)\.md\)")

project = "Licorne"
author = "The maintainers of Licorne"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
root_doc = "README"
exclude_patterns = ["pictures/README.md"]
html_theme = "furo"
html_title = "Licorne"
html_theme_options = {
    "source_repository": _PROJECT["urls"]["Source"],
    "source_branch": "main",
    "source_directory": "docs/",
}
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"


def setup(app: Any) -> None:
    """Make pages of the checkout pages of a site."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _processed, priority=400)  # before napoleon


def _read(_app: Any, name: str, content: list[str]) -> None:
    """Let links that leave docs/ lead to the repository; add the navigation, by sections of the index."""
    folder = HERE.joinpath(name).parent

    def linked(match: re.Match[str]) -> str:
        target = (folder / match[1]).resolve()
        if target.is_relative_to(HERE) and target.is_file() and target.suffix in {".md", ".png", ".svg"}:
            return match[0]
        return f"]({_PROJECT['urls']['Source']}/blob/main/{target.relative_to(ROOT)}{match[2] or ''})"

    text = _LINK.sub(linked, content[0])
    if name == root_doc:
        for section in [*content[0].split("\n## ")[1:], "Reference\n[API](api.md)"]:
            title, _, body = section.partition("\n")
            pages = "\n".join(f"{shown} <{page}>" for shown, page in _ENTRY.findall(body))
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"
    content[0] = text.replace("```jsonl\n", "```json\n")


def _processed(*event: Any) -> None:
    """Read backticks as code, as Markdown does; napoleon reads a type before the colon of an attribute."""
    kind, lines = event[1], event[-1]
    text = re.sub(r"(?<![`:])`([^`]+)`(?!`)", _as_code, "\n".join(lines))
    lines[:] = (text.replace(": ", " -- ") if kind in {"attribute", "property", "data"} else text).split("\n")


def _as_code(match: re.Match[str]) -> str:
    return f"``{' '.join(match[1].split())}``"
