"""A server that runs: on a thread, for programs; or on the main thread until a signal comes."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Self, final

from ....model.errors import LicorneError
from .addresses import Address
from .buffers import call_soon
from .served import ServedScheduler
from .server import Server, ServerSettings
from .watchdog import Watchdog

_WATCH_SECONDS: Final = 1.0
"""How often the configuration file is looked at."""


@final
class ServerThread:
    """A server on a thread of its own, for a scheduler of this process; `with` starts and stops it.

    It stops the scheduler, too.
    """

    def __init__(self, scheduler: ServedScheduler, settings: ServerSettings | None = None) -> None:
        self._scheduler = scheduler
        self._settings = settings or ServerSettings()
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Address]] = Future()
        self._thread = threading.Thread(target=self._run, name="licorne-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result()
        return self

    def __exit__(self, *_: object) -> None:
        loop, stopping, _address = self._started.result()
        call_soon(loop, stopping.set)
        self._thread.join()

    @property
    def address(self) -> str:
        """The address that it listens on."""
        return str(self._started.result()[2])

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        server = Server(self._scheduler, self._settings)
        try:
            address = await server.start()
        except BaseException as error:  # noqa: BLE001 - it is raised where the server was started
            await server.stop()
            self._started.set_exception(error)
            return
        self._started.set_result((asyncio.get_running_loop(), stopping, address))
        await stopping.wait()
        await server.stop()


async def serve_until_signal(
    scheduler: ServedScheduler,
    settings: ServerSettings,
    *,
    watchdog: Watchdog,
    on_listening: Callable[[Address], None],
    report: Callable[[str], None],
    on_stopping: Callable[[], object] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT comes, then stop within 5 s; a second signal ends the process at once.

    A process in which no Python runs any more is killed within 5 s of the signal.
    The configuration file is read again when it changes, and on SIGHUP.

    Args:
        scheduler: What is served; it is stopped, too.
        settings: How to listen.
        watchdog: Gets to know these signals.
        on_listening: Gets the address when the server listens.
        report: Gets lines for the operator: reloads, and what could not be done.
        on_stopping: Called when the signal comes, before the server stops, on another thread.

    Raises:
        LicorneError: The address cannot be listened on.
    """
    # Before anybody can know of this server, and send a signal.
    stopping, reloading = _noted_signals(watchdog)
    server = Server(scheduler, settings)
    try:
        on_listening(await server.start())
        watching = asyncio.create_task(_watch(server, settings, reloading, report))
        await stopping.wait()
        report("stopping")
        watching.cancel()
        await asyncio.to_thread(on_stopping)  # It may wait for the scheduler, which may wait for this server.
    finally:
        await server.stop()


def _noted_signals(watchdog: Watchdog) -> tuple[asyncio.Event, asyncio.Event]:
    """Return what the first signal to end sets, and what each one to read the configuration again sets."""
    loop = asyncio.get_running_loop()
    stopping, reloading = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        stopping.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        watchdog.stopping()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    watchdog.watch(signal.SIGTERM, signal.SIGINT)
    loop.add_signal_handler(signal.SIGHUP, reloading.set)
    return stopping, reloading


async def _watch(
    server: Server, settings: ServerSettings, reloading: asyncio.Event, report: Callable[[str], None]
) -> None:
    """Read the configuration again whenever its file changes, and on request."""
    file = settings.configuration
    while True:
        try:
            await asyncio.wait_for(reloading.wait(), _WATCH_SECONDS)
        except TimeoutError:
            if not await server.file_has_changed():
                continue
        reloading.clear()
        if file is None:
            report("there is no configuration file to read again")
            continue
        try:
            failures = await server.reload()
        except LicorneError as error:
            report(f"{file.path} is refused, what was there before stays:\n{error}")
            continue
        report("\n".join([f"{file.path} has been read again", *failures]))
