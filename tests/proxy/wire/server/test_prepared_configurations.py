"""A configuration in two phases at servers: sessions that end, files that change, two workers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    BROKEN,
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    keys,
    node_request,
)
from support.proxy.processes import serving
from support.proxy.running_scheduler import begin, refused, running
from support.waiting import WAIT_SECONDS, wait_until

from licorne import ConnectionLostError, RemoteScheduler, Scheduler
from licorne.model.configuration.reader import load
from licorne.model.configuration.schema import SchedulerConfig
from licorne.model.values.states import ManagerState
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.core.scheduler.managers import registrations
from licorne.proxy.core.scheduler.prepared_configuration import PreparedConfiguration
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.server.core import ConfigurationFile
from licorne.proxy.wire.server.server import ServerThread

from .conftest import Served

CHANGED: Final = TWO.replace("name: leaf", "name: changed")
LATE: Final = "the configuration that was prepared for RM 'rm' cannot be committed: "


def prepare(scheduler: Scheduler | RemoteScheduler, text: str = CHANGED) -> PreparedConfiguration:
    return scheduler.prepare_configuration(configuration_request(text))


@pytest.fixture(params=ENGINES)
def client(request: pytest.FixtureRequest) -> Iterator[RemoteScheduler]:
    """Give a client whose RM has registered."""
    with (
        ServerThread(Scheduler(engine=request.param)) as server,
        RemoteScheduler(server.address) as scheduler,
    ):
        scheduler.register("rm", Listener(), configuration=TWO)
        yield scheduler


# --------------------------------------------------------------------------------------- one session


def test_a_client_commits_and_abandons(client: RemoteScheduler) -> None:
    """As in process; the request may be changed meanwhile."""
    request = configuration_request(CHANGED)
    before = client.snapshot()
    with client.prepare_configuration(request) as prepared:
        assert (TWO, before) == (client.configuration_text("rm"), client.snapshot())
    ended = refused(prepared.commit)
    prepared = client.prepare_configuration(request)
    request.config = "something else"
    prepared.commit()

    assert "the configuration that was prepared for RM 'rm' has been committed or abandoned" == ended
    assert CHANGED == client.configuration_text("rm")


@dataclass(frozen=True, slots=True)
class _Late:
    act: Callable[[RemoteScheduler], object]
    """What comes between."""
    why: str


BETWEEN: Final = {
    "an update": _Late(
        lambda client: client.update_configuration(configuration_request(ONE)),
        LATE + "the configuration has been updated since",
    ),
    "another one that is prepared": _Late(prepare, LATE + "another one has been prepared since"),
    "another registration": _Late(
        lambda client: client.register("rm", Listener(), configuration=TWO),
        LATE + "the RM has registered again since",
    ),
    "a stop": _Late(
        lambda client: client.stop_manager("rm", "it ends"),
        "received UpdateConfigurationRequest, but RM 'rm' has stopped: it ends; register again",
    ),
}


@pytest.mark.parametrize("late", BETWEEN.values(), ids=BETWEEN)
def test_a_commit_after_another_change_is_refused(client: RemoteScheduler, late: _Late) -> None:
    """With the words of a scheduler in process; nothing changes."""
    prepared = prepare(client)
    late.act(client)
    before = (client.configuration_text("rm"), client.snapshot())

    assert late.why == refused(prepared.commit)
    assert before == (client.configuration_text("rm"), client.snapshot())


def test_what_is_refused_leaves_what_was_prepared(client: RemoteScheduler) -> None:
    """Its errors have their positions, and numbers that were not given stand for nothing."""
    prepared = prepare(client)
    said = refused(lambda: prepare(client, BROKEN))
    other = v1.ConfigurationChange(rm_id="rm", number=prepared.number + 1)
    client._call(v1.ManagerMessage(abandon_configuration=other))
    unknown = refused(lambda: client._call(v1.ManagerMessage(commit_configuration=other)))
    prepared.commit()

    assert "queues.yaml:5:" in said
    assert LATE + "another one has been prepared since" == unknown
    assert CHANGED == client.configuration_text("rm")


def test_another_session_commits_nothing_of_it(served: Served) -> None:
    """Nor does one to which nothing was given, by the same number."""
    with RemoteScheduler(served.address) as first, RemoteScheduler(served.address) as second:
        first.register("rm", Listener(), configuration=TWO)
        change = v1.ConfigurationChange(rm_id="rm", number=prepare(first).number)
        message = v1.ManagerMessage(commit_configuration=change)
        foreign = refused(lambda: second._call(message))
        second.register("rm", Listener(), configuration=TWO)
        own = refused(lambda: second._call(message))

    assert "RM 'rm' has not registered in this session" == foreign
    assert LATE + "none is prepared in this session" == own


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_a_commit_while_everything_runs(engine: EngineName) -> None:
    """What is asked before and after the two phases is placed, and a new maximum holds."""
    listener = Listener()
    with running(engine) as scheduler:
        begin(scheduler, listener)
        for number in range(20):
            text = ONE.replace("{name: leaf}", f"{{name: leaf}}, {{name: other-{number}}}")
            scheduler.update_allocation(ask_request(*keys(10, f"a{number}")))
            prepared = prepare(scheduler, text)
            scheduler.update_allocation(ask_request(*keys(10, f"b{number}")))
            if number % 2:
                prepared.commit()
            else:
                prepared.abandon()
        listener.wait_for_count("placed ", 400)
        scheduler.validate()

        assert text == scheduler.configuration_text("rm")


# ------------------------------------------------------------------------------------ files, large texts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "queues.yaml"
    path.write_text(TWO, encoding="utf-8")
    return path


def test_an_empty_text_means_the_file_of_the_server(serve: Callable[..., Served], file: Path) -> None:
    """Only with the commit the RM runs on it; later changes of the file reach it then."""
    served = serve(configuration=ConfigurationFile(file))
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", Listener(), configuration=ONE)
        prepare(scheduler, "").abandon()
        prepared = prepare(scheduler, "")
        before = scheduler.configuration_text("rm")
        prepared.commit()

        assert (ONE, TWO) == (before, scheduler.configuration_text("rm"))
        assert ("",) == tuple(known.request.request.config for known in scheduler._registered.values())


@pytest.mark.parametrize("own", ["", ONE])
def test_a_file_that_changes_between_is_not_undone(file: Path, own: str) -> None:
    """Neither for an RM that runs on it already nor for one that was about to."""
    with serving("--config", str(file)) as server, RemoteScheduler(server.address) as scheduler:
        scheduler.register("rm", Listener(), configuration=own)
        scheduler.register("on file", Listener())
        prepared = prepare(scheduler, "")
        file.write_text(CHANGED, encoding="utf-8")
        wait_until(lambda: scheduler.configuration_text("on file") == CHANGED, "the new file counts")
        why = "the file of the server has changed since"

        assert LATE + why == refused(prepared.commit)
        assert (own or CHANGED) == scheduler.configuration_text("rm")


def test_large_texts_are_prepared_one_at_a_time(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are registered; a commit does not wait for them."""
    large = ONE + "#" * (64 << 10)
    may_go_on, at_once, most = threading.Event(), 0, 0

    def slow(text: str) -> SchedulerConfig:
        nonlocal at_once, most
        if len(text) >= len(large):
            at_once += 1
            most = max(most, at_once)
            may_go_on.wait(WAIT_SECONDS)
            at_once -= 1
        return load(text)

    served = serve()
    names = [f"rm-{number}" for number in range(4)]
    with ExitStack() as stack, futures.ThreadPoolExecutor(len(names)) as pool:
        clients = [stack.enter_context(RemoteScheduler(served.address)) for _ in names]
        for client, name in zip(clients, names, strict=True):
            client.register(name, Listener(), configuration=ONE)
        last = clients[0].prepare_configuration(configuration_request(large + "#", rm_id=names[0]))
        monkeypatch.setattr(registrations, "load", slow)
        requests = [configuration_request(large, rm_id=name) for name in names]
        waiting = [
            pool.submit(client.prepare_configuration, request)
            for client, request in zip(clients[1:], requests[1:], strict=True)
        ]
        wait_until(lambda: at_once, "a large one is read")
        last.commit()
        text = clients[0].configuration_text(names[0])
        may_go_on.set()
        for each in waiting:
            each.result().commit()

        assert (1, large + "#") == (most, text)
        assert [large] * 3 == [
            client.configuration_text(name) for client, name in zip(clients[1:], names[1:], strict=True)
        ]


