"""The application in the terminal, against a server on a port: each view, each key, a server that is lost."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import JSONResponse
from support.proxy.document_server import DocumentServer
from support.proxy.top_pilot import in_terminal
from support.waiting import on_a_loop

from licorne.proxy.views.top.tables_of_views import ScreenState
from licorne.proxy.views.top.views import View

APPLICATIONS = "/ws/v1/partition/default/applications/active"
EVENTS = "/ws/v1/events/batch"
NODES = "/ws/v1/partition/default/nodes"
QUEUES = """\
1 queues 2 applications 3 nodes 4 users 5 groups 6 events 7 health 8 utilization
queue               use                    used guarant maximum pending    apps
root                ██████▒▒▒▒▒▒▒▒▒▒▒▒▶    7.75       -    24.6      22       4
  a                 ████▒┃▒▒▒▒▒▒▒▒▒▒▒▒▶    2.75       4      12      15    1/20
  b                 █████▒▒▒▒▒▒▒·······       5       -      20       7       3
    static          ┃███▒▒▒▒▒▒▒········       4       2       -       7       2
    team-x          ██┃█···············       1       1       5       0     1/7
█ used  ▒ pending  · free  ┃ guaranteed  ▶ pending beyond the maximum
 ⏎ Detail  / Filter  s Sort  o Reverse  r Type  ␣ Fold  u Update  q Quit"""
APPLICATION_ROWS = """\
application    state      queue         user         used pending  asks     age
app-1          Running    root.a        alice        2.75      15     1   1m30s
app-2          Running    root.b.static bob             3       7     1   1m30s
app-3          Running    root.b.team-x carol           1       0     0   1m30s
app-gang       Running    root.b.static bob           0.5       0     0   1m30s
app-new        New        root.b.static dave            0       0     0   1m30s"""
NODE_ROWS = """\
node             use              use %    used  capac.    free allocs state
node-1           █████████████··     88     7.2     8.1     0.9      7 reserved
node-2           █··············      7     0.6     8.2     7.6      1 drained
node-3           █··············      3    0.25     8.3    8.05      1 ready"""


def rows(screen: str) -> list[str]:
    """Return the first words of the rows of a table."""
    lines = screen.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("1 queues")) + 2
    return [
        line.split()[0] for line in lines[start:] if not line.startswith(("filter ", "the first ", " ⏎ "))
    ]


# ----------------------------------------------------------------------------------------------- views


@on_a_loop
async def test_the_queues_are_the_first_view(server: DocumentServer) -> None:
    """The heading says what the partition is like, the footer which keys there are: all in 80 columns."""
    async with in_terminal(server.address) as terminal:
        lines = terminal.text().splitlines()

        assert [
            f"default Active  {server.address}  3 nodes  9 allocations",
            "vcore 7.75/24.6 (31 %)  healthy",
        ] == lines[:2]
        assert QUEUES == "\n".join(lines[2:])
        assert 24 == len(terminal.lines())


@pytest.mark.parametrize(
    ("key", "view", "shown"),
    [
        ("2", View.APPLICATIONS, APPLICATION_ROWS),
        ("3", View.NODES, NODE_ROWS),
        ("4", View.USERS, "alice              a                 ██████············    2.75       8     1/4"),
        ("5", View.GROUPS, "dev                a                 █████·············    2.75      10     1/5"),
        ("7", View.HEALTH, "Failed nodes                     ok      There were 0 failed nodes logged in t…"),
        ("8", View.UTILIZATION, f"memory               0-10%          2 {'█' * 27}{'·' * 13}"),
    ],
)
@on_a_loop
async def test_a_number_shows_a_view(server: DocumentServer, key: str, view: View, shown: str) -> None:
    """Also one that is chosen on the command line."""
    async with in_terminal(server.address) as terminal:
        assert shown in await terminal.press(key)
    async with in_terminal(server.address, state=ScreenState(view=view)) as terminal:
        assert shown in terminal.text()


@on_a_loop
async def test_a_view_can_be_clicked(server: DocumentServer) -> None:
    async with in_terminal(server.address) as terminal:
        await terminal.pilot.click("#views", offset=(26, 0))
        await terminal.settle()

        assert NODE_ROWS in terminal.text()


@on_a_loop
async def test_a_wide_terminal_shows_why_applications_wait(server: DocumentServer) -> None:
    """The message that their asks have most often."""
    async with in_terminal(server.address, size=(140, 30)) as terminal:
        assert "Not enough user quota" in await terminal.press("2")
        await terminal.pilot.resize_terminal(80, 24)
        await terminal.settle()
        assert "Not enough user quota" not in terminal.text()


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (300, 100)])
@on_a_loop
async def test_views_fit_any_terminal(server: DocumentServer, size: tuple[int, int]) -> None:
    async with in_terminal(server.address, size=size) as terminal:
        for key in ("1", "2", "6", "8"):
            await terminal.press(key)
            assert size[1] == len(terminal.lines())


# ------------------------------------------------------------------------------------------------ keys


@on_a_loop
async def test_s_sorts_by_the_next_column_and_o_turns_the_order_round(server: DocumentServer) -> None:
    """Numbers come largest first; after the last column the view has its own order again."""
    async with in_terminal(server.address) as terminal:
        assert ["node-1", "node-2", "node-3"] == rows(await terminal.press("3", "s"))
        assert "node▲" in terminal.text()
        assert ["node-3", "node-2", "node-1"] == rows(await terminal.press("o"))
        assert ["node-1", "node-2", "node-3"] == rows(await terminal.press("s"))
        assert "use %▼" in terminal.text()
        assert ["node-3", "node-2", "node-1"] == rows(await terminal.press("o"))
        await terminal.press("s", "s", "s", "s", "s")
        assert "state▲" in terminal.text()
        await terminal.press("s")
        assert "▲" not in terminal.text()


@on_a_loop
async def test_a_slash_filters_and_escape_shows_all_again(server: DocumentServer) -> None:
    """Each view keeps its filter."""
    async with in_terminal(server.address) as terminal:
        await terminal.press("2")
        assert ["app-3"] == rows(await terminal.press("slash", "C", "A", "R", "enter"))
        assert "filter 'CAR': 1 row" in terminal.text()
        await terminal.press("3")
        assert ["node-1", "node-2", "node-3"] == rows(terminal.text())
        assert ["app-3"] == rows(await terminal.press("2"))
        assert 5 == len(rows(await terminal.press("escape")))


@on_a_loop
async def test_r_shows_another_type_of_resource(server: DocumentServer) -> None:
    """The types follow each other by name, in all views."""
    async with in_terminal(server.address) as terminal:
        assert "memory 13.5Gi/44.7Gi (30 %)" in await terminal.press("r", "r")
        assert "node-1           █████████████··     87    13Gi  14.9Gi  1.86Gi" in await terminal.press("3")


@on_a_loop
async def test_space_folds_a_queue(server: DocumentServer) -> None:
    """The one under the cursor, which stays there; a filter searches what is folded as well."""
    async with in_terminal(server.address) as terminal:
        screen = await terminal.press("down", "down", "space")
        assert "  + b" in screen
        assert "static" not in screen
        assert "static" in await terminal.press("slash", "s", "t", "a", "enter")
        await terminal.press("escape", "home", "down", "down")
        assert "static" in await terminal.press("space")


@on_a_loop
async def test_p_shows_the_next_partition(server: DocumentServer) -> None:
    """The key is in the footer where there are several."""
    partitions: Any = server.documents["/ws/v1/partitions"]
    partitions.append({**partitions[0], "name": "gpu"})
    server.documents["/ws/v1/partition/gpu/queues"] = {"queuename": "root", "status": "Draining"}

    async with in_terminal(server.address) as terminal:
        assert "p Partition" in terminal.text()
        assert (await terminal.press("p")).startswith("gpu Active")
        assert (await terminal.press("p")).startswith("default Active")


@on_a_loop
async def test_u_reads_again(server: DocumentServer) -> None:
    """And the row under the cursor stays the same one."""
    nodes: Any = server.documents[NODES]

    async with in_terminal(server.address) as terminal:
        await terminal.press("3", "down")
        nodes.insert(0, {**nodes[0], "nodeID": "a-new-one"})
        assert "a-new-one" == rows(await terminal.press("u"))[0]
        assert "node node-2 " in await terminal.press("enter")


@on_a_loop
async def test_q_ends_it(server: DocumentServer) -> None:
    async with in_terminal(server.address) as terminal:
        await terminal.pilot.press("q")
        await terminal.pilot.pause()

        assert not terminal.pilot.app.is_running


# --------------------------------------------------------------------------------------------- details


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        (
            ("1", "enter"),
            ["queue root: parent, Active, managed", "headroom: ephemeral-storage 279Gi, memory 31.2Gi"],
        ),
        (
            ("2", "enter"),
            [
                "application app-1: Running",
                "ask a1-huge: memory 27.9Gi, vcore 15, priority 0",
                "  Not enough user quota (5 times)",
                "allocation a1-pin on node-3: memory 477Mi, vcore 0.25",
            ],
        ),
        (("3", "enter"), ["node node-1 (host-1): takes work", "reserved for: a2-big"]),
        (("4", "enter"), ["user: alice", "queue: root", "limit: 40"]),
        (("5", "enter"), ["group: dev"]),
        (("6", "enter"), ["id: 133", "what: application"]),
        (("7", "enter"), ["healthy", "ok: Failed nodes: There were 0 failed nodes logged in the metrics"]),
        (("8", "enter"), ["type: ephemeral-storage", "nodes: 3"]),
    ],
)
@on_a_loop
async def test_enter_shows_all_about_a_row(
    server: DocumentServer, keys: tuple[str, ...], lines: list[str]
) -> None:
    """Escape goes back."""
    async with in_terminal(server.address) as terminal:
        screen = (await terminal.press(*keys)).splitlines()
        for line in lines:
            assert any(shown.startswith(line) for shown in screen), (line, screen)
        assert "1 queues" in await terminal.press("escape")


@on_a_loop
async def test_an_application_says_why_it_waits(server: DocumentServer) -> None:
    """In the sentences of the server, each with its line of the configuration."""
    asked = []

    def explain(query: dict[str, str]) -> object:
        asked.append(query)
        blocker = {
            "text": "queue root.a has no room",
            "setting": {"line": 12, "text": "max: {vcore: 12}"},
            "lacks": [{"text": "vcore: 3 are missing"}],
            "changes": ["raise the maximum by 3"],
        }
        return {
            "applicationID": "app-1",
            "headline": "",
            "rejection": "",
            "waiting": [{"text": "ask a1-huge waits", "blockers": [blocker]}],
        }

    server.documents["/licorne/v1/explain/sentences"] = explain

    async with in_terminal(server.address) as terminal:
        screen = await terminal.press("2", "enter")
        assert (
            "why it waits\n"
            "  ask a1-huge waits\n"
            "    queue root.a has no room (line 12: max: {vcore: 12})\n"
            "      vcore: 3 are missing\n"
            "      to change: raise the maximum by 3\n"
        ) in screen
    assert [{"rm": "rm", "partition": "default", "application": "app-1"}] == asked


@on_a_loop
async def test_an_explanation_that_cannot_be_read_is_said(server: DocumentServer) -> None:
    server.documents["/licorne/v1/explain/sentences"] = ["no", "document"]

    async with in_terminal(server.address) as terminal:
        assert "why it waits is not known: " in await terminal.press("2", "enter")


@on_a_loop
async def test_details_stay_while_the_table_behind_them_is_read(server: DocumentServer) -> None:
    """The table is there again, and new, when they are closed."""
    async with in_terminal(server.address) as terminal:
        await terminal.press("3", "enter")
        screen = terminal.pilot.app.screen_stack[0]
        await screen.run_action("update")
        await terminal.settle()
        assert "node node-1" in terminal.text()
        assert NODE_ROWS in await terminal.press("escape")


# ------------------------------------------------------------------------------- what goes on, and ends


@on_a_loop
async def test_a_lost_server_is_shown_and_read_again_when_it_is_back(server: DocumentServer) -> None:
    """What was read before stays on the screen."""
    async with in_terminal(server.address) as terminal:
        server.stop()
        screen = await terminal.press("u")
        assert "LOST for 0s" in screen
        assert "cannot be reached" in screen
        assert "team-x" in screen
        terminal.pass_seconds(75)
        assert "LOST for 1m15s" in await terminal.press("u")
        server.start()
        screen = await terminal.press("u")
        assert "LOST" not in screen
        assert "team-x" in screen


@on_a_loop
async def test_a_server_that_is_not_there_at_first_is_read_when_it_comes(server: DocumentServer) -> None:
    """By itself, after the interval."""
    server.stop()

    async with in_terminal(server.address, interval_seconds=0.01) as terminal:
        assert "LOST" in terminal.text()
        server.start()
        while "team-x" not in terminal.text():
            await terminal.pilot.pause(0.01)
        assert "LOST" not in terminal.text()


@pytest.mark.parametrize(
    "answer", [JSONResponse({"message": "a token is required"}, 401), {"not": "a list"}, None]
)
@on_a_loop
async def test_what_cannot_be_read_is_said_and_no_traceback(server: DocumentServer, answer: object) -> None:
    server.documents["/ws/v1/partitions"] = answer

    async with in_terminal(server.address) as terminal:
        assert "LOST for 0s" in terminal.text()
        assert "Traceback" not in terminal.text()
        await terminal.press("enter", "s", "o", "r", "p", "space", "slash", "escape", "2", "enter")
        assert "LOST" in terminal.text()


@on_a_loop
async def test_the_pace_is_that_between_two_readings(server: DocumentServer) -> None:
    """The server counts allocations from its start: fewer than before are those of another server."""
    from starlette.responses import PlainTextResponse

    made = [9]

    def metrics(_: dict[str, str]) -> object:
        name = "yunikorn_scheduler_container_allocation_attempt_total"
        return PlainTextResponse(f'{name}{{state="allocated"}} {made[0]}\n{name}{{state="error"}} 0\n')

    server.documents["/ws/v1/metrics"] = metrics

    async with in_terminal(server.address) as terminal:
        assert "allocations/s" not in terminal.text()
        made[0] = 1_034
        terminal.pass_seconds(2)
        assert "  512.5 allocations/s  " in await terminal.press("u")
        made[0] = 3
        terminal.pass_seconds(2)
        assert "allocations/s" not in await terminal.press("u")


@on_a_loop
async def test_failed_checks_are_in_the_heading(server: DocumentServer) -> None:
    health: Any = server.documents["/ws/v1/scheduler/healthcheck"]
    health["Healthy"] = False
    health["HealthChecks"][1]["Succeeded"] = False

    async with in_terminal(server.address) as terminal:
        assert "UNHEALTHY: 1 check failed" in terminal.text()
        assert "FAILED: Failed nodes" in (await terminal.press("7", "enter")).splitlines()[1]


@on_a_loop
async def test_of_many_rows_the_first_are_shown(server: DocumentServer) -> None:
    """A filter finds the others."""
    server.documents[NODES] = [
        {"nodeID": f"node-{number:04}", "schedulable": True} for number in range(3_000)
    ]

    async with in_terminal(server.address) as terminal:
        screen = await terminal.press("3")
        assert "the first 1,000 of 3,000 rows are shown: filter with /" in screen
        assert ["node-2345"] == rows(await terminal.press("slash", *"2345", "enter"))
