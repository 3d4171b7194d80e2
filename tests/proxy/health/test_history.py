"""The history of a scheduler."""

from __future__ import annotations

import json

from support.proxy.rest_scenario import RECORDED, rest_scenario

from licorne.proxy.health.history import HISTORY_MAX, History


def test_the_history_is_the_one_that_was_recorded() -> None:
    """Totals are texts; only the times are others."""
    with rest_scenario() as scheduler:
        scheduler.record_history()
        now_ns = scheduler.now_ns()

    for name, documents in (
        ("history_apps.json", scheduler.monitoring.history.applications()),
        ("history_containers.json", scheduler.monitoring.history.containers()),
    ):
        recorded = json.loads((RECORDED / name).read_text(encoding="utf-8"))
        assert [{**entry, "timestamp": now_ns} for entry in recorded] == documents


def test_a_day_is_kept_the_oldest_first() -> None:
    """What is older is dropped."""
    history = History()
    for minute in range(HISTORY_MAX + 2):
        history.add(minute, applications=minute, containers=0)

    documents = history.applications()
    assert HISTORY_MAX == len(documents) == len(history.containers())
    assert (2, str(HISTORY_MAX + 1)) == (documents[0]["timestamp"], documents[-1]["totalApplications"])
