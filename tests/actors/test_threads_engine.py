"""The engine `threads`: what its locks cover, and the declared order in which they are taken."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.model.builders import an_application
from support.proxy.deferring import KnowingListener
from support.proxy.listening import Listener, PredicateListener, once
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    keys,
    node_request,
)
from support.proxy.running_scheduler import begin, reserved_in, running
from support.transcripts.transcript_witness import make_replay
from support.waiting import wait_until

from licorne import Scheduler
from licorne.actors.engines.engine import ActorsEngine
from licorne.actors.engines.handles import PARTS, origin_of
from licorne.actors.engines.partition_actor import TURNS_PER_FLUSH
from licorne.actors.locks.guarded_partition import GuardedPartition
from licorne.actors.locks.guards import LOCK_ORDER, DeferredActions, guard
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.lockcheck import held, session
from licorne.lockcheck.reports.certificate import certify
from licorne.model.applications.application import Application
from licorne.model.applications.pending_asks import PendingAsks
from licorne.model.errors import LicorneError
from licorne.model.marks import marked_methods
from licorne.model.partition import Partition
from licorne.model.values.allocation import Allocation
from licorne.proxy.core.documents import applications as application_documents
from licorne.proxy.core.documents import clusters as node_documents
from licorne.proxy.core.documents.applications import AllocationDocument, allocation_document
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.transcripts.player import PlayedManager
from licorne.proxy.play.transcripts.transcript import read_transcript
from licorne.proxy.si import si_pb2 as si

ASKS_ABOUT_VICTIMS: Final = Path(__file__).parents[1] / "conformance" / "preemption" / "predicates.jsonl"


def test_a_guard_has_every_marked_method_of_a_partition() -> None:
    """And each is one that takes the lock: none is inherited from the partition."""
    assert set(marked_methods(Partition)) <= set(vars(GuardedPartition))
    assert not issubclass(GuardedPartition, Partition)


def test_the_parts_of_an_application_are_behind_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what breaks in one is the application's fault."""
    seen: list[tuple[str, ...]] = []

    def broken(_: PendingAsks, key: str) -> None:
        seen.append(held())
        raise ZeroDivisionError(key)

    application = an_application()
    monkeypatch.setattr(PendingAsks, "get", broken)
    with session(LOCK_ORDER):
        guarded = guard(application, "app", DeferredActions())
        with pytest.raises(ZeroDivisionError) as raised:
            guarded.asks.displace("ask")

    for name, part in PARTS[Application].items():
        assert set(marked_methods(part)) <= set(dir(getattr(guarded, name)))
    assert (application, [1]) == (origin_of(raised.value), [len(names) for names in seen])


def test_a_call_has_done_what_it_asks_when_it_returns() -> None:
    """An RM thread carries its own request out."""
    with running("threads", threads=1) as scheduler:
        begin(scheduler, Listener())
        scheduler.update_node(node_request("new"))

        nodes = scheduler.snapshot()["nodes"]
    assert "'new'" in str(nodes)


def test_no_lock_is_held_while_a_predicate_runs() -> None:
    """The partition's lock is released, and no other is held then."""
    predicate_listener = PredicateListener()
    seen: list[tuple[str, ...]] = []
    predicate_listener.react = lambda text: seen.append(held()) if text.startswith("asked") else None
    with session(LOCK_ORDER) as checked, running("threads", threads=1) as scheduler:
        begin(scheduler, predicate_listener)
        scheduler.update_allocation(ask_request(*keys(5)))
        predicate_listener.wait_for_count("placed ", 5)

    assert {()} == set(seen)
    assert () == checked.findings, checked.report_text()


