"""Who is gone leaves no timer on the clock, however it went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from support.model.builders import TEN, a_resource
from support.model.harness import Harness

from licorne.model.state.host import ApplicationTimer, RetryAsks
from licorne.model.state.partition_state import BrokenKind
from licorne.model.values.messages import ApplicationChanged, NodeAction

SECONDS_OF_THREE_DAYS = 3 * 24 * 3600


def a_partition() -> Harness:
    h = Harness("- name: leaf\n- name: other")
    h.nodes("one", capacity=a_resource(memory=100))
    return h


def start(h: Harness, application_id: str = "app") -> None:
    """Have an application run that may run a day, with an allocation that may run an hour."""
    h.submit(application_id, timeout_seconds=24 * 3600)
    h.ask_and_run(f"{application_id}-task", application_id=application_id, limit_seconds=3600)


def start_gang(h: Harness, application_id: str = "app", *, style: str = "Soft") -> None:
    """Have a gang wait for the second of two placeholders, of which one is placed."""
    h.submit(application_id, placeholder_ask=a_resource(memory=120), style=style, timeout_seconds=3600)
    for number, memory in enumerate((10, 110)):
        h.ask(
            f"{application_id}-{number}",
            application_id=application_id,
            resource=a_resource(memory=memory),
            task_group_name="group",
            placeholder=True,
        )
    h.run_until_idle()


def waiting(h: Harness, application_id: str = "") -> Counter[str]:
    """Count what waits on the clock: timers of applications, or of one, by kind, and what else there is."""
    found: Counter[str] = Counter()
    for *_, action in h.clock._due:
        if not isinstance(action, ApplicationTimer):
            found[type(action).__name__] += not application_id
        elif application_id in ("", action.application_id):
            found[action.kind.name] += 1
    return +found


def _withdraw_completing(h: Harness) -> None:
    start(h)
    h.release("app-task")
    assert {"STATE": 1, "RUNNING": 1, "ALLOCATION": 1} == waiting(h, "app")
    h.withdraw()


def _withdraw_running(h: Harness) -> None:
    start(h)
    assert {"RUNNING": 1, "ALLOCATION": 1} == waiting(h, "app")
    h.withdraw()


def _withdraw_lingering(h: Harness) -> None:
    start(h)
    h.release("")
    h.withdraw()


def _withdraw_gang(h: Harness) -> None:
    start_gang(h)
    assert {"PLACEHOLDER": 1} == waiting(h, "app")
    h.withdraw()


def _withdraw_terminated(h: Harness) -> None:
    """It has only asks: it completes while it is withdrawn."""
    h.submit()
    h.ask("waits", resource=a_resource(memory=1000))
    h.withdraw()
    assert "Completed" in h.states()


def _break(h: Harness) -> None:
    start(h)
    h.partition.quarantine(BrokenKind.APPLICATION, "app", "a bug")


@pytest.mark.parametrize(
    "go",
    [
        _withdraw_running,
        _withdraw_completing,
        _withdraw_lingering,
        _withdraw_gang,
        _withdraw_terminated,
        _break,
    ],
)
def test_an_application_that_goes_takes_its_timers_along(go: Callable[[Harness], None]) -> None:
    """Whether its RM takes it away or it breaks: those of others go on."""
    h = a_partition()
    start(h, "stays")

    go(h)

    assert {"RUNNING": 1, "ALLOCATION": 1} == waiting(h, "stays")
    assert {} == waiting(h, "app")


def test_an_application_that_has_failed_waits_for_nothing_but_its_expiry() -> None:
    """Neither for its placeholders nor for what has run too long."""
    h = a_partition()
    start_gang(h, style="Hard")
    h.advance(3600)
    h.confirm()

    assert ("Failed", {"Expiry": 1}) == (h.states()[-1], waiting(h))


def test_a_timer_that_is_started_again_takes_the_place_of_the_first() -> None:
    """An application that completes again and again has one at a time."""
    h = a_partition()
    h.submit()
    for key in ("a", "b", "c"):
        h.ask_and_run(key)
        h.release(key)

    assert {"STATE": 1} == waiting(h)


def test_applications_that_come_and_go_leave_nothing() -> None:
    """However many there were: their timers waited three days, and an hour, and so on."""
    h = a_partition()
    for number in range(50):
        (start, start_gang)[number % 2](h, f"app-{number}")
        if number % 3:
            h.release("", application_id=f"app-{number}")
        h.withdraw(f"app-{number}")

    assert set(waiting(h).items()) <= {("Expiry", 1)}
    assert 50 == len(h.released_handles)


# ------------------------------------------------------------------------------------------- expiries


def completed(h: Harness, *names: str) -> None:
    """Have applications complete by themselves."""
    for name in names:
        h.submit(name)
        h.ask_and_run(f"{name}-task", application_id=name)
        h.release(f"{name}-task", application_id=name)
        h.advance(31)


def test_those_that_have_ended_share_one_timer() -> None:
    """Whether they completed or were rejected; each expires at its own time."""
    h = a_partition()
    completed(h, "a", "b")
    h.submit("c", queue_name="root.nowhere")
    completed(h, "d")
    shared = waiting(h)

    kept = []
    for seconds in (SECONDS_OF_THREE_DAYS - 64, 1, 31, 1, 29, 1):
        h.advance(seconds)
        ended = (ended.application.application_id for ended in h.state.completed.values())
        kept.append("".join([*ended, *h.state.rejected]))

    assert ["abdc", "bdc", "dc", "d", "d", ""] == kept
    assert ({"Expiry": 1}, {}) == (shared, waiting(h))


def test_those_that_ended_at_once_expire_in_the_order_of_their_ends() -> None:
    """The RM hears of it so."""
    h = a_partition()
    names = ["b", "c", "a"]
    for name in names:
        h.submit(name)
        h.ask(f"{name}-task", application_id=name)
    h.run_until_idle()
    for name in names:
        h.release(f"{name}-task", application_id=name)
    h.submit("rejected", queue_name="root.nowhere")
    h.advance(31)
    h.forget()

    h.advance(SECONDS_OF_THREE_DAYS)

    assert ["rejected", *names] == expired(h)
    assert 4 == len(h.released_handles)


def expired(h: Harness) -> list[str]:
    """Return what has expired, in the order of the messages to the RM."""
    return [entry.application_id for entry in h.heard(ApplicationChanged) if entry.state == "Expired"]


def test_the_clock_goes_on_where_who_expires_first_is_taken_away() -> None:
    """An application that completes on its way out is not kept; the next one still expires in time."""
    h = a_partition()
    _withdraw_terminated(h)
    h.advance(5)
    completed(h, "late")
    h.forget()

    h.advance(SECONDS_OF_THREE_DAYS)

    assert (["late"], {}) == (expired(h), waiting(h))


def test_a_rejected_application_lets_the_one_before_it_go() -> None:
    """Only the latest of an id is kept, with its timer and its handle."""
    h = a_partition()
    for _ in range(20):
        h.submit("odd", queue_name="root.nowhere")

    assert (19, 1, {"Expiry": 1}) == (len(h.released_handles), len(h.state.expiries), waiting(h))


# ---------------------------------------------------------------------------------- the partition's own


def test_an_idle_partition_retries_once() -> None:
    """However often the timer comes, and whatever becomes due earlier."""
    h = Harness()
    h.nodes("spare", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.nodes("one")
    h.submit()
    h.ask("used", node_id="one", resource=a_resource(memory=1))
    h.ask("a", resource=TEN)
    for _ in range(5):
        h.partition.on_timer(RetryAsks())
        h.partition.work(5)

    assert {"RetryAsks": 1, "Inspection": 1} == waiting(h)
