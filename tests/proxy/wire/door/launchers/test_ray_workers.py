"""The table of the workers that Ray has started; the launcher on a real Ray is tested in `test_ray.py`."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from licorne import LicorneError
from licorne.proxy.wire.door.launchers.ray import RayLauncher, RayWorkers, WorkerToEnd
from licorne.proxy.wire.door.launchers.ray_worker import WorkerSeen
from licorne.proxy.wire.door.workers import LaunchedWorker


def seen(table: RayWorkers, actor: int, worker_id: str, node: str, refusal: str = "") -> WorkerToEnd | None:
    """Tell the table of a worker; its address is its id and a port."""
    address, token = f"{worker_id}:1", f"the token of {worker_id}"
    said = WorkerSeen(id=worker_id, address=address, token=token, node=node, refusal=refusal)
    return table.seen(actor, said)


def started(table: RayWorkers, partition: str) -> LaunchedWorker | None:
    """Have a partition take a worker."""
    table.want(partition)
    return table.take(partition)


def test_spares_are_taken_in_the_order_in_which_they_came() -> None:
    """Each by one partition; without a spare there is none."""
    table = RayWorkers()
    seen(table, 0, "x", "n1")
    seen(table, 1, "y", "n1")
    found = [started(table, name) for name in ("a", "b", "c")]

    assert found == [LaunchedWorker("a", "x:1", 1), LaunchedWorker("b", "y:1", 1), None]
    assert ["the token of x", "the token of y"] == [each.token for each in found if each is not None]
    assert table.partitions == 3


def test_a_lost_worker_is_replaced_by_one_on_another_node() -> None:
    """Its node may be the reason; only where there is no other one it is used again."""
    table = RayWorkers()
    for actor, (worker_id, node) in enumerate((("x", "n1"), ("y", "n1"), ("z", "n2"))):
        seen(table, actor, worker_id, node)
    first = started(table, "a")
    assert first is not None
    to_end = table.lose(first)

    assert to_end == {"actor": 0, "id": "x"}
    assert table.take("a") == LaunchedWorker("a", "z:1", 2)
    assert table.take("a") == LaunchedWorker("a", "y:1", 3)


def test_what_ray_restarts_becomes_a_spare() -> None:
    """The worker that was lost is no spare, also when it is seen once more: then it is to end again."""
    table = RayWorkers()
    seen(table, 0, "x", "n1")
    first = started(table, "a")
    assert first is not None
    table.lose(first)
    again = seen(table, 0, "x", "n1")
    without = table.take("a")
    seen(table, 0, "x2", "n1")

    assert (again, without) == ({"actor": 0, "id": "x"}, None)
    assert table.take("a") == LaunchedWorker("a", "x2:1", 2)


def test_a_worker_in_use_stays_when_ray_takes_it_for_dead() -> None:
    """Its actor may come back elsewhere; the door ends the old one when it has lost it."""
    table = RayWorkers()
    seen(table, 0, "x", "n1")
    first = started(table, "a")
    assert first is not None
    table.gone("x")
    seen(table, 0, "x2", "n2")

    assert (table.lose(first), table.take("a")) == ({"actor": 0, "id": "x"}, LaunchedWorker("a", "x2:1", 2))


def test_a_spare_that_does_not_answer_is_not_taken() -> None:
    """Nor any of them when the program beside the door has died."""
    table = RayWorkers()
    for actor, worker_id in enumerate("xyz"):
        seen(table, actor, worker_id, "n1")
    table.gone("x")
    found = started(table, "a")
    table.forget_spares()

    assert (found, table.take("a")) == (LaunchedWorker("a", "y:1", 1), None)


def test_a_worker_in_use_that_is_seen_again_is_no_spare() -> None:
    """A new program beside the door tells of all actors that it finds."""
    table = RayWorkers()
    seen(table, 0, "x", "n1")
    started(table, "a")
    table.forget_spares()

    assert (seen(table, 0, "x", "n1"), table.take("a")) == (None, None)


def test_a_refusal_of_the_arguments_is_kept_until_a_worker_starts() -> None:
    """It is the reason why there is none."""
    table = RayWorkers()
    seen(table, 0, "x", "n1", refusal="a bad option")
    refused, without = table.refusal, started(table, "a")
    seen(table, 0, "y", "n1")

    assert (refused, without, table.refusal) == ("a bad option", None, "")


def test_a_worker_that_is_not_known_is_not_ended() -> None:
    """It was lost before."""
    assert RayWorkers().lose(LaunchedWorker("a", "h:1", 1)) is None


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed here")
def test_the_launcher_says_what_to_install() -> None:
    """Ray is in an extra of its own."""
    with pytest.raises(LicorneError, match=r"^ray is not installed: pip install 'licorne\[ray\]'$"):
        RayLauncher()
