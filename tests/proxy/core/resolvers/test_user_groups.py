"""Groups of users from end to end: configured, looked up at the door, changed while everything runs."""

from __future__ import annotations

import json
import pwd
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.proxy.ldap_folders import a_settings_folder
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.proxy.resolver_fakes import CountingResolver, WaitingResolver
from support.proxy.simulation_builders import simulated, written
from support.transcripts.transcript_witness import output_of

from licorne import RequestError, Scheduler
from licorne.proxy.core.resolvers.partition_resolvers import OperatingSystemResolver
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.play.simulation.workloads.scenario import read_scenario
from licorne.proxy.si import si_pb2 as si

ROOT = pwd.getpwuid(0).pw_name
NOBODY_THERE = "no-such-user-here"


def resolving_by(kind: str) -> str:
    """Return a configuration with a kind of resolver; `""` for none."""
    return ONE.replace("    queues:", f"    usergroupresolver: {{type: {kind!r}}}\n    queues:")


def of_user(request: si.ApplicationRequest, user: str) -> si.ApplicationRequest:
    for new in request.new:
        new.ugi.user = user
    return request


class Scene:
    """A stepped scheduler with one RM."""

    def __init__(self, scheduler: Scheduler, configuration: str) -> None:
        self.scheduler = scheduler
        self.listener = Listener()
        scheduler.register("rm", self.listener, configuration=configuration)

    def submit(self, application: str, user: str) -> list[str]:
        """Submit an application without groups; return what is heard of it."""
        self.scheduler.update_application(of_user(application_request(application), user))
        self.scheduler.deliver()
        return [text for text in self.listener.heard if application in text]

    def groups(self, application: str) -> list[str]:
        """Return the groups that the application has."""
        snapshot: Any = self.scheduler.snapshot()
        views = snapshot["applications"]["default"]
        found = [view["groups"] for view in views if view["applicationID"] == application]
        return [*found[0]]

    def reconfigure(self, configuration: str) -> None:
        self.scheduler.update_configuration(configuration_request(configuration))


