"""The application in the terminal against the real REST interface of a real scheduler."""

from __future__ import annotations

import pytest
from support.proxy.golden_bodies import recorded_scheduler
from support.proxy.processes import start_server
from support.proxy.top_pilot import Terminal, in_terminal

from licorne.proxy.rest.running import RestServer

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


def test_the_views_of_a_real_server_are_those_of_the_recorded_one() -> None:
    """The recorded state, shown by our own documents; the times alone are others."""

    async def act(terminal: Terminal) -> None:
        assert "default Active  " in terminal.text()
        assert "3 nodes  9 allocations\nvcore 7.75/24.6 (31 %)" in terminal.text()
        for key, rows in ROWS.items():
            assert rows in await terminal.press(key)
        screen = await terminal.press("2")
        assert "app-1          Running    root.a        alice        2.75      15     1" in screen
        assert "  Not enough user quota (" in await terminal.press("enter")
        await terminal.press("escape")
        assert "memory               80-90%         1 " in await terminal.press("8", "pagedown")

    with recorded_scheduler() as scheduler, RestServer(scheduler) as server:
        in_terminal(f"http://127.0.0.1:{server.port}", act)


def test_a_server_that_is_killed_and_started_again_is_shown_again() -> None:
    """In between the screen says that it is lost."""
    first = start_server()
    assert first.rest is not None
    where = first.rest

    async def act(terminal: Terminal) -> None:
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

    in_terminal(f"http://{where}", act)


@pytest.mark.parametrize("key", ["6", "7"])
def test_what_a_real_server_lacks_is_no_error(key: str) -> None:
    """A scheduler in which nothing has happened yet has neither events nor a health, as it may be."""

    async def act(terminal: Terminal) -> None:
        assert "LOST" not in await terminal.press(key)

    with recorded_scheduler() as scheduler, RestServer(scheduler) as server:
        in_terminal(f"http://127.0.0.1:{server.port}", act)