def test_documents_are_made_when_the_lock_has_been_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot of many allocations keeps the partition from its work while they are copied, not longer."""
    seen: list[tuple[str, ...]] = []

    def look(allocation: Allocation, *, preempted: bool) -> AllocationDocument:
        seen.append(held())
        return allocation_document(allocation, preempted=preempted)

    monkeypatch.setattr(application_documents, "allocation_document", look)
    monkeypatch.setattr(node_documents, "allocation_document", look)
    listener = Listener()
    with session(LOCK_ORDER), running("threads", threads=1) as scheduler:
        begin(scheduler, listener)
        scheduler.update_allocation(ask_request("ask"))
        listener.wait_for("placed ask")
        snapshot = scheduler.snapshot()

    assert [(), ()] == seen
    assert 2 == str(snapshot).count("'allocationKey': 'ask'")


def test_no_lock_is_held_while_a_preemption_predicate_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorded transcript has it asked about victims."""
    seen: list[tuple[str, ...]] = []
    with session(LOCK_ORDER) as checked:
        predicate_listener = PlayedManager.preemption_predicates

        def look(
            manager: PlayedManager, args: si.PreemptionPredicatesArgs
        ) -> si.PreemptionPredicatesResponse:
            seen.append(held())
            return predicate_listener(manager, args)

        monkeypatch.setattr(PlayedManager, "preemption_predicates", look)
        replay = make_replay("threads", [])
        with replay.scheduler:
            replay.run(read_transcript(ASKS_ABOUT_VICTIMS.read_text(encoding="utf-8"), "transcript"))

    assert {()} == set(seen)
    assert () == checked.findings, checked.report_text()


def test_a_predicate_may_change_what_the_cycle_stands_in() -> None:
    """The cycle notices, begins anew, and asks nothing twice that was answered."""
    predicate_listener = PredicateListener()
    with running("threads", threads=1) as scheduler:
        change = application_request("another")
        predicate_listener.react = once("asked to place ask-0", lambda: scheduler.update_application(change))
        begin(scheduler, predicate_listener)
        scheduler.update_allocation(ask_request(*keys(3)))
        predicate_listener.wait_for_count("placed ", 3)
        predicate_listener.wait_for("accepted another")

    assert keys(3) == predicate_listener.all("asked to place ")


def test_deferred_actions_run_when_the_outermost_lock_is_released() -> None:
    """In order, and also where what ran under the lock raised."""
    deferred = DeferredActions()
    done: list[str] = []

    def run() -> None:
        with deferred:
            with deferred:
                deferred.defer(lambda: done.append("first"))
            deferred.defer(lambda: done.append("second"))
            assert [] == done
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        run()

    assert ["first", "second"] == done


def test_what_is_kept_without_a_lock_happens_at_once() -> None:
    """There is nothing to wait for."""
    done: list[str] = []
    DeferredActions().defer(lambda: done.append("at once"))

    assert ["at once"] == done


@pytest.mark.parametrize(
    ("engine", "stepped", "threads", "words"),
    [
        ("actors", False, 2, "threads=2 is for the engine threads, not for actors"),
        ("direct", True, 1, "threads=1 is for the engine threads, not for direct"),
        ("threads", True, -1, "threads=-1: there must be one thread at least"),
        ("threads", False, 0, "threads=0: there must be one thread at least"),
    ],
)
def test_a_number_of_threads_that_makes_no_sense_is_refused(
    engine: str,
    stepped: bool,  # noqa: FBT001 - a parameter
    threads: int,
    words: str,
) -> None:
    """Rather than ignored."""
    with pytest.raises(LicorneError, match=words):
        Scheduler(engine=engine, stepped=stepped, threads=threads)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------- the declared order


ENGINES: Final[tuple[EngineName, ...]] = ("actors", "threads")
PAGE = Path(__file__).parents[2] / "docs" / "threads.md"


def test_every_declared_nesting_is_made() -> None:
    """A declared edge that never occurs would allow what is not intended."""
    with session(LOCK_ORDER) as checked:
        for engine in ENGINES:
            end_a_partition_with_a_reservation(engine)
            make_a_parent_of_a_queue_with_a_reservation(engine)
            reload_while_something_runs(engine)
            explain_while_something_waits(engine)
            answer_predicates_later(engine)
        for looks in range(TURNS_PER_FLUSH):
            reload_while_no_worker_has_time(looks)
        place_in_a_partition_that_threads_share()
        reload_while_something_runs("threads", share_partitions=True)
        explain_while_something_waits("threads", share_partitions=True)
    certificate = certify(checked.summary())

    assert certificate.holds, certificate.text()
    assert () == certificate.unexercised, certificate.text()


def end_a_partition_with_a_reservation(engine: EngineName) -> None:
    """End it while an application that runs on one of its nodes has reserved the other one."""
    reload_with_a_reservation(engine, ONE)


def make_a_parent_of_a_queue_with_a_reservation(engine: EngineName) -> None:
    """No application below a parent is tried; the configuration is prepared before it is loaded."""
    parent = "queues: [{name: leaf, queues: [{name: below}]}]"
    reload_with_a_reservation(engine, TWO.replace("queues: [{name: leaf}]", parent))