@pytest.fixture(params=ENGINES)
def stepped(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    """Return a stepped scheduler of each engine."""
    engine: EngineName = request.param
    with Scheduler(engine=engine, stepped=True, check_direction=True) as scheduler:
        yield scheduler
        scheduler.validate()


@pytest.mark.parametrize(
    ("configuration", "user", "groups"),
    [
        *((text, NOBODY_THERE, [NOBODY_THERE]) for text in (ONE, resolving_by(""), resolving_by("nonsense"))),
        (resolving_by("os"), ROOT, [*OperatingSystemResolver().groups_of(ROOT)]),
    ],
)
def test_a_user_is_in_the_groups_that_the_resolver_knows(
    stepped: Scheduler, configuration: str, user: str, groups: list[str]
) -> None:
    """By default each user is in the group of the same name; a partition can ask the operating system."""
    scene = Scene(stepped, configuration)

    assert ["accepted app"] == scene.submit("app", user)
    assert groups == scene.groups("app")


def test_a_user_who_is_not_known_is_refused_with_name_and_cause(stepped: Scheduler) -> None:
    """The same configuration again changes nothing: who was asked is asked."""
    scene = Scene(stepped, resolving_by("os"))
    heard = scene.submit("app", NOBODY_THERE)

    scene.reconfigure(resolving_by("os"))

    assert [f"rejected app: user {NOBODY_THERE!r} is not known to the operating system"] == heard
    assert scene.submit("again", NOBODY_THERE)[0].startswith("rejected again: ")


def test_a_forced_application_of_a_user_who_is_not_known_is_taken(stepped: Scheduler) -> None:
    """It is in no group."""
    scene = Scene(stepped, resolving_by("os"))
    request = of_user(application_request("app"), NOBODY_THERE)
    request.new[0].tags["application.create.force"] = "true"

    stepped.update_application(request)
    stepped.deliver()

    assert ["accepted app"] == scene.listener.heard
    assert ["nogroup"] == scene.groups("app")


def test_the_kind_can_be_changed_while_everything_runs(stepped: Scheduler) -> None:
    """What was decided for earlier applications stays."""
    scene = Scene(stepped, ONE)
    scene.submit("first", NOBODY_THERE)

    scene.reconfigure(resolving_by("os"))
    heard = scene.submit("second", NOBODY_THERE)
    scene.reconfigure(resolving_by(""))
    heard += scene.submit("third", NOBODY_THERE)

    assert f"rejected second: user {NOBODY_THERE!r} is not known to the operating system" == heard[0]
    assert "accepted third" == heard[1]
    assert [NOBODY_THERE] == scene.groups("first")


def test_what_is_remembered_outlasts_another_configuration(
    stepped: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system is not asked again after a change that is not about users."""
    scene = Scene(stepped, resolving_by("os"))
    scene.submit("first", ROOT)
    monkeypatch.setattr(pwd, "getpwnam", None)

    scene.reconfigure(resolving_by("os") + "\n# changed")

    assert ["accepted second"] == scene.submit("second", ROOT)


def test_memory_lasts_by_the_clock_of_the_scheduler(
    stepped: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is asked for again when half a minute of virtual time has passed."""
    scene = Scene(stepped, resolving_by("os"))
    scene.submit("first", NOBODY_THERE)
    with monkeypatch.context() as patch:
        patch.setattr(pwd, "getpwnam", lambda _: pwd.getpwuid(0))
        heard = scene.submit("second", NOBODY_THERE)

        stepped.advance_to(stepped.now_ns() + 30_000_000_000)
        heard += scene.submit("third", NOBODY_THERE)

    assert heard[0].startswith("rejected second: user resolution failed, cached data returned: user ")
    assert "accepted third" == heard[1]


def test_a_registration_with_bad_settings_changes_nothing(tmp_path: Path) -> None:
    """An RM that was registered goes on with what it had."""
    folder = a_settings_folder(tmp_path, Port="0")
    with Scheduler(engine="direct", ldap_folder=folder) as scheduler:
        scene = Scene(scheduler, ONE)
        scene.submit("app", "bob")

        with pytest.raises(RequestError, match=r"Port: '0' is not a port"):
            scheduler.register("rm", Listener(), configuration=resolving_by("ldap"))

        assert ["bob"] == scene.groups("app")
        assert ["accepted second"] == scene.submit("second", "bob")


def test_a_configuration_with_bad_settings_changes_nothing(tmp_path: Path) -> None:
    """Neither the queues nor the resolver of the refused configuration come into effect."""
    folder = a_settings_folder(tmp_path, Host=None)
    with Scheduler(engine="direct", ldap_folder=folder) as scheduler:
        scene = Scene(scheduler, resolving_by("os"))

        with pytest.raises(RequestError, match=r"Host: the file is missing"):
            scene.reconfigure(resolving_by("ldap").replace("leaf", "other"))
        heard = scene.submit("app", ROOT) + scene.submit("second", NOBODY_THERE)

    assert ["accepted app"] == heard[:1]
    assert "is not known to the operating system" in heard[1]


def test_without_the_extra_a_registration_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named as pip takes it."""
    monkeypatch.setitem(sys.modules, "ldap3", None)
    with (
        Scheduler(engine="direct") as scheduler,
        pytest.raises(RequestError, match=r"the extra licorne\[ldap\]$"),
    ):
        scheduler.register("rm", Listener(), configuration=resolving_by("ldap"))


def test_a_slow_look_up_delays_its_request_and_no_scheduling() -> None:
    """While one RM waits for a directory, partitions go on placing, also for the same RM."""
    resolver = WaitingResolver()
    listener = Listener()
    with Scheduler(resolver=resolver) as scheduler:
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.update_node(node_request("node"))
        request = application_request("quick")
        request.new[0].ugi.groups.append("dev")
        scheduler.update_application(request)
        waiter = threading.Thread(target=scheduler.update_application, args=(application_request("slow"),))
        waiter.start()
        resolver.asked.acquire()

        scheduler.update_allocation(ask_request("task", application="quick"))
        listener.wait_for("placed task")
        scheduler.validate()

        resolver.may_answer.set()
        waiter.join()
        listener.wait_for("accepted slow")


def test_two_schedulers_do_not_share_what_they_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that one remembers is none for the other."""
    with Scheduler(engine="direct") as one, Scheduler(engine="direct") as other:
        scenes = [Scene(scheduler, resolving_by("os")) for scheduler in (one, other)]
        scenes[0].submit("first", NOBODY_THERE)
        monkeypatch.setattr(pwd, "getpwnam", lambda _: pwd.getpwuid(0))

        heard = [scene.submit("second", NOBODY_THERE) for scene in scenes]

    assert heard[0][0].startswith("rejected second: user resolution failed, cached data returned")
    assert ["accepted second"] == heard[1]


def test_an_embedder_can_bring_a_resolver(stepped: Scheduler) -> None:
    """It is asked whatever is configured; here on an engine of its own, beside another scheduler."""
    source = CountingResolver({"bob": ("dev",)})
    with Scheduler(engine="direct", resolver=source) as scheduler:
        scene = Scene(scheduler, resolving_by("ldap"))
        heard = scene.submit("app", "bob")
        groups = scene.groups("app")

    assert (["accepted app"], ["dev"]) == (heard, groups)
    assert ["bob"] == source.questions
    assert ["bob"] == _default_groups(stepped)


def _default_groups(scheduler: Scheduler) -> list[str]:
    """Return the groups of `bob` without a resolver."""
    scene = Scene(scheduler, ONE)
    scene.submit("app", "bob")
    return scene.groups("app")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_replay_asks_who_is_configured(engine: EngineName) -> None:
    """The output has the groups of this machine, the same on each engine."""
    new = [{"applicationID": user, "queueName": "root.leaf", "ugi": {"user": user}} for user in (ROOT, "zed")]
    lines = [
        {"register": {"rmID": "rm", "config": resolving_by("os")}},
        {"application": {"rmID": "rm", "new": new}},
        {"snapshot": True},
    ]

    _, answer, snapshot = map(json.loads, output_of("\n".join(map(json.dumps, lines)), engine))

    said = answer["applicationResponse"]
    assert [ROOT] == [entry["applicationID"] for entry in said["accepted"]]
    assert ["user 'zed' is not known to the operating system"] == [
        entry["reason"] for entry in said["rejected"]
    ]
    (view,) = [
        view for view in snapshot["snapshot"]["applications"]["default"] if view["applicationID"] == ROOT
    ]
    assert [*OperatingSystemResolver().groups_of(ROOT)] == view["groups"]


def test_a_simulation_asks_who_is_configured(tmp_path: Path) -> None:
    """Applications of users who are not known are in the report, with the reason."""
    scenario = """
nodes: [{prefix: n, resources: {vcore: 4}}]
applications:
  - {name: one, queue: root.leaf, user: §, tasks: [{resources: {vcore: 1}, duration: 1s}]}
  - {name: two, queue: root.leaf, user: zed, tasks: [{resources: {vcore: 1}, duration: 1s}]}
"""
    report = simulated(
        read_scenario(written(tmp_path / "day.yaml", scenario.replace("§", ROOT))),
        configuration=resolving_by("os"),
    )

    assert (1, 1) == (report.total.completed, report.total.rejected)
    assert ["user 'zed' is not known to the operating system"] == [entry.text for entry in report.rejections]
