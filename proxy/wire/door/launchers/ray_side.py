"""The helper program of the door that is a driver of Ray: Ray ends its drivers when it loses its head.

It is started with one argument, a JSON object: `address`, `namespace` and `arguments`. It reads a line of
JSON for each order: `{"actors": 3}` sets the number of workers; `{"end": {"actor": 0, "id": "..."}}` ends a
lost worker. It writes a line for each change: `{"connected": true}`; `{"worker": {...}, "actor": 0}` for a
running worker; `{"gone": "...", "reason": "..."}` for one that does not answer; `{"failed": "..."}` if Ray
cannot be used. When its standard input closes, it ends.
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
"""The interval at which an actor is asked for its process."""
_ANSWER_SECONDS: Final = 5.0
"""The time after which an actor without an answer counts as gone, until it answers."""
_KEEP_CHILDREN: Final = {"RAY_kill_child_processes_on_worker_exit": "0"}
"""An actor that Ray ends after a loss of its head or of the node's raylet leaves its process to the door."""


@final
class _Voice:
    """Writes lines to the door, from several threads."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def say(self, document: dict[str, Any]) -> None:
        with self._lock, suppress(OSError):  # The door is gone, and the standard input has closed as well.
            self._stream.write(json.dumps(document) + "\n")
            self._stream.flush()


@final
class _WatchedActor:
    """One actor, and a thread that asks it for its state."""

    def __init__(self, number: int, arguments: Sequence[str], voice: _Voice) -> None:
        self._number = number
        self._arguments = list(arguments)
        self._voice = voice
        self._handle: Any = None
        self._seen: WorkerSeen | None = None
        """The last report about the actor; `None` if it was reported as gone."""
        threading.Thread(target=self._run, name=f"actor-{number}", daemon=True).start()

    def end(self, worker_id: str) -> None:
        """End a process, if it still runs."""
        handle = self._handle
        if handle is not None:
            from ray.exceptions import RayError

            with suppress(RayError):
                handle.end.remote(worker_id)

    def end_any(self) -> None:
        """End the current process of the actor."""
        seen = self._seen
        if seen is not None:
            self.end(seen["id"])

    def remove(self) -> None:
        """End the actor permanently."""
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
            except Exception as error:  # noqa: BLE001 - any error is reported, and retried
                self._lose(_first_line(error))
                answer = None
                if isinstance(error, ray.exceptions.ActorDiedError):
                    self._handle = None  # It does not restart by itself.
            time.sleep(_LOOK_SECONDS)

    def _there(self) -> Any:
        """Return the actor: the one of an earlier helper program of the same door if it exists."""
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
    """Return the text of an error, in one line: errors of Ray end with the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason is given'}"


def _connect(address: str, namespace: str) -> None:
    """Become a driver of Ray.

    Raises:
        Exception: Any error of Ray: it cannot be used.
    """
    import ray

    if address != "auto":  # Ray itself takes more than three minutes to find that nothing listens.
        where = read_address(address)
        socket.create_connection((where.host, where.port), _ANSWER_SECONDS).close()
    ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR)


def main() -> None:
    """Connect to Ray, and keep the number of workers that the door has ordered."""
    settings = json.loads(sys.argv[1])
    voice = _Voice(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # Other output must not mix with the lines.
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
    time.sleep(_LOOK_SECONDS)  # This lets Ray send the orders.
    os._exit(0)  # Without the head of Ray an ordinary exit never ends.


if __name__ == "__main__":
    main()
