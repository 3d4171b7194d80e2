"""A server whose descriptors run out, and one whose REST interface ends: both answer again."""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx
import pytest
import uvicorn
from support.proxy.processes import serving
from support.proxy.running_scheduler import running
from support.waiting import let_time_pass, wait_until

from licorne import LicorneError
from licorne.proxy.views.rest.running import RestServer

DESCRIPTORS: Final = 64
"""Of the process; an idle server has 14."""


def test_readers_are_answered_when_connections_had_taken_all_descriptors(tmp_path: Path) -> None:
    """The first reader, too; the log has a line, not thousands."""
    errors = tmp_path / "errors"
    with serving(errors=errors) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        assert server.rest is not None
        for port in (server.port, int(server.rest.rpartition(":")[2])):
            taken = [socket.create_connection(("127.0.0.1", port)) for _ in range(2 * DESCRIPTORS)]
            let_time_pass(1)
            for each in taken:
                each.close()
        wait_until(lambda: _is_answered(server.rest), "an answer")
    assert "REST can take no connection" in errors.read_text(encoding="utf-8")
    assert errors.read_text(encoding="utf-8").count("\n") < 10


def test_an_attempt_to_accept_after_the_end_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Asyncio makes one a second after each lack, with a socket that may be closed by then."""
    shutdown = uvicorn.Server.shutdown

    async def accepts_late(server: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        await shutdown(server, sockets)
        assert sockets
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().remove_reader(sockets[0]))
        asyncio.get_running_loop().call_soon(_fail)
        await asyncio.sleep(0)

    monkeypatch.setattr(uvicorn.Server, "shutdown", accepts_late)
    with running() as scheduler, RestServer(scheduler):
        pass
    assert ["another fault"] == [str(record.exc_info[1]) for record in caplog.records if record.exc_info]


def _fail() -> None:
    raise ValueError("another fault")


def test_it_starts_again_after_what_ended_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Health checks say meanwhile that it does not answer."""
    ends = threading.Event()
    main_loop = uvicorn.Server.main_loop

    async def ends_once(server: uvicorn.Server) -> None:
        if ends.is_set():
            await main_loop(server)
        else:
            ends.set()
            raise OSError("no descriptors are left")

    monkeypatch.setattr(uvicorn.Server, "main_loop", ends_once)
    with running() as scheduler, RestServer(scheduler) as server:
        wait_until(lambda: scheduler.monitoring.broken_interfaces, "the end")
        check = scheduler.check_health().checks[-1]
        assert (False, "Interfaces that do not answer: [REST: OSError('no descriptors are left')]") == (
            check.succeeded,
            check.diagnosis,
        )
        wait_until(lambda: _is_answered(f"127.0.0.1:{server.port}"), "an answer")
        assert scheduler.check_health().checks[-1].succeeded


def test_one_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was to be started, and no thread of it is left."""

    async def fails(_: uvicorn.Server, sockets: object) -> None:
        raise OSError(f"{sockets} are no sockets")

    monkeypatch.setattr(uvicorn.Server, "startup", fails)
    with running() as scheduler:
        with (
            pytest.raises(LicorneError, match="the REST server does not start: OSError"),
            RestServer(scheduler),
        ):
            pass
        assert "licorne-rest" not in {thread.name for thread in threading.enumerate()}


def _is_answered(address: str | None) -> bool:
    with suppress(httpx.HTTPError):
        return 200 == httpx.get(f"http://{address}/ws/v1/clusters").status_code
    return False
