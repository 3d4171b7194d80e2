"""The page of the plugins of kube-scheduler has all default plugins and gates of the version of the tests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

PAGE: Final = (ROOT / "docs" / "kubernetes-plugins.md").read_text(encoding="utf-8")
PRINTED: Final = json.loads((ROOT / "tests/data/kubernetes/plugins.json").read_text(encoding="utf-8"))


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table below a title, without its head."""
    table = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip("`") for cell in line] for line in lines]


def test_each_plugin_is_in_the_table() -> None:
    """In the order of kube-scheduler, with what is done of it."""
    table = rows("Plugins")

    assert PRINTED["plugins"] == [name for name, _ in table]
    assert all(said for _, said in table)


def test_each_gate_is_in_the_table() -> None:
    """With whether it is on, and what is done of it."""
    table = rows("Gates")

    assert {name: {True: "on", False: "off"}[on] for name, on in PRINTED["gates"].items()} == {
        name: on for name, on, _ in table
    }
    assert all(said for _, _, said in table)


def test_the_tables_are_of_the_version_that_tests_run_against() -> None:
    """Who takes another version runs `make plugins`, and the tests above fail by what it adds."""
    modules = (ROOT / "tests/cluster/go.mod").read_text(encoding="utf-8")
    version = re.search(r"^\tk8s\.io/kubernetes (v\S+)$", modules, re.MULTILINE)

    assert version is not None
    assert (version[1], True) == (PRINTED["version"], version[1].removeprefix("v") in PAGE)
