"""Workers that are killed under load: no allocation is lost, doubled or leaked, and no maximum is exceeded.

See `support.door.cluster_program`: its journal is what really runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from support.door.cluster_round import Round


def kill_worker(played: Round) -> None:
    """Kill one under load."""
    played.kill_worker(played.random.choice(played.partitions))


def kill_recovering(played: Round) -> None:
    """Kill one, and the next one while it recovers."""
    partition = played.random.choice(played.partitions)
    played.kill_recovering(partition, played.kill_worker(partition))


def kill_all(played: Round) -> None:
    """Kill all at once."""
    for partition in played.partitions:
        played.kill_worker(partition)


def kill_manager(played: Round) -> None:
    """Kill the RM alone."""
    played.cluster.kill()
    played.cluster.restart()


def kill_registering(played: Round) -> None:
    """Kill the RM, and a worker while the RM registers again."""
    played.cluster.kill()
    partition = played.random.choice(played.partitions)
    place = played.running(partition)
    played.cluster.restart()
    played.kill_registering(place)


def kill_reloading(played: Round) -> None:
    """Kill a worker between prepare and commit."""
    played.kill_reloading(played.random.choice(played.partitions))


def kill_while_reloading(played: Round) -> None:
    """Kill a worker at any moment of a change."""
    played.kill_while_reloading(played.random.choice(played.partitions))


def register_by_double(played: Round) -> None:
    """Have an older door claim the workers."""
    for partition in played.partitions:
        played.running(partition)
    played.register_by_double()


def kill_beside_double(played: Round) -> None:
    """Kill a worker, and have an older door claim the next one perhaps before the door has it."""
    partition = played.random.choice(played.partitions)
    number = played.kill_worker(partition)
    played.register_by_double()
    played.running(partition, number)


KILLS: dict[str, Callable[[Round], None]] = {
    "a worker under load": kill_worker,
    "a worker, and the next one while it recovers": kill_recovering,
    "all workers": kill_all,
    "the resource manager": kill_manager,
    "the resource manager, and a worker while that registers again": kill_registering,
    "a worker between prepare and commit of a configuration": kill_reloading,
    "a worker while the configuration changes": kill_while_reloading,
    "none, and an older door claims them": register_by_double,
    "a worker, and an older door claims the next one": kill_beside_double,
}


def play(folder: Path, seed: int, kills: list[str], count: int) -> None:
    """Run a cluster, and kill what is named, each at a random moment."""
    with ExitStack() as stack:
        played = Round(folder, seed, stack, count=count)
        for kill in kills:
            played.cluster.wait_for_load(played.random.randrange(20, count // 2))
            KILLS[kill](played)
        played.check()


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param([*KILLS][1:2], id="while it recovers"),
        pytest.param([*KILLS][4:6], id="registration and reload", marks=pytest.mark.soak),
        pytest.param([*KILLS][7:], id="an older door", marks=pytest.mark.soak),
    ],
)
def test_nothing_is_lost_doubled_or_leaked(kills: list[str], tmp_path: Path) -> None:
    """The books of RM, door and workers are equal in the end."""
    play(tmp_path, len(kills), kills, 600)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kill", KILLS)
def test_nothing_is_lost_in_many_rounds(kill: str, seed: int, tmp_path: Path) -> None:
    """Each kind at many moments, and others around it."""
    chosen = Random(seed)  # noqa: S311 - it makes no secrets
    play(tmp_path, seed, [*chosen.choices([*KILLS], k=chosen.randrange(2)), kill], 3_000)
