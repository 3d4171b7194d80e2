"""What the processes of pytest-xdist that run tests send to the one that reports."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Final, Protocol

from ..findings.evidence import Rung

__all__ = ["WORKER_KEY", "XdistProcess", "raise_rung", "texts_of"]

WORKER_KEY: Final = "lockcheck"
"""The key of what a process has found; those of the rest begin with it."""


class XdistProcess(Protocol):
    """A process of xdist that runs tests for another one: `config` there, a node here."""

    workeroutput: MutableMapping[str, object]


def raise_rung(rungs: dict[str, Rung], fingerprint: str, rung: Rung) -> None:
    """Note the rung of a finding, unless a higher one is known."""
    rungs[fingerprint] = max(rung, rungs.get(fingerprint, rung))


def texts_of(output: Mapping[str, object], key: str) -> list[str]:
    """Return one of the lists that another process has sent."""
    sent = output.get(f"{WORKER_KEY} {key}")
    return list(map(str, sent)) if isinstance(sent, list) else []
