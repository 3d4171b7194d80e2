"""Workers that are child processes; each test starts real ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from support.door.faulty_workers import HANG, faulty_interpreter
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, TWO, application_request, ask_request, node_request
from support.proxy.worker_processes import is_alive
from support.waiting import WAIT_SECONDS, wait_until

from licorne import ConnectionLostError, LicorneError, RemoteScheduler
from licorne.proxy.wire.client.connection import Connection, Transport
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.launchers.local import LocalLauncher, ServingProcess, line_of
from licorne.proxy.wire.door.workers import LaunchedWorker, LaunchError

NEVER: Final = threading.Event()
PARENT: Final = """
import sys, threading, time
from licorne.proxy.wire.client.connection import Connection, Transport
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.launchers.local import LocalLauncher

launcher = LocalLauncher(spare_after_seconds=0)
worker = launcher.start("second", threading.Event())
while launcher._spare is None:
    time.sleep(0.01)
launcher._spare.wait_for_address(threading.Event(), 60)
print(launcher.process_of(worker).pid, launcher._spare.pid, flush=True)
time.sleep(100)
"""


@pytest.fixture
def lines() -> list[str]:
    """Return what workers say."""
    return []


@pytest.fixture
def launcher(lines: list[str]) -> Iterator[LocalLauncher]:
    launcher = LocalLauncher(write=lines.append, spare_after_seconds=0)
    yield launcher
    launcher.stop()


def process_of(launcher: LocalLauncher, worker: LaunchedWorker) -> ServingProcess:
    process = launcher.process_of(worker)
    assert process is not None
    return process


def spare_of(launcher: LocalLauncher) -> ServingProcess:
    """Wait for the spare."""
    wait_until(lambda: launcher._spare is not None, "there is a spare")
    assert launcher._spare is not None
    return launcher._spare


def registered(worker: LaunchedWorker) -> tuple[RemoteScheduler, Listener]:
    """Return a client of a worker, with an RM that has registered for the partition."""
    client, listener = RemoteScheduler(worker.address, token=worker.token), Listener()
    client.register("rm", listener, configuration=TWO, partitions=[worker.partition])
    return client, listener


def test_a_worker_schedules_its_partition(launcher: LocalLauncher, lines: list[str]) -> None:
    """Its lines name it."""
    client, listener = registered(launcher.start("second", NEVER))
    with client:
        client.update_node(node_request("n1", partition="second"))
        client.update_application(application_request("app", partition="second"))
        client.update_allocation(ask_request("ask", partition="second"))
        wait_until(lambda: "placed ask" in listener.heard)

    wait_until(lambda: "worker 1 of second: licorne serve: info: RM 'rm' has registered" in lines)


def test_a_lost_worker_is_replaced_by_the_spare(launcher: LocalLauncher) -> None:
    """The process is killed, the spare listens already, and there is a next spare."""
    first = launcher.start("second", NEVER)
    spare = spare_of(launcher)
    spare.wait_for_address(NEVER, WAIT_SECONDS)
    lost = process_of(launcher, first)
    launcher.lost(first)
    second = launcher.start("second", NEVER)

    assert (second.number, process_of(launcher, second)) == (2, spare)
    assert lost.wait_for_end(WAIT_SECONDS)
    wait_until(lambda: launcher._spare not in {None, spare}, "there is a next spare")


def test_the_next_spare_is_started_later(lines: list[str]) -> None:
    """Its start takes a core, which a partition that recovers and those beside it need."""
    launcher = LocalLauncher(write=lines.append, spare_after_seconds=10**6)
    first = launcher.start("second", NEVER)
    spare_of(launcher)
    launcher.lost(first)
    launcher.start("second", NEVER)
    spare, is_due = launcher._spare, launcher._spare_timer is not None
    launcher.stop()

    assert (None, True) == (spare, is_due)


def test_a_spare_that_has_died_is_not_taken(launcher: LocalLauncher) -> None:
    """Another process is started."""
    launcher.start("second", NEVER)
    spare = spare_of(launcher)
    spare.kill()
    assert spare.wait_for_end(WAIT_SECONDS)
    client, _ = registered(launcher.start("default", NEVER))

    with client:
        assert [status.partitions for status in client.resource_managers()] == [("default",)]


def test_a_registration_does_not_wait_for_a_spare_that_was_killed_this_moment(
    launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens at the address of the spare any more; the next worker is a new process."""
    connect, addresses = Transport.connect, list[str]()

    def noted(transport: Transport, *arguments: Any) -> Connection:
        addresses.append(transport.address)
        return connect(transport, *arguments)

    launcher.start("second", NEVER)
    spare = spare_of(launcher)
    killed = spare.wait_for_address(NEVER, WAIT_SECONDS)
    spare.kill()
    assert spare.wait_for_end(WAIT_SECONDS)
    monkeypatch.setattr(ServingProcess, "has_ended", False)  # The launcher has not seen it yet.
    monkeypatch.setattr(Transport, "connect", noted)
    with Door(launcher) as door:
        door.register("rm", Listener(), configuration=ONE)

    assert [killed] == addresses[:-1]


def test_all_processes_end_when_the_launcher_stops(launcher: LocalLauncher) -> None:
    """The spare, too; and there are no new ones."""
    processes = [process_of(launcher, launcher.start(name, NEVER)) for name in ("default", "second")]
    processes.append(spare_of(launcher))
    launcher.stop()

    assert [process.has_ended for process in processes] == [True, True, True]
    with pytest.raises(LicorneError, match="the launcher has been stopped"):
        launcher.start("second", NEVER)


