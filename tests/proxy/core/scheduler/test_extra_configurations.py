"""What `extraConfig` does: settings that replace each other, and levels of logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest
from loguru import logger
from support.proxy.manager_requests import application_request, ask_request, node_request, release_request

from licorne import RequestError, ResourceManager, Scheduler
from licorne.model.configuration.extra import ExtraConfig, LogLevel
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from loguru import Message

ONE: Final = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
OTHER: Final = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: r}]}]}]"
BROKEN: Final = "partitions: [{name: default, queues: [{name: 'no.dots'}]}]"


@pytest.fixture
def said() -> Iterator[list[str]]:
    """Collect all that a program with an open ear hears of Licorne."""
    kept: list[str] = []

    def keep(message: Message) -> None:
        record = message.record
        kept.append(f"{record['extra'].get('logger')} {record['level'].name} {record['message']}")

    sink = logger.add(keep, level=0)
    logger.enable("licorne")
    yield kept
    logger.disable("licorne")
    logger.remove(sink)


class Deaf(ResourceManager):
    """Fails in every callback."""

    def update_node(self, response: si.NodeResponse) -> None:
        raise ValueError(f"deaf to {response}")


def update(scheduler: Scheduler, text: str, rm_id: str = "rm", **extra: str) -> None:
    settings = {key.replace("_", "."): value for key, value in extra.items()}
    scheduler.update_configuration(
        si.UpdateConfigurationRequest(rmID=rm_id, config=text, extraConfig=settings)
    )


def fail(scheduler: Scheduler, rm_id: str = "rm") -> None:
    """Let a callback of a deaf manager fail."""
    scheduler.update_node(node_request("n", rm_id=rm_id))
    scheduler.deliver()


# ------------------------------------------------------------------------------------- the settings


def test_a_registration_brings_its_settings(scheduler: Scheduler) -> None:
    """All that other parts will ask for."""
    extra = {"event.trackingEnabled": "false", "health.checkInterval": "5s"}
    scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)

    settings = scheduler.extra_configuration("rm")

    assert (False, 5.0) == (settings.event_tracking_enabled, settings.health_check_interval_seconds)


@pytest.mark.parametrize("text", [ONE, OTHER])
def test_an_update_replaces_the_settings_as_a_whole(scheduler: Scheduler, text: str) -> None:
    """Also where the queues are the same; what is not named has its default, also when it registers."""
    extra = {"event.maxStreams": "7", "log.level": "ERROR"}
    scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)

    update(scheduler, text, event_requestCapacity="5")

    assert ExtraConfig(event_request_capacity=5) == scheduler.extra_configuration("rm")
    scheduler.register("rm", ResourceManager(), configuration=ONE)
    assert ExtraConfig() == scheduler.extra_configuration("rm")


def test_what_comes_with_a_refused_configuration_is_refused_with_it(scheduler: Scheduler) -> None:
    """A refused update or registration changes nothing at all."""
    extra = {"event.maxStreams": "7"}
    scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)

    with pytest.raises(RequestError, match="update of configuration failed"):
        update(scheduler, BROKEN, event_maxStreams="8")
    with pytest.raises(RequestError, match="registration of RM failed"):
        scheduler.register("rm", ResourceManager(), configuration=BROKEN)

    assert 7 == scheduler.extra_configuration("rm").event_max_streams


def test_each_manager_has_its_own_settings(scheduler: Scheduler) -> None:
    """One does not change those of another."""
    for rm_id, streams in (("a", "1"), ("b", "2")):
        extra = {"event.maxStreams": streams}
        scheduler.register(rm_id, ResourceManager(), configuration=ONE, extra_configuration=extra)
    update(scheduler, ONE, "b", event_maxStreams="3")

    assert [1, 3] == [scheduler.extra_configuration(name).event_max_streams for name in ("a", "b")]


def test_a_manager_that_has_not_registered_has_no_settings(scheduler: Scheduler) -> None:
    """To ask for them is refused, as other requests of it are."""
    with pytest.raises(RequestError, match='RmID="nobody" not registered'):
        scheduler.extra_configuration("nobody")


# ------------------------------------------------------------------------------------------- warnings


@pytest.mark.parametrize("way", ["registration", "update"])
def test_what_cannot_be_used_is_a_warning(scheduler: Scheduler, said: list[str], way: str) -> None:
    """Nothing in it makes a request fail."""
    if way == "registration":
        extra = {"event.maxStreams": "many", "service.clusterId": "mine"}
        scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)
    else:
        scheduler.register("rm", ResourceManager(), configuration=ONE)
        update(scheduler, ONE, event_maxStreams="many", service_clusterId="mine")

    warnings = [text for text in said if "WARNING" in text]
    expected = "extra configuration of RM 'rm': event.maxStreams: 'many' cannot be read, 100 is used"
    assert [f"core.config WARNING {expected}"] == warnings


@pytest.mark.parametrize("way", ["registration", "update"])
def test_what_is_probably_not_meant_in_the_queues_is_a_warning(
    scheduler: Scheduler, said: list[str], way: str
) -> None:
    """Once, with its place; a text that means the same is not talked of again."""
    odd = ONE.replace("{name: q}", "{name: q, properties: {application.sort.polcy: fair}}")
    scheduler.register("rm", ResourceManager(), configuration=odd if way == "registration" else ONE)
    for _ in range(2):
        update(scheduler, odd)

    (warning,) = [text for text in said if "WARNING" in text]
    place = f"queues.yaml:1:{odd.index('fair') + 1}: partitions[0].queues[0].queues[0].properties"
    assert warning.startswith(
        f"core.config WARNING configuration of RM 'rm': {place}.application.sort.polcy: "
    )
    assert warning.endswith("did you mean 'application.sort.policy'?")


def test_a_refused_configuration_warns_of_nothing(scheduler: Scheduler, said: list[str]) -> None:
    """Its sender gets the errors."""
    scheduler.register("rm", ResourceManager(), configuration=ONE)
    broken = "partitions: [{name: default, queues: [{name: 'no.dots', properties: {polcy: fair}}]}]"
    with pytest.raises(RequestError, match=r"no\.dots"):
        update(scheduler, broken)
    update(scheduler, ONE)

    assert [] == [text for text in said if "WARNING" in text]


def test_rules_that_cannot_be_used_are_logged_at_registration(scheduler: Scheduler, said: list[str]) -> None:
    """The partition works with the default rule, and the log says so."""
    rules = ONE.replace("{name: default,", "{name: default, placementrules: [{name: usr}],")
    scheduler.register("rm", ResourceManager(), configuration=rules)

    (warning,) = [text for text in said if "WARNING" in text]
    assert "unknown rule name specified usr" in warning
    assert "the default rule is used instead" in warning


def test_warnings_follow_the_levels_that_came_with_them(scheduler: Scheduler, said: list[str]) -> None:
    """Who asks for errors alone hears of no warning."""
    extra = {"event.maxStreams": "many", "log.core.config.level": "ERROR"}
    scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)

    assert [] == [text for text in said if "WARNING" in text]


# --------------------------------------------------------------------------------------------- levels


def test_without_levels_licorne_informs(scheduler: Scheduler, said: list[str]) -> None:
    """It does not talk of every actor that it starts."""
    scheduler.register("rm", ResourceManager(), configuration=ONE)

    assert ["core.rmproxy INFO RM 'rm' has registered"] == said


def test_actors_talk_when_they_are_asked_to(said: list[str]) -> None:
    """And fall silent with the next update."""
    with Scheduler(engine="actors", stepped=True) as scheduler:
        extra = {"log.core.actors.level": "DEBUG"}
        scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)
        fail(scheduler)
        loud = len([text for text in said if text.startswith("core.actors DEBUG Starting")])
        update(scheduler, ONE)
        said.clear()
        scheduler.update_application(si.ApplicationRequest(rmID="rm"))
        scheduler.snapshot()

    assert (1, []) == (loud, said)


@pytest.mark.parametrize(
    ("key", "heard"),
    [("log.level", 0), ("log.core.level", 0), ("log.core.rmproxy.level", 0), ("log.core.scheduler.level", 1)],
)
def test_a_level_counts_for_its_logger_and_those_below(
    scheduler: Scheduler, said: list[str], key: str, heard: int
) -> None:
    """The nearest one decides."""
    scheduler.register("rm", Deaf(), configuration=ONE, extra_configuration={key: "fatal"})
    said.clear()

    fail(scheduler)

    assert heard == len([text for text in said if text.startswith("core.rmproxy ERROR callback of RM")])


def test_one_manager_does_not_silence_another(scheduler: Scheduler, said: list[str]) -> None:
    """What is said of a manager has the level of that manager, in the same scheduler and in another one."""
    scheduler.register("quiet", Deaf(), configuration=ONE, extra_configuration={"log.level": "fatal"})
    scheduler.register("loud", Deaf(), configuration=ONE)
    with Scheduler(engine="direct") as other:  # There is one loguru for the whole process.
        other.register("quiet", Deaf(), configuration=ONE)
        said.clear()
        heard = []
        for speaker, rm_id in ((scheduler, "quiet"), (scheduler, "loud"), (other, "quiet")):
            fail(speaker, rm_id)
            heard.append(len(said))

    assert [0, 1, 2] == heard


def test_what_managers_share_has_the_level_of_the_one_that_wants_to_hear_most(scheduler: Scheduler) -> None:
    """Also if another RM wants to log nothing."""
    levels = []
    for rm_id, level in (("a", "error"), ("b", "debug"), ("b", "warn")):
        extra = {"log.level": level}
        scheduler.register(rm_id, ResourceManager(), configuration=ONE, extra_configuration=extra)
        levels.append(scheduler._extra._level("core.actors", ""))

    assert [LogLevel.ERROR, LogLevel.DEBUG, LogLevel.WARN] == levels


# ------------------------------------------------------------------------------------------ summaries


def test_the_log_says_what_an_application_has_used(scheduler: Scheduler, said: list[str]) -> None:
    """When it has ended, in one line with one document; who wants no such lines says so."""
    fields: list[dict[str, object]] = []
    sink = logger.add(lambda message: fields.append(dict(message.record["extra"])), level="INFO")
    for rm_id, extra in (("rm", {}), ("quiet", {"log.core.scheduler.application.usage.level": "warn"})):
        scheduler.register(rm_id, ResourceManager(), configuration=ONE, extra_configuration=extra)
        run_an_application(scheduler, rm_id)
    scheduler.advance_to(scheduler.now_ns() + 31 * 10**9)
    logger.remove(sink)

    (line,) = [text for text in said if "YK_APP_SUMMARY" in text]
    start = "core.scheduler.application.usage INFO YK_APP_SUMMARY: "
    document = json.loads(line.removeprefix(start))
    assert ("app", "rm", "Completed", "root.q") == tuple(
        document[key] for key in ("ApplicationID", "RmID", "State", "Queue")
    )
    assert {"UNKNOWN": {"memory": 2}} == document["ResourceUsage"]
    name = "core.scheduler.application.usage"
    assert {"logger": name, "rm_id": "rm", "application": "app", "queue": "root.q"} in fields


def run_an_application(scheduler: Scheduler, rm_id: str) -> None:
    """Let an application run one allocation of one unit of memory for two seconds."""
    scheduler.update_node(node_request("n", rm_id=rm_id))
    scheduler.update_application(application_request("app", rm_id=rm_id, queue="root.q"))
    scheduler.update_allocation(ask_request("a", rm_id=rm_id))
    scheduler.run_until_idle()
    scheduler.advance_to(scheduler.now_ns() + 2 * 10**9)
    scheduler.update_allocation(release_request("a", rm_id=rm_id))
