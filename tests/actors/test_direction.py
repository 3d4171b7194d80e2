"""The rule of asks, checked while they are made."""

from __future__ import annotations

from typing import ClassVar

import pytest
from pykka.messages import ProxyCall

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError, AskDirectionError
from licorne.actors.runtime.reference import AnyRef, PooledRef

pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose


class Asker(PooledActor):
    """Asks others in every way there is."""

    def answer(self) -> str:
        return "answer"

    def ask_by(self, how: str, other: AnyRef) -> object:
        message = ProxyCall(("answer",), (), {})
        if how == "call":
            return other.call(Asker.answer)
        if how == "ask":
            return other.ask(message)
        if how == "future":
            return other.ask(message, block=False).get()
        if how == "deadline":
            return other.ask(message, timeout=60)
        if how == "stop":
            return other.stop()
        assert how == "proxy"
        return other.proxy().answer().get()

    def tell_to(self, other: AnyRef) -> None:
        other.send(Asker.answer)

    def pass_to(self, between: PooledRef[Asker], other: AnyRef) -> object:
        return between.call(Asker.ask_by, "call", other)


class Partition(Asker):
    rank: ClassVar[int | None] = 1


class Application(Asker):
    rank: ClassVar[int | None] = 2


class Node(Asker):
    rank: ClassVar[int | None] = 3


each_way = pytest.mark.parametrize("how", ["call", "ask", "future", "deadline", "proxy", "stop"])


@each_way
def test_asks_go_down(how: str, checked: Dispatcher) -> None:
    """A partition may ask a node."""
    partition, node = checked.start(Partition), checked.start(Node)

    assert (True if how == "stop" else "answer") == partition.call(Asker.ask_by, how, node)


@each_way
@pytest.mark.parametrize(
    ("asker", "asked", "message"),
    [
        pytest.param(Node, Partition, r"Node .* of rank 3 .* Partition .* of rank 1", id="upwards"),
        pytest.param(Application, Application, "of rank 2 .* of rank 2", id="sideways"),
    ],
)
def test_an_ask_upwards_or_sideways_raises_and_names_both(
    how: str, asker: type[Asker], asked: type[Asker], message: str, checked: Dispatcher
) -> None:
    """A node must not wait for its partition; two applications that ask each other could wait for ever."""
    mine, theirs = checked.start(asker), checked.start(asked)

    with pytest.raises(AskDirectionError, match=message):
        mine.call(Asker.ask_by, how, theirs)

    assert theirs.is_alive()


@pytest.mark.parametrize("how", ["call", "ask", "deadline", "stop"])
def test_an_ask_that_is_refused_is_not_sent(how: str) -> None:
    """Who asks and waits at once is refused before."""
    with Dispatcher(workers=0, check_direction=True) as stepped:
        partition, node = stepped.start(Partition), stepped.start(Node)
        with pytest.raises(AskDirectionError):
            node.call(Asker.ask_by, how, partition)

        assert 0 == stepped.run_pending()


def test_an_upward_ask_from_a_worker_raises_in_the_asker(checked: Dispatcher) -> None:
    """The check does not depend on whose thread runs the asker."""
    partition, node = checked.start(Partition), checked.start(Node)

    answer = node.proxy().ask_by("call", partition)

    with pytest.raises(AskDirectionError):
        answer.get(timeout=60)


def test_tells_go_everywhere(checked: Dispatcher) -> None:
    """Upwards one only tells."""
    partition, node = checked.start(Partition), checked.start(Node)

    node.call(Asker.tell_to, partition)

    assert partition.is_alive()


def test_the_outside_may_ask_everyone(checked: Dispatcher) -> None:
    """A thread that runs no actor blocks no other thread."""
    for actor_class in (Partition, Application, Node, Asker):
        assert "answer" == checked.start(actor_class).call(Asker.answer)


def test_an_actor_without_a_rank_is_transparent(checked: Dispatcher) -> None:
    """It may be asked by all and ask all, but what asked it still counts."""
    partition, between, node = (checked.start(kind) for kind in (Partition, Asker, Node))

    assert "answer" == between.call(Asker.ask_by, "call", partition)
    with pytest.raises(AskDirectionError, match=r"Node .* Partition"):
        node.call(Asker.pass_to, between, partition)


def test_the_innermost_actor_of_a_thread_decides(checked: Dispatcher) -> None:
    """A node that a partition asked is still a node, although one thread runs both."""
    partition, node, application = (checked.start(kind) for kind in (Partition, Node, Application))

    with pytest.raises(AskDirectionError, match=r"Node .* Application"):
        partition.call(Asker.pass_to, node, application)


def test_the_rule_is_forgotten_when_the_actor_has_returned(checked: Dispatcher) -> None:
    """A failed message leaves nothing behind on its thread."""
    partition, node = checked.start(Partition), checked.start(Node)
    with pytest.raises(AskDirectionError):
        node.call(Asker.ask_by, "call", partition)

    assert "answer" == partition.call(Asker.answer)


def test_on_start_is_held_to_the_rule(checked: Dispatcher) -> None:
    """The check sees every hook that a message runs."""
    partition = checked.start(Partition)

    class Eager(Node):
        def on_start(self) -> None:
            partition.call(Asker.answer)

    ref = checked.start(Eager)

    ref.actor_stopped.wait()
    assert (partition,) == checked.actors()


def test_without_the_check_only_true_cycles_raise() -> None:
    """In production an upward ask costs nothing more and works while it closes no cycle."""
    with Dispatcher(workers=1) as dispatcher:
        partition, node = dispatcher.start(Partition), dispatcher.start(Node)

        assert "answer" == node.call(Asker.ask_by, "call", partition)
        with pytest.raises(AskCycleError):
            node.call(Asker.ask_by, "call", node)
