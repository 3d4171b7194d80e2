"""What a client is told when it asks: the same as in the scheduler's own process."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request

from licorne import LicorneError, RemoteScheduler, RequestError, Scheduler
from licorne.model.explanation import Explanation
from licorne.proxy.base.process import is_compiled
from licorne.proxy.core.scheduler.answering.questions import DOCUMENTS, TITLES
from licorne.proxy.core.scheduler.answering.sent_values import (
    VALUE_VERSION,
    fields_of_kinds,
    value_from_json,
    value_to_json,
)
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.wire.server.server import ServerThread

WIRE: Final = Path(__file__).parents[3] / "data" / "wire"
QUESTIONS: Final[dict[str, Callable[[Any], object]]] = {
    "explain": lambda core: core.explain("app", partition="default"),
    "explain_ask": lambda core: core.explain_ask("app", "large"),
    "would_preempt": lambda core: core.would_preempt("app"),
    "queue_and_user": lambda core: core.queue_and_user("app"),
    "queue_and_user of none": lambda core: core.queue_and_user("other"),
    "dry_run": lambda core: core.dry_run(ask=ask_request("new", application="app").allocations[0]),
    "next_asks": lambda core: core.next_asks(7),
    "snapshot": lambda core: core.snapshot(rm_id="rm"),
    "saved": lambda core: core.saved(rm_id="rm"),
    "kept_use": lambda core: core.kept_use(rm_id="rm"),
    "resource_managers": lambda core: core.resource_managers(),
    "callbacks_waiting": lambda core: core.callbacks_waiting("rm"),
    "quarantined": lambda core: core.quarantined(),
    "configuration_text": lambda core: core.configuration_text("rm"),
    "extra_configuration": lambda core: core.extra_configuration("rm"),
    "health": lambda core: core.health(),
    "check_health": lambda core: core.check_health(),
    "figures": lambda core: core.figures(),
    "recorded_in": lambda core: str(core.recorded_in),
    "validate": lambda core: core.validate(),
}


@pytest.fixture
def both() -> Iterator[tuple[Scheduler, RemoteScheduler]]:
    """Return a stepped scheduler with an ask that waits, and a client of its server."""
    core = Scheduler(engine="direct")
    with ServerThread(core) as server, RemoteScheduler(server.address) as client:
        client.register("rm", Listener(), configuration=ONE)
        client.update_node(node_request("n1", memory=100))
        client.update_application(application_request("app"))
        client.update_allocation(ask_request("small", application="app", memory=10))
        client.update_allocation(ask_request("large", application="app", memory=1000))
        client.run_until_idle()
        yield core, client


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def _shared() -> list[str]:
    return sorted(_public(Scheduler) & _public(RemoteScheduler))


def _signature(kind: type, name: str) -> object:
    member = getattr(kind, name)
    return "a property" if isinstance(member, property) else inspect.signature(member)


def _first_line(kind: type, name: str) -> str:
    return (inspect.getdoc(getattr(kind, name)) or "").partition("\n")[0].partition(";")[0].rstrip(".")


def test_a_client_has_the_names_of_a_scheduler() -> None:
    """Only a client has a connection, and a thread behind it."""
    of_a_client = {
        *("connection", "is_connected", "rest_address", "run_behind_callbacks"),
        *("server_build", "server_version"),
    }
    assert of_a_client == _public(Scheduler) ^ _public(RemoteScheduler)


@pytest.mark.skipif(is_compiled(), reason="machine code does not say what its parameters are")
def test_a_client_has_the_signatures_of_a_scheduler() -> None:
    """A program that calls one can call the other."""
    assert [(name, _signature(Scheduler, name)) for name in _shared()] == [
        (name, _signature(RemoteScheduler, name)) for name in _shared()
    ]


def test_a_client_says_the_same_of_its_methods() -> None:
    """All but `stop` do the same on both; a client leaves the scheduler to others."""
    assert ["stop"] == [
        name for name in _shared() if _first_line(Scheduler, name) != _first_line(RemoteScheduler, name)
    ]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_client_gets_the_answer_of_the_scheduler(
    both: tuple[Scheduler, RemoteScheduler], name: str
) -> None:
    core, client = both

    found = QUESTIONS[name](client)

    if name in DOCUMENTS:
        assert QUESTIONS[name](core) == found
    else:  # Asks are not compared by their values.
        assert value_to_json(QUESTIONS[name](core)) == value_to_json(found)


def test_every_question_is_asked_here() -> None:
    """So that none is added to one side alone."""
    assert set(TITLES) == {name.partition(" ")[0] for name in QUESTIONS} - {"explain_ask"}


def test_a_question_that_is_refused_is_refused_at_the_client(
    both: tuple[Scheduler, RemoteScheduler],
) -> None:
    with pytest.raises(RequestError, match="count=0 is not from 1 to 250"):
        both[1].next_asks(0)


def test_a_client_pauses_and_stops_a_manager(both: tuple[Scheduler, RemoteScheduler]) -> None:
    core, client = both

    paused = client.pause_manager("rm", "the cable is out"), client.pause_manager("rm", "again")
    (status,) = core.resource_managers()
    stopped = client.stop_manager("rm", "no more", callback=Listener()), client.stop_manager("rm", "no more")

    assert (True, False) == paused
    assert "the cable is out" == status.reason
    assert (False, True) == stopped
    with pytest.raises(RequestError, match="no more"):
        client.update_node(node_request("n2", memory=1))


def test_a_client_keeps_the_history(both: tuple[Scheduler, RemoteScheduler]) -> None:
    core, client = both

    client.record_history()
    client.deliver_events()

    assert 1 == len(core.monitoring.history.applications())


def test_figures_are_the_same_document_without_a_version(both: tuple[Scheduler, RemoteScheduler]) -> None:
    """They have no document of the command line."""
    answer = both[1]._call(v1.ManagerMessage(question=v1.Question(figures=v1.Empty())))

    assert value_to_json(both[0].figures()) == value_to_json(value_from_json(answer.json))


@pytest.mark.parametrize(
    "question",
    [v1.Question(as_value=True, health=v1.Empty()), v1.Question(value_version=99, health=v1.Empty())],
)
def test_a_client_that_reads_other_answers_is_refused(
    both: tuple[Scheduler, RemoteScheduler], question: v1.Question
) -> None:
    with pytest.raises(RequestError, match=f"this server writes version {VALUE_VERSION}"):
        both[1]._call(v1.ManagerMessage(question=question))


# ------------------------------------------------------------------------------------------- the wire


def test_what_is_sent_is_the_version_that_is_noted() -> None:
    """A field or kind that is renamed, or a new field without a default, needs another version.

    The file is `fields_of_kinds()` of the version. What is added with a default is added to it.
    """
    kept = json.loads((WIRE / f"kinds_{VALUE_VERSION}.json").read_text(encoding="utf-8"))

    assert kept == fields_of_kinds()


@pytest.mark.parametrize(
    "line", (WIRE / f"answers_{VALUE_VERSION}.jsonl").read_text(encoding="utf-8").splitlines()
)
def test_answers_that_were_recorded_are_read(line: str) -> None:
    """They are of the first server of the version, to the questions above; it did not know all fields yet."""
    assert json.loads(line) == known_part(json.loads(value_to_json(value_from_json(line))), json.loads(line))


def known_part(written: Any, recorded: Any) -> Any:
    """Return what is written now, without the fields that the recorded answer does not have."""
    if isinstance(written, dict) and isinstance(recorded, dict):
        return {key: known_part(value, recorded[key]) for key, value in written.items() if key in recorded}
    if isinstance(written, list) and isinstance(recorded, list) and len(written) == len(recorded):
        return [known_part(*pair) for pair in zip(written, recorded, strict=True)]
    return written


def test_a_field_that_a_reader_does_not_know_is_left_out(both: tuple[Scheduler, RemoteScheduler]) -> None:
    explanation = both[0].explain("app")
    tree = json.loads(value_to_json(explanation))
    tree["of"]["later"] = {"kind": "mapping", "of": []}

    assert explanation == value_from_json(json.dumps(tree))


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"kind":"os:system","of":{}}', '{"kind":"Place","of":{}}', '{"kind":"AskStatus","of":"?"}'],
)
def test_a_text_that_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(LicorneError, match="the answer of the scheduler cannot be read"):
        value_from_json(text)


def test_a_value_that_is_not_sent_is_refused() -> None:
    with pytest.raises(TypeError, match="a PosixPath is not a value that can be sent"):
        value_to_json((Path("x"),))


def test_an_explanation_is_the_same_object_tree(both: tuple[Scheduler, RemoteScheduler]) -> None:
    found = both[1].explain("app")

    assert isinstance(found, Explanation)
    assert "large" in [ask.allocation_key for ask in found.asks]
