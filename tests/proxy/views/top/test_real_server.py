"""The application in the terminal against the real REST interface of a real scheduler."""

from __future__ import annotations

import asyncio

import pytest
from support.proxy.listening import Listener
from support.proxy.page_cluster import GIB, ask, node, serving, submit
from support.proxy.processes import start_server
from support.proxy.rest_scenario import rest_scenario
from support.proxy.top_pilot import in_terminal
from support.waiting import on_a_loop

from licorne import Scheduler, rest_app
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.rest.running import RestServer

NAME = "größe-日本語-🦄"
QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]"
TOKEN = "a-token-that-is-known"  # noqa: S105 - of this test alone
ROWS = {
    "1": """\
root                ██████▒▒▒▒▒▒▒▒▒▒▒▒▶    7.75       -    24.6      22       4
  a                 ████▒┃▒▒▒▒▒▒▒▒▒▒▒▒▶    2.75       4      12      15    1/20
  b                 █████▒▒▒▒▒▒▒·······       5       -      20       7       3
    static          ┃███▒▒▒▒▒▒▒········       4       2       -       7       2
    team-x          ██┃█···············       1       1       5       0     1/7
""",
    "3": """\
node-1           █████████████··     88     7.2     8.1     0.9      7 reserved
node-2           █··············      7     0.6     8.2     7.6      1 drained
node-3           █··············      3    0.25     8.3    8.05      1 ready
""",
    "4": """\
alice            root                █·················    2.75      40    1/10
alice              a                 ██████············    2.75       8     1/4
""",
    "5": "dev                a                 █████·············    2.75      10     1/5\n",
}


@on_a_loop
async def test_the_views_of_a_real_server_are_those_of_the_recorded_one() -> None:
    """The recorded state, shown by our own documents; the times alone are others."""
    with rest_scenario() as scheduler, RestServer(scheduler) as server:
        async with in_terminal(f"http://127.0.0.1:{server.port}") as terminal:
            assert "default Active  " in terminal.text()
            assert "3 nodes  9 allocations\nvcore 7.75/24.6 (31 %)" in terminal.text()
            assert "\nwaiting: 1 no room: memory, 1 user limit\n" in terminal.text()
            for key, rows in ROWS.items():
                assert rows in await terminal.press(key)
            screen = await terminal.press("2")
            assert "app-1          Running    root.a        alice        2.75      15     1" in screen
            assert "  Not enough user quota (" in await terminal.press("enter")
            await terminal.press("escape")
            assert "memory               80-90%         1 " in await terminal.press("8", "pagedown")


@on_a_loop
async def test_a_resource_manager_that_is_lost_is_said_to_be() -> None:
    """In a line of its own, as long as it is."""
    with rest_scenario() as scheduler, RestServer(scheduler) as server:
        async with in_terminal(f"http://127.0.0.1:{server.port}") as terminal:
            assert "is paused" not in terminal.text()
            (status,) = scheduler.resource_managers()
            scheduler.pause_manager(status.rm_id, "the stream broke")
            assert f"RM {status.rm_id} is paused since" in await terminal.press("u")
            assert ": the stream broke\n" in await terminal.press("u")


def test_a_server_that_is_killed_and_started_again_is_shown_again() -> None:
    """In between the screen says that it is lost."""
    first = start_server()
    assert first.rest is not None
    where = first.rest

    async def act() -> None:
        async with in_terminal(f"http://{where}") as terminal:
            assert "no partition: no resource manager has registered yet" in terminal.text()
            first.process.kill()
            first.process.communicate()
            assert "LOST for 0s" in await terminal.press("u")
            second = start_server("--rest-address", where)
            try:
                assert "LOST" not in await terminal.press("u")
            finally:
                second.process.kill()
                second.process.communicate()

    asyncio.run(act())


@pytest.mark.parametrize("key", ["6", "7"])
@on_a_loop
async def test_what_a_real_server_lacks_is_no_error(key: str) -> None:
    """A scheduler in which nothing has happened yet has neither events nor a health, as it may be."""
    with rest_scenario() as scheduler, RestServer(scheduler) as server:
        async with in_terminal(f"http://127.0.0.1:{server.port}") as terminal:
            assert "LOST" not in await terminal.press(key)


@on_a_loop
async def test_a_server_that_wants_a_token_is_shown_with_names_of_any_letters() -> None:
    """They are found by their letters, and say why they wait."""
    with Scheduler() as scheduler:
        scheduler.register("rm", Listener(), configuration=QUEUES)
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node("node-1", memory=GIB)]))
        submit(scheduler, "another", "root.leaf")
        submit(scheduler, NAME, "root.leaf")
        ask(scheduler, NAME, "ask-1", memory=9 * GIB)
        with serving(rest_app(scheduler, tokens=[TOKEN])) as origin:
            async with in_terminal(origin, token=TOKEN) as terminal:
                assert NAME[:8] in await terminal.press("2")
                assert "filter 'größe': 1 row" in await terminal.press("slash", *"größe")
                detail = await terminal.press("enter", "enter")
                assert f"application {NAME}: Accepted" in detail
                assert "no node has room" in " ".join(detail.split())


@on_a_loop
async def test_a_server_that_wants_another_token_is_said_to_want_it() -> None:
    """The terminal stays, in case the server takes it later."""
    with rest_scenario() as scheduler, serving(rest_app(scheduler, tokens=[TOKEN])) as origin:
        async with in_terminal(origin, token="a-token-that-is-unknown") as terminal:  # noqa: S106 - of this test alone
            assert "another token (status 401" in terminal.text()
