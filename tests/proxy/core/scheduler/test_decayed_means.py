"""What queues and users have used on average is shown where it counts, and nowhere else."""

from __future__ import annotations

from typing import Any

from support.proxy.decayed_use import DECAYING, PLAIN, use_for_ten_seconds

from licorne import Scheduler


def documents(configuration: str) -> tuple[list[Any], list[Any]]:
    """Return the documents of the queues and of the users, ten seconds after bob has begun to use 8."""
    with Scheduler(engine="direct") as scheduler:
        use_for_ten_seconds(scheduler, configuration, memory=8)
        snapshot: Any = scheduler.snapshot()
    (root,) = snapshot["queues"] if isinstance(snapshot["queues"], list) else [snapshot["queues"]["default"]]
    (user,) = snapshot["users"]["default"]
    return [root, *root["children"]], [user["queues"], *user["queues"]["children"]]


def test_means_are_shown_of_queues_and_of_users() -> None:
    """Each below a half-life; what nothing was used of is left out."""
    queues, levels = documents(DECAYING)

    assert [None, {"memory": 4}, None] == [queue.get("decayedMean") for queue in queues]
    assert ["fair", "users", "fifo"] == [queue["sortingPolicy"] for queue in queues]
    assert [None, {"memory": 4}] == [level.get("decayedMean") for level in levels]


def test_no_mean_is_shown_without_a_half_life() -> None:
    """Although the leaf orders its users by what they use now."""
    queues, levels = documents(PLAIN)

    assert not any("decayedMean" in shown for shown in [*queues, *levels])
    assert "users" == queues[1]["sortingPolicy"]