def test_a_process_that_hangs_is_killed_when_the_launcher_stops(
    launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the time is over that the door itself has to end."""
    monkeypatch.setattr("licorne.proxy.wire.door.launchers.local._ORDERLY_SECONDS", 0.1)
    process = process_of(launcher, launcher.start("second", NEVER))
    os.kill(process.pid, signal.SIGSTOP)
    launcher.stop()

    assert process.has_ended


def test_who_gives_up_waits_no_longer(
    launcher: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that was starting is killed."""
    monkeypatch.setattr(sys, "executable", program_of(tmp_path, "exec sleep 600"))
    given_up = threading.Event()
    threading.Timer(0.1, given_up.set).start()

    with pytest.raises(LicorneError, match="the worker was given up before it listened"):
        launcher.start("second", given_up)


def test_a_refused_option_is_said_at_once(lines: list[str]) -> None:
    """To try again would not help."""
    launcher = LocalLauncher(["--engine", "steam"], lines.append)
    said = "licorne serve: engine 'steam' is unknown, there are actors, direct, threads"

    with pytest.raises(LaunchError, match=f"^a worker ended with status 2 before it listened: {said}$"):
        launcher.start("second", NEVER)
    assert lines == [f"worker 1 of second: {said}"]


def program_of(folder: Path, text: str) -> str:
    """Write a program of the shell; return its path."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    program.chmod(0o700)
    return str(program)


def test_a_process_that_dies_may_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second failure on there is a pause; the system killed it here, say for its memory."""
    launcher = LocalLauncher(write=lambda _: None)
    monkeypatch.setattr(sys, "executable", program_of(tmp_path, "echo 'no memory' >&2\nkill -9 $$"))
    failures, began_at = [], time.monotonic()
    for _ in range(3):
        with pytest.raises(LicorneError) as caught:
            launcher.start("second", NEVER)
        failures.append((type(caught.value), str(caught.value)))

    text = "a worker ended by signal 9 before it listened: no memory"
    assert failures == [(LicorneError, text)] * 3
    assert time.monotonic() - began_at >= 0.2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills them")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Also one whose interpreter hangs, so that it hears nothing."""
    program = f"import sys; sys.executable = {faulty_interpreter(tmp_path)!r}\n{PARENT}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:  # noqa: S603 - ours
        assert parent.stdout is not None
        worker, spare = parent.stdout.readline().split()
        os.kill(int(worker), HANG)
        parent.kill()

    wait_until(lambda: not is_alive(int(worker)) and not is_alive(int(spare)))


def test_workers_live_longer_than_the_thread_that_asked_for_them(launcher: LocalLauncher) -> None:
    """The system kills them with the thread that has started them: links come and go."""
    found: list[LaunchedWorker] = []
    asking = threading.Thread(target=lambda: found.append(launcher.start("second", NEVER)))
    asking.start()
    asking.join()
    (worker,) = found
    client, _ = registered(worker)

    with client:
        assert not process_of(launcher, worker).wait_for_end(0.2)


@pytest.fixture(scope="module")
def serving() -> Iterator[ServingProcess]:
    """Return a worker that has no access rules of its own."""
    process = ServingProcess(["--address", "127.0.0.1:0", "--rest-address", "127.0.0.1:0"], lambda _: None)
    process.wait_for_address(NEVER, 60)
    yield process
    process.kill()


@pytest.mark.parametrize("token", ["", "0123456789abcdef0123456789abcdef"])
def test_a_worker_refuses_who_does_not_have_its_token(serving: ServingProcess, token: str) -> None:
    """Over gRPC and over REST: any program on the machine could speak for the resource manager."""
    with RemoteScheduler(serving.address, token=serving.token) as client:
        url = f"http://{client.rest_address}/ws/v1/partitions"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    known = {"Authorization": f"Bearer {serving.token}"}

    with pytest.raises(ConnectionLostError, match="UNAUTHENTICATED"):
        RemoteScheduler(serving.address, token=token or None)
    assert [401, 200] == [httpx.get(url, headers=each).status_code for each in (headers, known)]


@pytest.mark.skipif(sys.platform != "linux", reason="it reads what Linux shows of processes")
def test_the_token_of_a_worker_is_shown_nowhere(serving: ServingProcess) -> None:
    """Whoever may list processes sees their arguments, and their owner the environment."""
    shown = [Path(f"/proc/{serving.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
    worker = LaunchedWorker("default", serving.address, 1, serving.token)

    assert [False, False] == [serving.token.encode() in each for each in shown]
    assert serving.token not in repr(worker)


def test_ctrl_c_for_the_door_does_not_reach_the_workers(launcher: LocalLauncher) -> None:
    """The terminal sends it to all processes of the door's group; the door ends them in order."""
    process = process_of(launcher, launcher.start("second", NEVER))

    assert os.getpgid(process.pid) == process.pid


def test_a_line_in_json_gets_the_worker_as_a_field() -> None:
    """It stays one object; what only looks like one is text."""
    said = line_of("worker 1 of a", '{"level": "info", "message": "RM"}')

    assert json.loads(said) == {"level": "info", "message": "RM", "worker": "worker 1 of a"}
    assert line_of("worker 1 of a", "{no") == "worker 1 of a: {no"


def test_a_stopped_worker_is_killed_when_it_is_lost(launcher: LocalLauncher) -> None:
    """SIGSTOP cannot keep it."""
    worker = launcher.start("second", NEVER)
    process = process_of(launcher, worker)
    os.kill(process.pid, signal.SIGSTOP)
    launcher.lost(worker)

    assert process.wait_for_end(WAIT_SECONDS)
