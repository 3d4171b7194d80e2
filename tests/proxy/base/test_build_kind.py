"""Which build of the package runs, and of which modules the compiled one is made."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from runpy import run_path

import pytest
from support.sources import ROOT

from licorne.proxy.base import process


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    process.is_compiled.cache_clear()
    yield
    process.is_compiled.cache_clear()


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("licorne/model/resources/resource.py", "pure Python"),
        ("licorne/model/resources/resource.cpython-311-x86_64-linux-gnu.so", "compiled"),
        ("licorne/model/resources/resource.cp311-win_amd64.pyd", "compiled"),
        (None, "pure Python"),
    ],
)
def test_the_file_of_a_hot_module_tells_the_build(
    origin: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of machine code is no file of Python."""
    monkeypatch.setattr(process, "find_spec", lambda asked: ModuleSpec(asked, None, origin=origin))

    assert name == process.build_name()


def test_the_compiled_build_finds_its_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A room that has moved would be found out in a build of some minutes alone."""
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    monkeypatch.chdir(ROOT)
    build = run_path("setup.py")
    modules = build["copied_modules"](tmp_path / "licorne")

    assert [] == [name for name in modules if not (tmp_path / name).exists()]
    assert {f"licorne/{name}" for name in build["HOT"]} < set(modules)
    assert [] == [name for name in build["PURE"] if not (ROOT / name).exists()]
