"""Programs whose locks close a path, for tests of reports."""

from __future__ import annotations

from support.lockcheck.lock_corpus import RECORD, hold

from licorne.lockcheck import Lock, Order, RWLock, Session, session, unit
from licorne.lockcheck.sessions.summaries import Summary

ORDER = Order("queue < application < node; partition < queue", leaves=["node"])


def a_cycle(name: str = "test_it") -> Session:
    """Return a session that found an unguarded path, a guarded one, and a broken declaration."""
    with session(ORDER, on=RECORD, name=name) as opened:
        queue, application = RWLock("queue", key="root.<a>"), RWLock("application", key="app-1")
        gate, first, second = Lock("gate"), Lock("first"), Lock("second")
        with unit("scheduler"):
            hold(queue.write(), application.read())
            hold(queue.write(), application.write())
        with unit("rm"):
            hold(application.write(), queue.write())
            hold(gate, first, second)
        with unit("rest"):
            hold(gate, second, first)
    return opened


def a_sound_program() -> Session:
    """Return a session that keeps to its order and uses half of it."""
    with session(ORDER, on=RECORD, name="test_sound") as opened:
        hold(RWLock("partition").read(), RWLock("queue", key="root").write())
        hold(RWLock("queue", key="root").write(), RWLock("application", key="a").write())
    return opened


def summary_of_a_cycle() -> Summary:
    """Return what there is to say of the first."""
    return a_cycle().summary()
