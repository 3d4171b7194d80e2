"""The notebooks are stored without what their cells show; `make notebooks` executes them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
NOTEBOOKS: Final = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_what_it_shows(path: Path) -> None:
    """What cells show is old with the next change, and unreadable in a review."""
    shown = [(cell["outputs"], cell["execution_count"]) for cell in _cells(path) if "outputs" in cell]

    assert [([], None)] * len(shown) == shown
    assert len(shown) > 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_imports_the_facade_alone(path: Path) -> None:
    """And all that it reads beside it is there."""
    code = "\n".join("".join(cell["source"]) for cell in _cells(path) if cell["cell_type"] == "code")
    modules = [
        name
        for each in ast.walk(ast.parse(code))
        if isinstance(each, ast.Import | ast.ImportFrom)
        for name in (
            [each.module or ""] if isinstance(each, ast.ImportFrom) else [one.name for one in each.names]
        )
    ]

    assert {"licorne"} == {name for name in modules if name.startswith("licorne")}
    read = [each.value for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Constant)]
    files = [text for text in read if isinstance(text, str) and text.endswith((".csv", ".yaml"))]
    assert all((path.parent / name).exists() for name in files)


def test_the_page_lists_every_notebook() -> None:
    """A notebook that is not listed is not found."""
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")

    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name})" not in page] == []
    assert len(NOTEBOOKS) == 3