def reload_with_a_reservation(engine: EngineName, configuration: str) -> None:
    with Scheduler(engine=engine, stepped=True) as scheduler:
        scheduler.register("rm", Listener(), configuration=TWO)
        scheduler.update_node(node_request("first", "second", memory=3, partition="second"))
        scheduler.update_application(application_request("app", "stays", partition="second"))
        scheduler.update_allocation(an_ask("placed", "app", "first"))
        scheduler.update_allocation(an_ask("in the way", "stays", "second"))
        scheduler.run_until_idle()
        scheduler.update_allocation(an_ask("late", "app", "second"))
        scheduler.run_until_idle()
        assert 1 == reserved_in(scheduler)
        scheduler.prepare_configuration(configuration_request(configuration)).commit()
        assert 0 == reserved_in(scheduler)
        scheduler.validate()


def reload_while_something_runs(engine: EngineName, *, share_partitions: bool = False) -> None:
    """Queues that may be empty are looked at later, for which a timer is set; then end it all."""
    listener = Listener()
    with running(engine, share_partitions=share_partitions) as scheduler:
        begin(scheduler, listener)
        scheduler.update_allocation(ask_request("ask"))
        listener.wait_for("placed ask")
        scheduler.update_configuration(configuration_request(TWO))
        scheduler.register("rm", listener, configuration=ONE)


def is_at_rest(dispatcher: Dispatcher) -> bool:
    """Return whether all workers wait, and nothing waits for them."""
    threads, waiting, queued = dispatcher.load()
    return threads == waiting and not queued


def reload_while_no_worker_has_time(looks: int) -> None:
    """The thread that asks a partition then handles the partition's earlier messages: it places an ask.

    After some turns it also has the announcement delivered; `looks` are turns before the reload.
    """
    listener = Listener()
    with running("actors") as scheduler:
        begin(scheduler, listener)
        engine = scheduler._engine
        assert isinstance(engine, ActorsEngine)
        wait_until(lambda: is_at_rest(engine.dispatcher), "no worker has anything to do")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine.dispatcher, "push", lambda _: None)
            scheduler.update_allocation(ask_request("ask"))
            for _ in range(1 + looks):  # The ask is taken in, and the partition tells itself to work.
                scheduler.snapshot()
            scheduler.update_configuration(configuration_request(TWO))
            for _ in range(TURNS_PER_FLUSH):  # Each look is one more turn.
                scheduler.snapshot()
        listener.wait_for("placed ask")


def explain_while_something_waits(engine: EngineName, *, share_partitions: bool = False) -> None:
    """Whether the manager is far behind is one of the reasons, and its link knows."""
    with running(engine, share_partitions=share_partitions) as scheduler:
        begin(scheduler, Listener())
        scheduler.update_allocation(ask_request("ask", memory=2000))
        assert scheduler.explain("app").asks


def answer_predicates_later(engine: EngineName) -> None:
    """What is asked is noted for the wait for the answers."""
    with Scheduler(engine=engine, stepped=True) as scheduler:
        scheduler.register("rm", KnowingListener(), configuration=ONE)
        scheduler.update_node(node_request("node"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("ask"))
        assert 1 == scheduler.run_until_idle()


def place_in_a_partition_that_threads_share() -> None:
    """They have it for reading, and what they change below it for writing."""
    listener = Listener()
    with running("threads", threads=2, share_partitions=True) as scheduler:
        begin(scheduler, listener)
        scheduler.update_allocation(ask_request("ask"))
        listener.wait_for("placed ask")


def an_ask(key: str, application: str, node_id: str) -> si.AllocationRequest:
    request = ask_request(key, application=application, memory=2, partition="second")
    request.allocations[0].allocationTags["yunikorn.apache.org/requiredNode"] = node_id
    return request


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_application_has_reserved_is_freed_when_its_partition_ends(engine: EngineName) -> None:
    """As part of the test run, so that the certificate of the run has this nesting."""
    end_a_partition_with_a_reservation(engine)


def test_the_page_shows_the_declaration_as_it_describes_itself() -> None:
    """A change of it needs a new drawing."""
    (shown,) = re.findall(r"<!-- order -->\n(.*?)\n<!-- end -->", PAGE.read_text("utf-8"), re.DOTALL)

    assert LOCK_ORDER.describe() == shown
