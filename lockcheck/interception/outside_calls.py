"""Calls that may block outside of Python: files, sockets, processes and sleeps; and handlers of signals.

An audit hook was tried for files, sockets and subprocesses, and rejected: it can never be removed, and with
one it takes five times as long to find the calling frame, which the checked locks do all the time. A function
that was imported by name before the session, as by `from time import sleep`, is not observed.
"""

from __future__ import annotations

import builtins
import io
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from ..checking.blocking import blocks, waits_with
from ..checking.finalizers import handling
from ..findings.foreign import ByIdentity
from ..holding.runtime import handled_by, runtime
from .hand_overs import is_checked, may_get, may_give
from .hooks import Row

Result = TypeVar("Result")

_BLOCKING: Final[tuple[tuple[object, str, str], ...]] = (
    (builtins, "open", "file"),
    (io, "open", "file"),
    (os, "open", "file"),
    (socket, "getaddrinfo", "socket"),
    (subprocess.Popen, "__init__", "subprocess"),
    (os, "system", "subprocess"),
)
"""Functions that always block: owner, name, and the kind of blocking."""
_OF_SOCKETS: Final = ("connect", "accept", "recv", "sendall")
"""Methods that block unless the socket was set not to."""
_pairs: Final[ByIdentity[_Pair]] = ByIdentity()
"""The pair that a socket is of: threads of one process order each other by it."""


def _marked(kind: str, function: Callable[..., Result], /, *given: object, **named: object) -> Result:
    """Wrap a function that always blocks."""
    blocks(kind)
    return function(*given, **named)


def _signal(function: Callable[[int, object], object], number: int, handler: object) -> object:
    """Wrap `signal.signal`: what was taken before may now be taken in a handler, and is looked at again."""
    before = handled_by(function(number, handling(handler)))
    cut = runtime.cut_tries()
    del cut  # keys of locks may have finalizers, which are not to run under the latch
    return before


def _getsignal(function: Callable[[int], object], number: int) -> object:
    return handled_by(function(number))


def _sleep(function: Callable[[float], None], seconds: float) -> None:
    """Wrap `time.sleep`; to sleep for no time only lets others run."""
    if not isinstance(seconds, (int, float)) or seconds > 0:
        blocks("sleep")
    function(seconds)


class _Pair:
    """A pair of sockets."""


def _of_socket(
    name: str, method: Callable[..., Result], self: socket.socket, /, *given: object, **named: object
) -> Result:
    if name in _OF_SOCKETS and waits_with(self.gettimeout()):
        blocks("socket")
    pair = _pairs.get(self)
    if pair is None or not is_checked():
        return method(self, *given, **named)
    if name.startswith("send"):
        may_give(pair)
    result = method(self, *given, **named)
    if name.startswith("recv"):
        may_get(pair)
    return result


def _socketpair(
    function: Callable[..., tuple[socket.socket, socket.socket]], /, *given: object, **named: object
) -> tuple[socket.socket, socket.socket]:
    pair = function(*given, **named)
    known = _Pair()
    for end in pair:
        _pairs.put(end, known)
    return pair


ROWS: Final[tuple[Row, ...]] = (
    *((owner, name, partial(_marked, kind)) for owner, name, kind in _BLOCKING),
    *((socket.socket, name, partial(_of_socket, name)) for name in (*_OF_SOCKETS, "send", "recv_into")),
    (socket, "socketpair", _socketpair),
    (time, "sleep", _sleep),
    (signal, "signal", _signal),
    (signal, "getsignal", _getsignal),
)
