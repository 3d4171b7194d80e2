"""What `setup.py` compiles with LICORNE_COMPILE=1 is in the checkout; compiling itself takes minutes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from support.sources import ROOT


def test_what_is_compiled_is_there_and_can_be_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy that mypyc reads is complete, and each module that is named by itself exists.

    A protocol in a compiled module is a native class, which `runtime_checkable` refuses at the import.
    """
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    monkeypatch.setattr("mypyc.build.mypycify", lambda options, **_: options)
    for folder in ("actors", "lockcheck", "model", "proxy"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(ROOT / "setup.py"))

    files = [name for name in names["compiled_modules"]() if name.endswith(".py")]

    assert len(files) > 80
    assert [] == [name for name in files if not (tmp_path / "build" / "mypyc" / name).is_file()]
    assert [] == [name for name in (*names["HOT"], *names["PURE"]) if not (ROOT / name).is_file()]
    checked = [
        name for name in files if "runtime_checkable" in (tmp_path / "build" / "mypyc" / name).read_text()
    ]
    assert [] == checked
