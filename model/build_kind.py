"""Which build of the package runs: pure Python, or with hot modules compiled by mypyc (docs/compiled.md)."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Final

_PROBE: Final = f"{__package__}.resources.resource"
"""A module that is compiled in every compiled build."""


@cache
def is_compiled() -> bool:
    """Return whether the hot modules of the model are machine code."""
    spec = find_spec(_PROBE)
    return spec is not None and spec.origin is not None and not spec.origin.endswith((".py", ".pyc"))


def build_name() -> str:
    """Return what the build is called: `pure Python` or `compiled`."""
    return "compiled" if is_compiled() else "pure Python"