# --------------------------------------------------------------------------------- sessions that end

KILLED: Final = """
import sys, time
from licorne import RemoteScheduler, ResourceManager
from licorne.proxy.si import si_pb2 as si

scheduler = RemoteScheduler(sys.argv[1])
scheduler.register("rm", ResourceManager(), configuration=sys.argv[2])
request = si.UpdateConfigurationRequest(rmID="rm", config=sys.argv[3])
print(scheduler.prepare_configuration(request).number, flush=True)
time.sleep(60)
"""


def test_a_client_that_is_killed_has_changed_nothing() -> None:
    """Its RM is paused with the configuration that it had; what it had prepared is gone."""
    with serving() as server, RemoteScheduler(server.address) as other:
        command = [sys.executable, "-c", KILLED, server.address, TWO, CHANGED]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own program
            assert process.stdout is not None
            number = int(process.stdout.readline())
            before = other.snapshot()
            process.kill()
        wait_until(
            lambda: other.resource_managers()[0].state is ManagerState.PAUSED, "the server has noticed"
        )
        assert (TWO, before) == (other.configuration_text("rm"), other.snapshot())

        other.register("rm", Listener(), configuration=TWO)
        change = v1.ConfigurationChange(rm_id="rm", number=number)
        message = v1.ManagerMessage(commit_configuration=change)
        assert LATE + "none is prepared in this session" == refused(lambda: other._call(message))
        prepare(other).commit()
        assert CHANGED == other.configuration_text("rm")


