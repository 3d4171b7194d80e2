"""What tests cannot replace on a build with compiled modules (docs/compiled.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib.machinery import ExtensionFileLoader
from typing import Any, Final

import pytest

_WHY: Final = "{} is compiled: its functions call each other directly, and none can be replaced"


def skipping_machine_code(setattr_: Callable[..., None]) -> Callable[..., None]:
    """Return a `MonkeyPatch.setattr` that skips the test where it is to change a compiled class or module.

    The change would be refused, or be there without effect: then a test that nothing was called passes
    whatever is called.
    """

    @wraps(setattr_)
    def checked(patch: pytest.MonkeyPatch, target: object, *args: Any, **options: Any) -> None:
        owner = _module_of(target)
        loader = getattr(sys.modules.get(owner), "__loader__", None)
        if owner.startswith("licorne.") and isinstance(loader, ExtensionFileLoader):
            pytest.skip(_WHY.format(owner))
        setattr_(patch, target, *args, **options)

    return checked


def _module_of(target: object) -> str:
    """Return the name of the module that a class is from, or of a module; empty for anything else."""
    if isinstance(target, type):
        return target.__module__
    return target.__name__ if isinstance(target, type(sys)) else ""
