"""Faults of the checker under pytest: they change how no test ends."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

import pytest

from ..findings.errors import LockCheckError, fault_said

__all__ = ["or_else"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


def or_else(result: Result) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let a part of the plugin return a result if it has a fault, and say so on standard error.

    What the plugin says of wrong options, and what it finds, are no faults.
    """

    def decorated(part: Callable[Given, Result]) -> Callable[Given, Result]:
        @functools.wraps(part)
        def guarded(*given: Given.args, **named: Given.kwargs) -> Result:
            try:
                return part(*given, **named)
            except (LockCheckError, pytest.UsageError):
                raise
            except Exception as error:  # noqa: BLE001 - a bug of the checker must not change the run
                if sys.stderr is not None:
                    with suppress(OSError, ValueError):
                        sys.stderr.write(f"lockcheck: {fault_said(error)}\n")
                return result

        return guarded

    return decorated
