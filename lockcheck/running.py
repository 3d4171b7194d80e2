"""Running a program under a session of its own."""

from __future__ import annotations

import importlib
import runpy
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import LockUsageError, OrderDeclarationError
from .findings import Rung
from .order import Order
from .sessions import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .levels import Level

__all__ = ["named_order", "run_program"]


def named_order(text: str) -> Order:
    """Return a declared order: `module:NAME` where it is one, else the chains that the text is.

    Raises:
        LockUsageError: there is no such module or name, or the text declares no order.
    """
    if ":" not in text:
        try:
            return Order(text)
        except OrderDeclarationError as error:
            raise LockUsageError(f"--order: {error}") from None
    module, _, name = text.partition(":")
    try:
        found: object = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise LockUsageError(f"--order {text}: {error}") from None
    if not isinstance(found, Order):
        raise LockUsageError(f"--order {text}: {found!r} is no Order")
    return found


def run_program(
    path: str, arguments: Sequence[str], order: Order | None, level: Level
) -> tuple[Session, int]:
    """Run a program as `python path arguments` would, and look on.

    Nothing raises for a finding but a real deadlock, which is broken. A session that the program opens looks
    on in place of this one.

    Returns:
        The session, and the code that the program ended with.

    Raises:
        LockUsageError: there is no such file.
    """
    if not Path(path).is_file():
        raise LockUsageError(f"{path}: there is no such program")
    argv, paths = sys.argv, list(sys.path)
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    session = Session(
        order, level=level, on={rung: "record" for rung in Rung if rung is not Rung.R5}, name=path
    )
    try:
        with session:
            code = _run(path)
    finally:
        sys.argv = argv
        sys.path[:] = paths
    return session, code


def _run(path: str) -> int:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except Exception:  # noqa: BLE001 - a program that fails still has something to report
        traceback.print_exc()
        return 1
    return 0
