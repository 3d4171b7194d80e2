"""The buffers between the event loop and the threads."""

from __future__ import annotations

import asyncio
import threading

from support.waiting import on_a_loop, wait_until

from licorne.proxy.wire.server.buffers import Inbox, Outgoing


@on_a_loop
async def test_no_task_that_waits_for_room_is_forgotten() -> None:
    """Several streams put into one inbox: each of them gets its turn, however the thread takes items out."""
    inbox: Inbox[int] = Inbox(asyncio.get_running_loop(), size_max=2)
    found: list[int] = []

    def work() -> None:
        while (item := inbox.get()) is not None:
            found.append(item)

    thread = threading.Thread(target=work)
    thread.start()

    async def put(start: int) -> None:
        for number in range(start, start + 400):
            await inbox.put(number)

    await asyncio.gather(*(put(start) for start in range(0, 4_000, 400)))
    inbox.close()
    thread.join()

    assert list(range(4_000)) == sorted(found)


@on_a_loop
async def test_an_inbox_is_full_of_few_large_items() -> None:
    """Its bound in bytes holds as well; an item above that is taken when nothing else waits."""
    inbox: Inbox[str] = Inbox(asyncio.get_running_loop(), bytes_max=100)
    await inbox.put("large", 1_000)
    second = asyncio.create_task(inbox.put("small", 1))
    await asyncio.sleep(0)
    waits = not second.done()
    taken = inbox.get()
    await second

    assert (True, "large", "small") == (waits, taken, inbox.get())


@on_a_loop
async def test_an_inbox_that_is_closed_drops_what_waits() -> None:
    """Requests of a connection that has ended are not carried out; a task that waits goes on."""
    inbox: Inbox[str] = Inbox(asyncio.get_running_loop(), size_max=1)
    await inbox.put("first")
    second = asyncio.create_task(inbox.put("second"))
    await asyncio.sleep(0)
    inbox.close(drop=True)
    await second

    assert inbox.get() is None


@on_a_loop
async def test_an_outgoing_buffer_is_full_of_few_large_messages() -> None:
    """A thread that puts waits for the taker then."""
    outgoing: Outgoing[bytes] = Outgoing(asyncio.get_running_loop(), len, bytes_max=100)
    outgoing.put(b"x" * 100)
    thread = threading.Thread(target=outgoing.put, args=(b"y",))
    thread.start()
    first = await outgoing.take()
    second = await outgoing.take()
    thread.join()

    assert ([b"x" * 100], [b"y"]) == (first, second)


@on_a_loop
async def test_what_is_put_back_comes_first() -> None:
    """A stream that ends before it has written all leaves the rest to the next one, in order."""
    outgoing: Outgoing[bytes] = Outgoing(asyncio.get_running_loop(), len)
    for message in (b"1", b"2", b"3"):
        outgoing.put(message)
    _, *rest = await outgoing.take()
    outgoing.put(b"4")
    outgoing.put_back(rest)

    assert [b"2", b"3", b"4"] == await outgoing.take()


@on_a_loop
async def test_a_buffer_that_ends_lets_no_thread_wait() -> None:
    """Neither one that puts nor one that waits for room."""
    outgoing: Outgoing[bytes] = Outgoing(asyncio.get_running_loop(), len, size_max=1)
    outgoing.put(b"1")
    put: list[bool] = []
    threads = [
        threading.Thread(target=lambda: put.append(outgoing.put(b"2"))),
        threading.Thread(target=outgoing.wait_for_room),
    ]
    for thread in threads:
        thread.start()
    outgoing.finish()
    await asyncio.to_thread(lambda: wait_until(lambda: not any(map(threading.Thread.is_alive, threads))))

    assert ([False], [b"1"], []) == (put, await outgoing.take(), await outgoing.take())


def test_a_buffer_outlives_its_loop() -> None:
    """A callback that comes late does not fail: it has no reader."""
    made: list[Outgoing[bytes]] = []

    async def make() -> None:
        outgoing: Outgoing[bytes] = Outgoing(asyncio.get_running_loop(), len)
        made.append(outgoing)
        waiting = asyncio.create_task(outgoing.take())
        await asyncio.sleep(0)
        waiting.cancel()

    on_a_loop(make)()

    assert made[0].put(b"late")
