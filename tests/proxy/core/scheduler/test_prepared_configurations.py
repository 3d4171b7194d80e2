"""A configuration in two phases, on each engine step by step: what is refused, and what may come between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from support.proxy.ldap_folders import a_settings_folder
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    BROKEN,
    application_request,
    ask_request,
    configuration_request,
    node_request,
    release_request,
)
from support.proxy.recorded_traffic import Hearing, callbacks_in, recorded_lines, replayed
from support.proxy.running_scheduler import placed_in, refused

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName

BEFORE: Final = """
partitions:
  - name: default
    placementrules: [{name: provided, create: true}]
    queues: [{name: root, submitacl: '*', queues: [{name: leaf}, {name: gone}]}]
  - name: second
    queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]
"""
AFTER: Final = """
partitions:
  - name: default
    nodesortpolicy: {type: binpacking}
    placementrules: [{name: provided, create: true}]
    queues:
      - name: root
        submitacl: '*'
        queues:
          - {name: leaf, resources: {max: {memory: 3}}}
          - {name: dynamic, maxapplications: 1}
  - name: third
    queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]
"""
UNUSABLE: Final = BEFORE.replace("name: provided", "name: unheard")
Act = Callable[[Scheduler], object]


def register(scheduler: Scheduler, listener: Listener | None = None) -> None:
    """Register with something that runs and something that waits."""
    scheduler.register(
        "rm", listener or Listener(), configuration=BEFORE, extra_configuration={"log.level": "WARN"}
    )
    for partition in ("default", "second"):
        application = f"app-{partition}"
        scheduler.update_node(node_request(f"node-{partition}", memory=10, partition=partition))
        scheduler.update_application(application_request(application, partition=partition))
        asks = [f"runs-{partition}", f"waits-{partition}"]
        for key, memory in zip(asks, (2, 500), strict=True):
            scheduler.update_allocation(
                ask_request(key, application=application, memory=memory, partition=partition)
            )
    scheduler.run_until_idle()


def state_of(scheduler: Scheduler) -> object:
    """Return all that a change could have touched."""
    scheduler.validate()
    states = scheduler.resource_managers()
    extra = [scheduler.extra_configuration(state.rm_id) for state in states]
    return (states, extra, scheduler.configuration_text("rm"), scheduler.snapshot())


def prepare(scheduler: Scheduler) -> None:
    scheduler.prepare_configuration(configuration_request(AFTER))


def update(scheduler: Scheduler, text: str = AFTER) -> None:
    scheduler.update_configuration(configuration_request(text))


# ------------------------------------------------------------------------------- committed, abandoned


def test_nothing_changes_before_the_commit(scheduler: Scheduler) -> None:
    """Scheduling goes on by the configuration of before, and the commit changes all of it at once."""
    register(scheduler)
    before = state_of(scheduler)

    prepared = scheduler.prepare_configuration(configuration_request(AFTER))
    assert before == state_of(scheduler)
    scheduler.update_allocation(ask_request("five", application="app-default", memory=5))
    scheduler.run_until_idle()
    placed = placed_in(scheduler)
    prepared.commit()

    assert 3 == placed
    assert AFTER == scheduler.configuration_text("rm")
    assert ("default", "third") == scheduler.resource_managers()[0].partitions
    assert {} == dict(scheduler.extra_configuration("rm").texts)


def test_an_abandoned_one_leaves_nothing(scheduler: Scheduler) -> None:
    """It cannot be committed any more; to abandon it twice, or when it has been committed, does nothing."""
    register(scheduler)
    before = state_of(scheduler)

    with scheduler.prepare_configuration(configuration_request(AFTER)) as prepared:
        pass
    prepared.abandon()
    ended = "the configuration that was prepared for RM 'rm' has been committed or abandoned"

    assert ended == refused(prepared.commit)
    assert before == state_of(scheduler)
    with scheduler.prepare_configuration(configuration_request(AFTER)) as prepared:
        prepared.commit()
    assert ended == refused(prepared.commit)
    assert AFTER == scheduler.configuration_text("rm")


def test_the_text_in_use_may_be_prepared_with_other_settings(scheduler: Scheduler) -> None:
    """Nothing else changes then."""
    register(scheduler)
    before = scheduler.snapshot()
    request = configuration_request(BEFORE)
    request.extraConfig["log.level"] = "DEBUG"

    prepared = scheduler.prepare_configuration(request)
    request.extraConfig["log.level"] = "ERROR"
    prepared.commit()

    assert {"log.level": "DEBUG"} == dict(scheduler.extra_configuration("rm").texts)
    assert before == scheduler.snapshot()


# -------------------------------------------------------------------------------------------- refused

REFUSED: Final[dict[str, tuple[Act, str, str]]] = {
    "a text with errors": (lambda _: None, BROKEN, "queues.yaml:5:"),
    "rules that cannot be used": (lambda _: None, UNUSABLE, "queues.yaml:4:29: "),
    "settings of a directory server that are not there": (
        lambda _: None,
        AFTER.replace("- name: third", "- name: third\n    usergroupresolver: {type: ldap}"),
        "the user group resolver 'ldap' cannot be used",
    ),
    "a manager that has stopped": (
        lambda scheduler: scheduler.stop_manager("rm", "it has shut down"),
        AFTER,
        "received UpdateConfigurationRequest, but RM 'rm' has stopped: it has shut down; register again",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_an_update_refuses_is_refused_at_once(scheduler: Scheduler, case: tuple[Act, str, str]) -> None:
    """With the same words, and nothing has changed."""
    first, text, why = case
    register(scheduler)
    first(scheduler)
    before = state_of(scheduler)
    request = configuration_request(text)

    said = refused(lambda: scheduler.prepare_configuration(request))

    assert why in said
    assert refused(lambda: scheduler.update_configuration(request)) == said
    assert before == state_of(scheduler)


def test_a_manager_that_is_not_there_prepares_nothing(scheduler: Scheduler) -> None:
    """Nor does one whose scheduler has been stopped."""
    request = configuration_request(AFTER)
    unknown = refused(lambda: scheduler.prepare_configuration(request))
    scheduler.stop()

    assert "update of configuration failed: RM rm has no active partitions" in unknown
    assert "the scheduler has been stopped" == refused(lambda: scheduler.prepare_configuration(request))


# ------------------------------------------------------------------------------------ what comes between


@dataclass(frozen=True, slots=True)
class _Late:
    act: Act
    """What comes between."""
    why: str


def _forget(scheduler: Scheduler) -> None:
    scheduler.stop_manager("rm", "it has shut down")
    scheduler.forget_manager("rm")


def _come_back(scheduler: Scheduler) -> None:
    _forget(scheduler)
    register(scheduler)


LATE: Final = {
    "an update": _Late(partial(update, text=BEFORE + "# again"), "the configuration has been updated since"),
    "an update to the text in use": _Late(
        partial(update, text=BEFORE), "the configuration has been updated since"
    ),
    "an update to the same text": _Late(update, "the configuration has been updated since"),
    "another one that is prepared": _Late(prepare, "another one has been prepared since"),
    "another registration": _Late(register, "the RM has registered again since"),
    "the end of the manager and another registration": _Late(_come_back, "the RM has registered again since"),
    "the end of the manager": _Late(_forget, "the RM has been forgotten since"),
    "a stop of the manager": _Late(
        lambda scheduler: scheduler.stop_manager("rm", "it has shut down"),
        "received UpdateConfigurationRequest, but RM 'rm' has stopped: it has shut down; register again",
    ),
}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
def test_a_commit_after_another_change_is_refused(scheduler: Scheduler, late: _Late) -> None:
    """It would undo what was said later; nothing changes."""
    register(scheduler)
    prepared = scheduler.prepare_configuration(configuration_request(AFTER))
    late.act(scheduler)
    before = state_of(scheduler)
    said = refused(prepared.commit)

    start = "the configuration that was prepared for RM 'rm' cannot be committed: "
    assert late.why == said.removeprefix(start)
    assert before == state_of(scheduler)


def test_a_commit_after_the_end_of_the_scheduler_is_refused(scheduler: Scheduler) -> None:
    """As every request."""
    register(scheduler)
    prepared = scheduler.prepare_configuration(configuration_request(AFTER))
    scheduler.stop()

    assert "the scheduler has been stopped" == refused(prepared.commit)


def _work(scheduler: Scheduler) -> None:
    """Carry out requests of all kinds; dynamic queues come and go, also one that is configured afterwards."""
    scheduler.update_node(node_request("new", memory=20))
    for name in ("dynamic", "passing", "gone"):
        scheduler.update_application(application_request(name, queue=f"root.{name}"))
        scheduler.update_allocation(ask_request(f"in-{name}", application=name))
    scheduler.run_until_idle()
    scheduler.update_allocation(release_request("in-passing", application="passing"))
    scheduler.update_allocation(release_request("runs-default", application="app-default"))
    scheduler.advance_to(scheduler.now_ns() + 120_000_000_000)


def _refuse_others(scheduler: Scheduler) -> None:
    for text in (BROKEN, UNUSABLE):
        refused(partial(update, scheduler, text))
        refused(lambda text=text: scheduler.prepare_configuration(configuration_request(text)))  # type: ignore[misc]
    refused(lambda: scheduler.register("rm", Listener(), configuration=BROKEN))


def _abandon_another(scheduler: Scheduler) -> None:
    scheduler.register("other", Listener(), configuration=BEFORE)
    scheduler.prepare_configuration(configuration_request(AFTER, rm_id="other")).abandon()


HARMLESS: Final[dict[str, Act]] = {
    "requests": _work,
    "a pause": lambda scheduler: scheduler.pause_manager("rm", "its connection is lost"),
    "changes that are refused": _refuse_others,
    "another manager": _abandon_another,
}


@pytest.mark.parametrize("act", HARMLESS.values(), ids=HARMLESS)
def test_a_commit_does_what_an_update_would_do_then(scheduler: Scheduler, act: Act) -> None:
    """Whatever has come between: compared with a scheduler in which nothing was prepared."""
    with Scheduler(engine=scheduler.engine_name, stepped=True) as twin:
        register(scheduler)
        register(twin)
        prepared = scheduler.prepare_configuration(configuration_request(AFTER))
        act(scheduler)
        act(twin)
        prepared.commit()
        update(twin)
        _work(scheduler)
        _work(twin)

        assert state_of(twin) == state_of(scheduler)


def test_the_settings_of_a_directory_server_are_those_of_the_preparation(tmp_path: Path) -> None:
    """They may be gone when it is committed."""
    folder = a_settings_folder(tmp_path)
    with Scheduler(engine="direct", ldap_folder=folder) as scheduler:
        register(scheduler)
        text = AFTER.replace("- name: third", "- name: third\n    usergroupresolver: {type: ldap}")
        prepared = scheduler.prepare_configuration(configuration_request(text))
        (folder / "Host").unlink()
        prepared.commit()

        assert text == scheduler.configuration_text("rm")


# -------------------------------------------------------------------------------------------- recorded


@pytest.mark.parametrize("engine", ["direct", "actors"])
def test_a_recording_has_the_commit_alone(engine: EngineName, tmp_path: Path) -> None:
    """At its own moment, and it replays; one that is abandoned, or committed too late, leaves no line."""
    listener = Hearing()
    with Scheduler(engine=engine, stepped=True, record=tmp_path) as scheduler:
        register(scheduler, listener)
        scheduler.prepare_configuration(configuration_request(BEFORE + "# never")).abandon()
        older = scheduler.prepare_configuration(configuration_request(BEFORE + "# late"))
        prepared = scheduler.prepare_configuration(configuration_request(AFTER))
        refused(older.commit)
        _work(scheduler)
        prepared.commit()
        committed_ns = scheduler.now_ns()
        _work(scheduler)
    lines = [line for line in recorded_lines(tmp_path) if "configuration" in line]

    assert [(AFTER, committed_ns)] == [(line["configuration"]["config"], line["at"]) for line in lines]
    assert callbacks_in(replayed(tmp_path), "rm") == listener.callbacks
