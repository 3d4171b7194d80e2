"""Which build of the package runs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import ModuleSpec

import pytest

from licorne.model import build_kind


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    build_kind.is_compiled.cache_clear()
    yield
    build_kind.is_compiled.cache_clear()


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
    monkeypatch.setattr(build_kind, "find_spec", lambda asked: ModuleSpec(asked, None, origin=origin))

    assert name == build_kind.build_name()
