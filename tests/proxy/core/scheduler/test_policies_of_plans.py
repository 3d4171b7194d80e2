"""Policies of a program for queues that backfill: expected run times, promises, and the order behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.proxy.manager_requests import configuration_request
from support.proxy.policy_clusters import MIDNIGHT, Cluster, quantities, text
from support.proxy.recorded_traffic import replayed

from licorne import LicorneError, policies, si
from licorne.model.explanation.values import AskExplanation
from licorne.proxy.core.scheduler.engine_names import EngineName

SECOND = 1_000_000_000
EASY = 'backfill.reservations: "1"'
EVERY = "backfill.reservations: all"
GUESSED = "[{name: a, properties: {runtime.expected: policy/guess}}]"


class Guess:
    """Answers with the tag `guess`, in seconds; without it the walltime is used."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        CLUSTER_GUESSES.append(self)

    def expected_run_time_ns(self, ask: policies.AskView, application: policies.ApplicationView) -> Any:
        assert application.application_id == ask.application_id
        self.asked.append(ask.allocation_key)
        guess = LATER.get(ask.allocation_key) or ask.tags.get("guess")
        if guess == "bug":
            raise RuntimeError("a bug")
        return None if guess is None else float(guess) if guess == "nan" else int(guess) * SECOND


CLUSTER_GUESSES: list[Guess] = []
LATER: dict[str, str] = {}
"""Other answers by key, after something outside has changed."""


@pytest.fixture(autouse=True)
def _nothing_has_changed() -> None:
    CLUSTER_GUESSES.clear()
    LATER.clear()


def ask(
    cluster: Cluster, key: str, size: int, walltime: str = "", *, guess: str = "", application: str = "app"
) -> None:
    tags = {"walltime": walltime, "guess": guess}
    new: dict[str, Any] = {
        "allocationKey": key,
        "applicationID": application,
        "resourcePerAlloc": quantities({"vcore": size}),
        "allocationTags": {name: value for name, value in tags.items() if value},
    }
    cluster.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[new]))


def waiting(root: str = EASY, engine: EngineName = "direct", **options: Any) -> Cluster:
    """Return a cluster where one job runs for 100 seconds, and a large one waits for it."""
    cluster = Cluster({"guess": Guess}, text(GUESSED, root=root), engine=engine, **options)
    cluster.nodes(n1={"vcore": 10})
    cluster.application("app")
    ask(cluster, "runs", 6, "100s")
    ask(cluster, "large", 10, "50s")
    assert cluster.run() == ["runs"]
    return cluster


def explained(cluster: Cluster, key: str, application: str = "app") -> AskExplanation:
    """Return what the scheduler knows of a waiting ask."""
    found = cluster.scheduler.explain(application)
    assert found is not None
    return next(each for each in found.asks if each.allocation_key == key)


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
@pytest.mark.parametrize("root", [EASY, EVERY])
def test_work_starts_that_is_expected_to_end_before_a_promise(root: str, engine: EngineName) -> None:
    cluster = waiting(root, engine)
    ask(cluster, "long", 2, "1h", guess="200")
    ask(cluster, "short", 2, "1h", guess="99")

    assert cluster.run() == ["short"]
    assert not cluster.failures
    (blocker,) = [each for each in explained(cluster, "long").blockers if each.reason.name == "WOULD_DELAY"]
    assert blocker.detail.startswith("by policy guess it would end in 3m20s, 1m40s after large is to get n1")
    assert blocker.change.startswith("an expected run time of at most 1m40s instead of 3m20s")


def test_each_ask_is_asked_about_once() -> None:
    """However often starts are planned, and whoever reads."""
    cluster = waiting()
    for number in range(3):
        ask(cluster, f"long{number}", 2, "1h", guess="200")
        cluster.run()
        cluster.scheduler.explain("app")

    assert CLUSTER_GUESSES[-1].asked == ["runs", "large", "long0", "long1", "long2"]


@pytest.mark.parametrize("root", [EASY, EVERY])
def test_run_times_are_found_again_when_the_program_says_so(root: str) -> None:
    """Of what waits and of what runs: a promise is earlier or later."""
    cluster = waiting(root)
    ask(cluster, "long", 2, "1h", guess="200")
    assert cluster.run() == []
    LATER.update(runs="300")
    cluster.scheduler.reconsider("rm")

    assert cluster.run() == ["long"]


def test_a_promise_ends_where_a_job_is_expected_to_run_longer() -> None:
    """Others were promised their starts beside the shorter one."""
    cluster = waiting(EVERY + ', backfill.passes: "0"')
    ask(cluster, "next", 10, "10s")
    cluster.run()

    def start_of(key: str) -> int:
        start = explained(cluster, key).planned_start
        assert start is not None
        assert start.start_ns is not None
        return (start.start_ns - MIDNIGHT) // SECOND

    assert (start_of("large"), start_of("next")) == (100, 150)
    LATER.update(large="60")
    cluster.scheduler.reconsider("rm")
    cluster.run()
    assert (start_of("next"), start_of("large")) == (100, 110)


@pytest.mark.parametrize(("guess", "error"), [("bug", "a bug"), ("nan", "got float nan"), ("0", "got int 0")])
def test_without_an_answer_the_walltime_is_used(guess: str, error: str) -> None:
    cluster = waiting()
    ask(cluster, "short", 2, "99s", guess=guess)

    assert cluster.run() == ["short"]
    (failure,) = cluster.failures
    assert (failure.callback, failure.subject) == ("policy guess.expected_run_time_ns", "short")
    assert error in str(failure.error)