def test_what_a_session_drops_is_abandoned_at_the_scheduler(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer change, a message and the end of the session drop one; a commit does not."""
    abandoned: list[int] = []
    original = served.scheduler.prepare_configuration

    def noted(request: si.UpdateConfigurationRequest) -> PreparedConfiguration:
        prepared = original(request)
        note = partial(abandoned.append, prepared.number)
        return PreparedConfiguration(prepared.rm_id, prepared.number, prepared.commit, note)

    monkeypatch.setattr(served.scheduler, "prepare_configuration", noted)
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", Listener(), configuration=TWO)
        prepare(scheduler)
        prepare(scheduler).abandon()
        prepare(scheduler, ONE).commit()
        last = prepare(scheduler)
    wait_until(lambda: last.number in abandoned, "the end of the session abandons the last one")

    assert [1, 2, 4] == abandoned


def test_a_lost_connection_abandons_what_was_prepared_over_it(served: Served) -> None:
    """What is prepared over the next one is another change."""
    port = int(served.address.rpartition(":")[2])
    with CuttingProxy(port) as proxy, RemoteScheduler(proxy.address) as scheduler:
        scheduler.register("rm", Listener(), configuration=TWO)
        older = prepare(scheduler)
        proxy.cut()
        wait_until(lambda: not scheduler.is_connected, "the connection is lost")
        wait_until(lambda: scheduler.is_connected, "it is connected again")
        newer = prepare(scheduler, ONE)

        with pytest.raises(ConnectionLostError):
            older.commit()
        older.abandon()
        newer.commit()
        assert ONE == scheduler.configuration_text("rm")


# ------------------------------------------------------------------------------------- two workers


def start(worker: RemoteScheduler, partition: str) -> None:
    """Register with one partition; an ask runs there, and another one waits."""
    listener = Listener()
    worker.register("rm", listener, configuration=TWO, partitions=[partition])
    worker.update_node(node_request("node", memory=3, partition=partition))
    worker.update_application(application_request("app", partition=partition))
    listener.wait_for("accepted node", "accepted app")
    worker.update_allocation(ask_request("runs", memory=2, partition=partition))
    listener.wait_for("placed runs")
    worker.update_allocation(ask_request("waits", memory=2, partition=partition))


def states_of(*workers: RemoteScheduler) -> list[object]:
    for worker in workers:
        worker.validate()
    return [(worker.configuration_text("rm"), worker.snapshot()) for worker in workers]


def change(*workers: RemoteScheduler) -> object:
    """Change all workers together; return their states when all had prepared."""
    with ExitStack() as stack:
        prepared = [stack.enter_context(prepare(worker)) for worker in workers]
        meanwhile = states_of(*workers)
        for each in prepared:
            each.commit()
    return meanwhile


def test_two_workers_commit_one_change() -> None:
    """Real servers: nothing has changed when both have prepared, everything when both have committed."""
    with (
        serving() as server,
        serving() as other,
        RemoteScheduler(server.address) as first,
        RemoteScheduler(other.address) as second,
    ):
        start(first, "default")
        start(second, "second")
        before = states_of(first, second)
        meanwhile = change(first, second)

        assert before == meanwhile
        assert [CHANGED, CHANGED] == [each.configuration_text("rm") for each in (first, second)]
        partitions = [each.resource_managers()[0].partitions for each in (first, second)]
        assert [("default",), ("second",)] == partitions


def test_nothing_changes_anywhere_if_one_of_two_workers_refuses(serve: Callable[..., Served]) -> None:
    """Here the RM has stopped there; the first one abandons what it has prepared."""
    with RemoteScheduler(serve().address) as first, RemoteScheduler(serve().address) as second:
        start(first, "default")
        start(second, "second")
        second.stop_manager("rm", "it ends")
        before = states_of(first, second)

        assert "RM 'rm' has stopped: it ends; register again" in refused(lambda: change(first, second))
        assert before == states_of(first, second)
