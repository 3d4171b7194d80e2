"""How connections end, with a transport that stands for a socket."""

from __future__ import annotations

import asyncio

import pytest
from support.waiting import on_a_loop

from licorne.proxy.views.rest.connections import ClosingTransport, ConnectionTimes


class Socket(asyncio.Transport):
    """A transport that keeps what is to be written until the test takes it."""

    def __init__(self, waiting_bytes: int = 0) -> None:
        super().__init__()
        self.waiting_bytes = waiting_bytes
        self.ended = asyncio.Event()
        self._closing = False

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def can_write_eof(self) -> bool:
        return False

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True

    def abort(self) -> None:
        self.ended.set()


def closing(transport: Socket, *, is_whole: bool = True) -> ClosingTransport:
    times = ConnectionTimes(write_seconds=0.001, discard_seconds=0.001)
    return ClosingTransport(transport, asyncio.get_running_loop(), times, lambda: is_whole)


@pytest.mark.parametrize("is_whole", [True, False])
@on_a_loop
async def test_a_client_that_leaves_the_last_part_of_an_answer_is_left(*, is_whole: bool) -> None:
    """Although the connection has been closed; a transport by itself would wait for ever."""
    transport = Socket(waiting_bytes=10)
    closing(transport, is_whole=is_whole).close()
    await transport.ended.wait()


@on_a_loop
async def test_a_client_that_takes_its_answer_slowly_is_waited_for() -> None:
    """As long as it takes some."""
    transport = Socket(waiting_bytes=3 << 20)
    watched = closing(transport)
    watched.watch_writing()
    while transport.waiting_bytes:
        await asyncio.sleep(0)
        transport.waiting_bytes -= 1 << 20
        watched.writing_goes_on()
        watched.watch_writing()
        assert not transport.ended.is_set()


@on_a_loop
async def test_what_is_discarded_is_closing() -> None:
    """Nothing more is written, and closing again changes nothing."""
    transport = Socket()
    watched = closing(transport, is_whole=False)
    watched.close()
    watched.close()
    assert (True, True, False) == (watched.is_discarding, watched.is_closing(), transport.is_closing())
    watched.end()
    assert (False, True, True) == (watched.is_discarding, watched.is_closing(), transport.is_closing())
