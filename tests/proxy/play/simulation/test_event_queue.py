from __future__ import annotations

from support.proxy.simulation_builders import SECOND, a_task, a_workload, an_application

from licorne.proxy.play.simulation.event_queue import EventQueue


def test_the_agenda_tells_what_is_due_next() -> None:
    """A submission or an end, whatever comes first."""
    event_queue = EventQueue(
        a_workload(an_application(a_task(at=5), at=5, name="a"), an_application(a_task(at=9), at=9, name="b"))
    )
    assert 5 * SECOND == event_queue.next_ns()

    event_queue.add_end("k", 3 * SECOND)

    assert 3 * SECOND == event_queue.next_ns()


def test_an_empty_agenda_has_nothing_due() -> None:
    """The simulation is over then."""
    assert None is EventQueue(a_workload()).next_ns()


def test_an_application_is_submitted_before_its_tasks() -> None:
    """Even though both are due at the same moment; nothing comes before its time."""
    application = an_application(a_task("t1"), a_task("t2", at=9))
    event_queue = EventQueue(a_workload(application))

    submissions = [event_queue.pop_submission(0) for _ in range(3)]

    assert [(application, None), (application, application.tasks[0]), None] == submissions


def test_ends_at_one_moment_keep_the_order_in_which_they_were_noted() -> None:
    """Decisions must not depend on anything else."""
    event_queue = EventQueue(a_workload())
    for key, at_ns in (("late", 8), ("z", 5), ("a", 5)):
        event_queue.add_end(key, at_ns)

    assert ["z", "a", None] == [event_queue.pop_end(7) for _ in range(3)]
