"""What operators see of policies: how often each was asked and has failed, why, and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from support.proxy.manager_requests import application_request, ask_request, keys, node_request
from support.proxy.metric_texts import values_of
from support.proxy.rest_clients import Reader
from support.waiting import wait_until

from licorne import ResourceManager, Scheduler, policies
from licorne.model.policies.policies import GivenPolicies
from licorne.model.policies.watching import PolicyFailure, PolicyFigures
from licorne.proxy.core.metrics.exporter import exposition

QUEUES = """
partitions:
  - name: default
    nodesortpolicy: {type: policy/steady}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: leaf, properties: {application.sort.policy: policy/breaking}}]
"""


class Steady:
    """Has an answer for each node."""

    version = "1.2"

    def node_key(self, _: policies.NodeView) -> float:
        return 1.0


class Breaking:
    """Fails for one application."""

    def application_key(self, application: policies.ApplicationView) -> float:
        if application.application_id == "bad":
            raise RuntimeError("a bug")
        return 1.0


def fill(scheduler: Scheduler) -> None:
    """Have an application placed, which no policy fails for."""
    scheduler.register("rm", ResourceManager(), configuration=QUEUES)
    scheduler.update_node(node_request("n1"))
    ask(scheduler, "good")


def ask(scheduler: Scheduler, name: str) -> None:
    scheduler.update_application(application_request(name, queue="root.leaf"))
    scheduler.update_allocation(ask_request(*keys(2, name), application=name))


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """A stepped one that has been checked once."""
    given: Mapping[str, Callable[[], object]] = {"steady": Steady, "breaking": Breaking}
    with Scheduler(engine="direct", policies=given, on_error=lambda _: None) as made:
        fill(made)
        made.run_until_idle()
        made.check_health()
        yield made


def fail(scheduler: Scheduler) -> None:
    ask(scheduler, "bad")
    scheduler.run_until_idle()


def test_answers_and_failures_are_counted_and_timed() -> None:
    """Each by the clocks of the partition; the last failure names what it was about."""
    ticks = iter([0, 5, 10, 40])
    given = GivenPolicies({"breaking": Breaking})
    asked = given.make(lambda *_: None, now_ns=lambda: 7, stopwatch_ns=ticks.__next__).named(
        "policy/breaking"
    )
    for name in ("good", "bad"):
        asked.application_key(_view(name))

    failure = PolicyFailure("application_key", "bad", "RuntimeError: a bug", 7)
    assert given.counts["breaking"].figures() == PolicyFigures(2, 1, 35, 30, failure)


def _view(name: str) -> policies.ApplicationView:
    nothing: Any = {}
    return policies.ApplicationView(name, "root.q", "ada", (), {}, 0, 0, nothing, nothing, False, None)


def test_readers_over_rest_see_each_policy(scheduler: Scheduler) -> None:
    """By name, with what it decides, and why it failed last."""
    fail(scheduler)
    breaking, steady = Reader(scheduler).client.get("/ws/v1/policies").json()

    assert breaking["lastFailure"] == {
        "method": "application_key",
        "subject": "bad",
        "error": "RuntimeError: a bug",
        "at": scheduler.now_ns(),
    }
    assert breaking["failures"] > 0
    assert breaking["answers"] > breaking["failures"]
    assert "lastFailure" not in steady
    assert steady == {
        "name": "steady",
        "madeOf": f"{__name__}:Steady",
        "version": "1.2",
        "methods": ["node_key"],
        "dependsOn": ["object"],
        "answers": steady["answers"],
        "failures": 0,
        "meanNs": 0,
        "longestNs": 0,
    }


def test_without_policies_there_is_an_empty_list_and_no_metric() -> None:
    with Scheduler(engine="direct") as scheduler:
        assert Reader(scheduler).client.get("/ws/v1/policies").json() == []
        assert "licorne_policy" not in exposition(scheduler)[0].decode()


def test_metrics_count_answers_and_failures(scheduler: Scheduler) -> None:
    before = values_of(exposition(scheduler)[0].decode())
    fail(scheduler)
    values = values_of(exposition(scheduler)[0].decode())

    def of(name: str, policy: str) -> tuple[str, frozenset[tuple[str, str]]]:
        return f"licorne_policy_{name}", frozenset({("policy", policy)})

    assert before[of("failures_total", "breaking")] == values[of("failures_total", "steady")] == 0
    assert values[of("failures_total", "breaking")] > 0
    assert values[of("answers_total", "steady")] > 0
    assert of("seconds_total", "steady") in values
    assert of("longest_seconds", "steady") in values


def test_health_fails_for_a_minute_after_a_failure(scheduler: Scheduler) -> None:
    """It names the policy, and why it failed."""
    fail(scheduler)
    scheduler.advance_to(scheduler.now_ns() + 59 * 10**9)
    first = scheduler.check_health()
    scheduler.advance_to(scheduler.now_ns() + 10**9)
    second = scheduler.check_health()

    (check,) = [each for each in first.checks if each.name == "Policies"]
    assert not check.succeeded
    assert check.diagnosis.startswith("breaking failed for ")
    assert check.diagnosis.endswith("answers, at last application_key about bad: RuntimeError: a bug")
    assert [each.name for each in second.checks if each.name == "Policies"] == []


def test_the_health_is_checked_as_soon_as_a_policy_fails() -> None:
    """Not only after 30 seconds, and once for a storm of failures."""
    given: Mapping[str, Callable[[], object]] = {"steady": Steady, "breaking": Breaking}
    with Scheduler(policies=given, on_error=lambda _: None) as scheduler:
        fill(scheduler)
        wait_until(lambda: scheduler.health() is not None, "the health is checked")
        ask(scheduler, "bad")
        wait_until(lambda: not scheduler.health().healthy, "the policy is reported")  # type: ignore[union-attr]
        first = scheduler.health()
        answers = scheduler.monitoring.policies()["breaking"].answers
        scheduler.update_allocation(ask_request("more", application="bad"))
        wait_until(lambda: scheduler.monitoring.policies()["breaking"].answers > answers, "it is asked again")

        assert first is not None
        assert [each.name for each in first.checks if not each.succeeded] == ["Policies"]
        assert scheduler.health() is first
