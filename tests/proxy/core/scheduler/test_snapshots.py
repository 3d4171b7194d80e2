"""The document of everything: under which names partitions stand in it."""

from __future__ import annotations

from support.proxy.manager_requests import ONE, TWO, application_request

from licorne import ResourceManager, Scheduler

BY_PARTITION = ("queues", "nodes", "applications", "users", "groups")


def names(scheduler: Scheduler) -> set[tuple[str, ...]]:
    """Return the names of the partitions, which must be the same for every kind of document."""
    snapshot = scheduler.snapshot()
    found = set()
    for kind in BY_PARTITION:
        documents = snapshot[kind]
        assert isinstance(documents, dict)
        found.add(tuple(documents))
    return found


def test_partitions_stand_under_their_short_names(scheduler: Scheduler) -> None:
    """As the manager calls them."""
    scheduler.register("rm", ResourceManager(), configuration=TWO)

    assert {("default", "second")} == names(scheduler)


def test_partitions_of_one_name_stand_under_their_full_names(scheduler: Scheduler) -> None:
    """None hides another one; a name that only one manager uses stays short."""
    scheduler.register("rm", ResourceManager(), configuration=TWO)
    scheduler.register("other", ResourceManager(), configuration=ONE)
    scheduler.update_application(application_request("app", rm_id="other"))

    assert {("[other]default", "[rm]default", "second")} == names(scheduler)
    applications = scheduler.snapshot()["applications"]
    assert isinstance(applications, dict)
    assert "app" in repr(applications["[other]default"])
    assert [] == applications["[rm]default"]
