"""Tests for a change: which are found by imports, on a small checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.nearest_tests import imports_of_all, nearest_tests

FILES: Final = {
    "__init__.py": "if TYPE_CHECKING:\n    from .model.high import High\n    from .proxy import other\n",
    "model/__init__.py": "",
    "model/low.py": "",
    "model/high.py": "from .low import Low\nif TYPE_CHECKING:\n    from .types import Kind\n",
    "model/types.py": "",
    "proxy/__init__.py": "",
    "proxy/other.py": "def late():\n    from ..model import types\n",
    "tests/support/helper.py": "import licorne.model.low\n",
    "tests/model/conftest.py": "import support.helper",
    "tests/model/test_high.py": "from licorne import High\n",
    "tests/model/test_low.py": "from licorne.model import low\n",
    "tests/proxy/test_other.py": "from licorne import other\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Write the small checkout."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ("model/low.py", ["model/test_low.py", "model/test_high.py"]),
        ("model/high.py", ["model/test_high.py"]),
        ("model/types.py", ["proxy/test_other.py"]),
        ("proxy/other.py", ["proxy/test_other.py"]),
        ("tests/support/helper.py", ["model/test_high.py", "model/test_low.py"]),
        ("tests/model/test_low.py", ["model/test_low.py"]),
        ("docs/page.md", []),
    ],
)
def test_the_tests_of_a_change_are_found_by_imports(checkout: Path, changed: str, found: list[str]) -> None:
    """Through packages that pass names on and through `conftest.py`; an import for types alone is not one."""
    tests = nearest_tests([Path(changed)], imports_of_all(checkout))

    assert [f"tests/{name}" for name in found] == [str(test) for test in tests]
