"""The part of a resource manager (RM) in another process in a state dump: asked for, with a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.waiting import WAIT_SECONDS

from licorne import RemoteScheduler
from licorne.proxy.si.api import StateDumpPlugin
from licorne.proxy.views.dumps import state_dump
from licorne.proxy.wire.client import callbacks
from licorne.proxy.wire.client.recovery_parts import watcher_of
from licorne.proxy.wire.server import later_answers

if TYPE_CHECKING:
    from .conftest import Served


class Diagnosed(Listener):
    """Makes its part of a state dump by a function."""

    def __init__(self, make: Callable[[], str]) -> None:
        super().__init__()
        self.get_state_dump = make


def fails() -> str:
    raise RuntimeError("not now")


def diagnostics(served: Served) -> Any:
    """Return what a state dump says of the RMs."""
    return state_dump(served.scheduler)["rmDiagnostics"]


def test_the_manager_is_asked_over_its_connection(served: Served) -> None:
    """Its answer is shown as that of one in this process; an RM without the method is not asked."""
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("silent", Listener(), configuration=ONE)
        assert "empty" in diagnostics(served)
        scheduler.register("rm", Diagnosed(lambda: '{"cache": [1]}'), configuration=ONE)
        assert [{"cache": [1]}] * 2 == [diagnostics(served), diagnostics(served)]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (fails, "RuntimeError: not now"),
        (lambda: "{", "JSONDecodeError: "),
        (lambda: '"\ud800"', "UnicodeEncodeError: "),
        (dict, "AttributeError: "),
        (lambda: "1" * 11, "has 11 bytes, more than 10"),
    ],
)
def test_what_the_manager_raises_is_shown(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, make: Callable[[], str], expected: str
) -> None:
    """As for one in this process; so is a text that cannot be read, or not be sent."""
    monkeypatch.setattr(callbacks, "TEXT_BYTES_MAX", 10)
    served = serve()
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", Diagnosed(make), configuration=ONE)
        assert expected in diagnostics(served)["Error"]
        assert scheduler.is_connected


def test_a_manager_that_is_slow_holds_up_nobody(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dump says so after the deadline; the RM's asks are placed meanwhile, and it is not asked twice."""
    go_on, ended = threading.Event(), threading.Event()

    def waits() -> str:
        go_on.wait(WAIT_SECONDS)
        ended.set()
        return "{}"

    served = serve()
    slow = Diagnosed(waits)
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", slow, configuration=ONE)
        monkeypatch.setattr(later_answers, "ANSWER_SECONDS", 0.05)
        assert diagnostics(served) == {"Error": "RM 'rm' gave no answer within 0.05 s"}
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("task"))
        slow.wait_for("placed task")
        monkeypatch.setattr(later_answers, "ANSWER_SECONDS", WAIT_SECONDS)
        assert diagnostics(served) == {"Error": "RM 'rm' still works on an earlier state dump"}
        assert not ended.is_set()
        go_on.set()


def test_a_lost_connection_is_an_answer(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, while the RM still works."""
    monkeypatch.setattr(later_answers, "ANSWER_SECONDS", 10 * WAIT_SECONDS)
    served = serve()
    go_on = threading.Event()
    with CuttingProxy(int(served.address.rpartition(":")[2])) as proxy:

        def loses() -> str:
            proxy.cut()
            go_on.wait(WAIT_SECONDS)
            return "{}"

        with RemoteScheduler(proxy.address) as scheduler:
            scheduler.register("rm", Diagnosed(loses), configuration=ONE)
            lost = "the connection of RM 'rm' is lost, or it does not read what is sent"
            assert diagnostics(served) == {"Error": lost}
            go_on.set()


def test_a_stepped_scheduler_says_that_it_does_not_ask(serve: Callable[..., Served]) -> None:
    """The RM listens only inside of its calls."""
    served = serve("direct")
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", Diagnosed(fails), configuration=ONE)
        text = "RM 'rm' is not asked over its connection, since the scheduler is stepped"
        assert diagnostics(served) == {"Error": text}


def test_a_recovery_passes_the_question_on() -> None:
    """The callback that it registers has the method only if that of the RM has it."""

    def watched(callback: Listener) -> object:
        return watcher_of(callback, lambda _: None, lambda it: it, lambda it: it)

    found = watched(Diagnosed(lambda: "{}"))
    assert isinstance(found, StateDumpPlugin)
    assert found.get_state_dump() == "{}"
    assert not isinstance(watched(Listener()), StateDumpPlugin)
