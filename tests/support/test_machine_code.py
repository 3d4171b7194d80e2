"""What tests cannot replace on a build with compiled modules."""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from types import ModuleType

import pytest
from support.machine_code import skipping_machine_code


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give a module of the package that says it is compiled."""
    module = ModuleType("licorne.model.made_up")
    module.__loader__ = ExtensionFileLoader(module.__name__, "made_up.so")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def changed(target: object) -> list[str]:
    """Return the names that are set when `name` of a target is to be replaced."""
    names: list[str] = []

    def note(_: pytest.MonkeyPatch, __: object, name: str, ___: object) -> None:
        names.append(name)

    with pytest.MonkeyPatch.context() as patch:
        skipping_machine_code(note)(patch, target, "name", 1)
    return names


def test_a_test_is_skipped_that_replaces_what_is_compiled(module: ModuleType) -> None:
    """A function of the module, or a method of its classes."""
    for target in (module, type("Made", (), {"__module__": module.__name__})):
        with pytest.raises(pytest.skip.Exception, match=r"^licorne\.model\.made_up is compiled: "):
            changed(target)


def test_everything_else_is_replaced(module: ModuleType) -> None:
    """Python's modules, machine code or not, an object, and modules of the package that are Python."""
    module.__loader__ = SourceFileLoader(module.__name__, "made_up.py")

    assert [["name"]] * 4 == [changed(target) for target in (sys, module, ModuleType("other"), object())]
