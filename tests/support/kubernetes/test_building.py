"""Where the servers of Kubernetes are kept: by all that they are made of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.kubernetes import building


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a copy of the module built into a cache of the test; return the copy."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    monkeypatch.setenv("LICORNE_CLUSTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "MODULE", tmp_path / "module")
    shutil.copytree(Path(__file__).parents[2] / "cluster", tmp_path / "module")
    return tmp_path / "module"


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_a_change_of_what_the_servers_are_made_of_is_another_build(module: Path, name: str) -> None:
    """An old build is never taken for a new one."""
    before = building.build_folder()
    (module / name).write_text((module / name).read_text() + "\n// changed\n")

    assert before != building.build_folder()


def test_servers_that_are_not_built_are_an_error_that_says_what_builds_them() -> None:
    """A test that is skipped shows it."""
    with pytest.raises(building.UnbuiltError, match="`make cluster` builds them"):
        building.built_servers()


def test_a_build_that_is_there_is_not_built_again() -> None:
    """So `make test-kubernetes` can ask each time."""
    folder = building.build_folder()
    folder.mkdir(parents=True)
    (folder / "kube-apiserver").write_text("what was built")

    assert (folder, "what was built") == (building.build(), (folder / "kube-apiserver").read_text())


def test_a_build_that_fails_leaves_nothing_that_looks_complete(module: Path) -> None:
    """The folder gets its name last."""
    (module / "main.go").write_text("package main\n\nfunc main() { no }\n")

    with pytest.raises(subprocess.CalledProcessError):
        building.build()

    assert ["lock"] == [path.name for path in building.cache_folder().iterdir()]