def test_another_walltime_is_another_question() -> None:
    cluster = waiting()
    ask(cluster, "short", 2, "1h", guess="200")
    cluster.run()
    ask(cluster, "short", 2, "2h")
    cluster.run()

    assert CLUSTER_GUESSES[-1].asked.count("short") == 2


def test_a_reload_names_or_takes_away_the_policy() -> None:
    cluster = waiting()
    ask(cluster, "short", 2, "1h", guess="99")
    cluster.scheduler.update_configuration(configuration_request(text("[{name: a}]", root=EASY)))
    assert cluster.run() == []
    cluster.scheduler.update_configuration(configuration_request(text(GUESSED, root=EASY)))

    assert cluster.run() == ["short"]


def test_a_policy_without_the_method_is_refused() -> None:
    class Other:
        def node_key(self, _: policies.NodeView) -> float:
            return 0.0

    with pytest.raises(LicorneError, match="the policy 'guess' has no method expected_run_time_ns"):
        Cluster({"guess": Other}, text(GUESSED, root=EASY))


def test_readers_before_a_walk_leave_nothing_that_a_replay_lacks(tmp_path: Path) -> None:
    """After a reload the answers are found anew: by the next walk, not by an explanation before it."""
    cluster = waiting(record=tmp_path)
    ask(cluster, "long", 2, "1h", guess="200")
    cluster.run()
    cluster.scheduler.update_configuration(configuration_request(text(GUESSED, root=EASY)))
    cluster.scheduler.explain("app")
    cluster.run()
    cluster.scheduler.stop()

    replayed(tmp_path)


# ------------------------------------------------------------------------------------------------ promises

BY_POLICY = "backfill.order: policy/own, backfill.promises: policy/own"


class Own:
    """Chooses the largest job behind promises; jobs with names in capitals are promised no start."""

    def backfill_key(self, job: policies.JobView) -> Any:
        return None if job.allocation_key == "bug" else -job.sizes[0].get("vcore")

    def promises(self, job: policies.JobView) -> Any:
        assert job.application.application_id == "app"
        return None if job.allocation_key == "bug" else not job.allocation_key.isupper()


def planned(*asks: tuple[str, int, str], root: str = EASY, engine: EngineName = "direct") -> Cluster:
    """Return a cluster where one job runs for 100 seconds on 6 of 10 cores, and others wait."""
    cluster = Cluster({"own": Own}, text(root=f"{root}, {BY_POLICY}"), engine=engine)
    cluster.nodes(n1={"vcore": 10})
    cluster.application("app")
    ask(cluster, "runs", 6, "100s")
    assert cluster.run() == ["runs"]
    for each in asks:
        ask(cluster, *each)
    return cluster


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_a_policy_orders_the_jobs_behind_promises(engine: EngineName) -> None:
    cluster = planned(
        ("promised", 10, "1h"), ("one", 1, "9s"), ("three", 3, "9s"), ("two", 2, "9s"), engine=engine
    )

    assert cluster.run() == ["three", "one"]
    assert not cluster.failures


def test_a_job_without_a_key_is_last() -> None:
    cluster = planned(("promised", 10, "1h"), ("bug", 3, "9s"), ("two", 2, "9s"))

    assert cluster.run() == ["two"]
    assert ("policy own.backfill_key", "bug") in {(each.callback, each.subject) for each in cluster.failures}


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
@pytest.mark.parametrize("root", [EASY, EVERY])
def test_a_job_without_a_promise_delays_nobody(root: str, engine: EngineName) -> None:
    """It waits until it fits beside what others are promised."""
    cluster = planned(("LARGE", 10, "1h"), ("long", 4, "1h"), root=root, engine=engine)

    assert cluster.run() == ["long"]
    ask(cluster, "bug", 10, "1h")
    ask(cluster, "SMALL", 3, "1h")
    assert cluster.run() == []
    assert {each.callback for each in cluster.failures} == {"policy own.promises"}


@pytest.mark.parametrize("root", [EASY, EVERY])
def test_a_job_without_a_promise_may_not_delay_one(root: str) -> None:
    """And its explanation names the promise."""
    cluster = planned(("promised", 10, "1h"), ("SMALL", 2, "1h"), root=root)
    assert cluster.run() == []

    (blocker,) = [each for each in explained(cluster, "SMALL").blockers if each.reason.name == "WOULD_DELAY"]
    assert "after promised is to get n1" in blocker.detail
    start = explained(cluster, "SMALL").planned_start
    assert start is not None
    assert not start.is_promised
    if root == EVERY:
        assert start.reason == "policy own promises it no start"


class OwnLater(Own):
    """Holds an application for an hour as well."""

    def may_start(self, application: policies.ApplicationView, _: int) -> policies.Wait | None:
        until_ns = MIDNIGHT + 3600 * SECOND
        return policies.Wait("later", until_ns) if application.application_id == "held" else None


def test_an_explanation_promises_nothing_to_what_a_policy_holds() -> None:
    """As the walk does: otherwise a job that waits for a promise would wait for no reason."""
    cluster = Cluster({"own": OwnLater}, text(partition="policies: {admission: [own]}", root=EASY))
    cluster.nodes(n1={"vcore": 10})
    cluster.application("app")
    ask(cluster, "runs", 6, "100s")
    assert cluster.run() == ["runs"]
    cluster.application("held")
    ask(cluster, "first", 1, "1h", application="held")
    cluster.run()
    cluster.application("later")
    ask(cluster, "promised", 10, "1h", application="later")
    ask(cluster, "long", 4, "1h", application="later")
    assert cluster.run() == []

    (blocker,) = explained(cluster, "long", "later").blockers
    assert "after promised is to get n1" in blocker.detail
