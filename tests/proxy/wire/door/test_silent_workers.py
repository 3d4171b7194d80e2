"""A worker that says nothing while a resource manager (RM) calls the door: its other partitions go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from support.door.thread_workers import ThreadWorkers
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.waiting import WAIT_SECONDS

from licorne import RemoteScheduler, Scheduler
from licorne.proxy.core.scheduler.prepared_configuration import PreparedConfiguration
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.server.server import ServerThread

NEW = TWO.replace("{name: leaf}", "{name: leaf}, {name: more}")


class Hold:
    """Holds what a worker does until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.goes_on = threading.Event()

    def before(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return a step that is held."""

        def held(*arguments: Any) -> Any:
            self.reached.set()
            assert self.goes_on.wait(WAIT_SECONDS), "it was never let go"
            return step(*arguments)

        return held


@pytest.fixture
def hold() -> Iterator[Hold]:
    hold = Hold()
    yield hold
    hold.goes_on.set()


def hold_prepare(hold: Hold, scheduler: Scheduler, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduler, "prepare_configuration", hold.before(scheduler.prepare_configuration))


def hold_commit(hold: Hold, scheduler: Scheduler, patch: pytest.MonkeyPatch) -> None:
    known = scheduler.prepare_configuration

    def prepare(request: Any) -> PreparedConfiguration:
        prepared = known(request)
        commit = hold.before(prepared.commit)
        return PreparedConfiguration(prepared.rm_id, prepared.number, commit, prepared.abandon)

    patch.setattr(scheduler, "prepare_configuration", prepare)


def hold_answers(hold: Hold, scheduler: Scheduler, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduler, "answers", SimpleNamespace(answer=hold.before(scheduler.answers.answer)))


def reload(client: RemoteScheduler) -> None:
    client.update_configuration(configuration_request(NEW))


CALLS: dict[str, tuple[Any, Callable[[RemoteScheduler], object]]] = {
    "a reload that is prepared": (hold_prepare, reload),
    "a reload that is committed": (hold_commit, reload),
    "a question": (hold_answers, RemoteScheduler.snapshot),
}


@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS)
def test_requests_go_on_while_a_call_waits_for_a_worker(
    hold: Hold, case: tuple[Any, Callable[[RemoteScheduler], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the RM that calls, in its partitions whose workers answer."""
    held, call = case
    workers, listener = ThreadWorkers(), Listener()
    with (
        Door(workers) as door,
        ServerThread(door) as server,
        RemoteScheduler(server.address) as client,
        ThreadPoolExecutor(1) as calling,
    ):
        client.register("rm", listener, configuration=TWO)
        client.update_node(node_request("node"))
        client.update_application(application_request("app"))
        held(hold, workers.scheduler_of("second"), monkeypatch)
        waiting = calling.submit(call, client)
        assert hold.reached.wait(WAIT_SECONDS)
        client.update_allocation(ask_request("one"))
        listener.wait_for("placed one")
        assert not waiting.done()

        hold.goes_on.set()
        waiting.result(WAIT_SECONDS)
        monkeypatch.undo()
