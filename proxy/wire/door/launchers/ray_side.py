"""The program beside the door that is a driver of Ray: Ray ends its drivers when it loses its head.

It is started with one argument, an object in JSON: `address`, `namespace` and `arguments`. It reads a line of
JSON for each order: `{"actors": 3}`, have so many workers; `{"end": {"actor": 0, "id": "..."}}`, that
worker is lost. It writes one for each change: `{"connected": true}`; `{"worker": {...}, "actor": 0}`, there
is one; `{"gone": "...", "reason": "..."}`, it does not answer; `{"failed": "..."}`, Ray cannot be used. When
its standard input closes, all is over.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TextIO, final

from ....base.terminal.standard_output import BAD_INPUT
from ...server.access import read_address
from .ray_worker import RayWorker, WorkerSeen

_LOOK_SECONDS: Final = 1.0
"""How often an actor is asked for its process."""
_ANSWER_SECONDS: Final = 5.0
"""An actor that takes longer to answer is gone, until it does."""
_KEEP_CHILDREN: Final = {"RAY_kill_child_processes_on_worker_exit": "0"}
"""An actor that Ray ends, having lost its head or the raylet of the node, leaves its process to the door."""


@final
class _Voice:
    """Writes lines to the door; several threads do."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def say(self, document: dict[str, Any]) -> None:
        with self._lock, suppress(OSError):  # The door is gone: the standard input has closed, too.
            self._stream.write(json.dumps(document) + "\n")
            self._stream.flush()


@final
class _WatchedActor:
    """One actor, and a thread that asks it."""

    def __init__(self, number: int, arguments: Sequence[str], voice: _Voice) -> None:
        self._number = number
        self._arguments = list(arguments)
        self._voice = voice
        self._handle: Any = None
        self._seen: WorkerSeen | None = None
        """What was said of it last; `None` if it was said to be gone."""
        threading.Thread(target=self._run, name=f"actor-{number}", daemon=True).start()

    def end(self, worker_id: str) -> None:
        """Have a process ended, if it is still there."""
        handle = self._handle
        if handle is not None:
            from ray.exceptions import RayError

            with suppress(RayError):
                handle.end.remote(worker_id)

    def end_any(self) -> None:
        """Have its process ended, whichever it is."""
        seen = self._seen
        if seen is not None:
            self.end(seen["id"])

    def remove(self) -> None:
        """End the actor for good."""
        handle = self._handle
        if handle is not None:
            import ray

            with suppress(ray.exceptions.RayError):
                ray.kill(handle, no_restart=True)

    def _run(self) -> None:
        import ray

        answer: Any = None
        while True:
            try:
                if self._handle is None:
                    self._handle = self._there()
                answer = self._handle.seen.remote() if answer is None else answer
                ready, _ = ray.wait([answer], timeout=_ANSWER_SECONDS)
                if ready:
                    found, answer = ray.get(answer), None
                    self._note(found)
                else:
                    self._lose(f"it does not answer within {_ANSWER_SECONDS:g} s")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is said, and tried again
                self._lose(_first_line(error))
                answer = None
                if isinstance(error, ray.exceptions.ActorDiedError):
                    self._handle = None  # It does not come back by itself.
            time.sleep(_LOOK_SECONDS)

    def _there(self) -> Any:
        """Return the actor: that of an earlier program beside the same door if it is there."""
        import ray

        return (
            ray.remote(RayWorker)
            .options(
                name=f"worker-{self._number}",
                lifetime="detached",
                get_if_exists=True,
                max_restarts=-1,
                num_cpus=1,
                scheduling_strategy="SPREAD",
                runtime_env={"env_vars": _KEEP_CHILDREN},
            )
            .remote(self._arguments)
        )

    def _note(self, found: WorkerSeen) -> None:
        if found != self._seen:
            if self._seen is not None:
                self._lose("Ray has started it again")
            self._seen = found
            self._voice.say({"worker": found, "actor": self._number})

    def _lose(self, reason: str) -> None:
        gone, self._seen = self._seen, None
        self._voice.say({"gone": "" if gone is None else gone["id"], "reason": reason})


def _first_line(error: Exception) -> str:
    """Return what an error says, in one line: errors of Ray end with what went wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason is given'}"


def _connect(address: str, namespace: str) -> None:
    """Become a driver of Ray.

    Raises:
        Exception: Of any kind: it cannot be used.
    """
    import ray

    if address != "auto":  # Ray itself needs more than three minutes to see that nothing listens there.
        where = read_address(address)
        socket.create_connection((where.host, where.port), _ANSWER_SECONDS).close()
    ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR)


def main() -> None:
    """Connect to Ray, and keep as many workers as the door wants."""
    settings = json.loads(sys.argv[1])
    voice = _Voice(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # What else is printed must not come between the lines.
    try:
        _connect(settings["address"], settings["namespace"])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the reason
        voice.say({"failed": f"Ray at {settings['address']!r} cannot be used: {_first_line(error)}"})
        os._exit(BAD_INPUT)
    voice.say({"connected": True})
    actors: list[_WatchedActor] = []
    for line in sys.stdin:
        order = json.loads(line)
        numbers = range(len(actors), order.get("actors", 0))
        actors += [_WatchedActor(number, settings["arguments"], voice) for number in numbers]
        end = order.get("end")
        if end is not None and end["actor"] < len(actors):
            actors[end["actor"]].end(end["id"])
    for actor in actors:
        actor.end_any()
    time.sleep(_LOOK_SECONDS)
    for actor in actors:
        actor.remove()
    time.sleep(_LOOK_SECONDS)  # The orders to Ray are on their way.
    os._exit(0)  # Without the head of Ray its own end takes for ever.


if __name__ == "__main__":
    main()
