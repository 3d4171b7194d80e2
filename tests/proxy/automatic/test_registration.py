"""Registration and configuration while work goes on."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest
from support.proxy.listening import WAIT_SECONDS, Gate, Listener
from support.proxy.manager_requests import (
    BROKEN,
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    gang_request,
    keys,
    node_request,
    placeholder_request,
)
from support.proxy.running_scheduler import actors_of, begin, in_threads, placed_in, running, threads_of_ours

from licorne import RequestError, Scheduler

SECOND_NS: Final = 1_000_000_000


def test_a_manager_that_registers_again_starts_afresh(scheduler: Scheduler, listener: Listener) -> None:
    """While it is busy: all that it had ends, and the same names are free again."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(500)))
    listener.wait_for_count("placed ", 1)
    again = Listener()
    begin(scheduler, again)

    assert 0 == placed_in(scheduler)
    assert "app is Failed" in listener.heard
    scheduler.update_allocation(ask_request(*keys(500)))
    again.wait_for_count("placed ", 500)


def test_registrations_at_once_take_turns(scheduler: Scheduler) -> None:
    """One of them stays; none hangs, and no link of the others either."""
    listeners = [Listener() for _ in range(4)]
    served = Gate("accepted node")
    served.open()
    for listener in listeners:
        listener.react = served.hold
    bodies = [partial(scheduler.register, "rm", listener, configuration=ONE) for listener in listeners]
    in_threads(*bodies)
    scheduler.update_node(node_request("node"))

    assert served.reached.wait(WAIT_SECONDS)
    assert 1 == sum("accepted node" in listener.heard for listener in listeners)


def test_what_an_earlier_registration_had_is_dropped() -> None:
    """The actors of cluster and partition are all that remain."""
    with running() as scheduler:
        listener = Listener()
        for _ in range(3):
            begin(scheduler, listener)
            scheduler.update_allocation(ask_request("ask"))
            listener.wait_for("placed ask")
        scheduler.register("rm", listener, configuration=ONE)

        assert 2 == actors_of(scheduler)


def test_timers_of_an_earlier_registration_do_not_reach_the_next_one() -> None:
    """An application of the same name starts its time anew; on the virtual clock."""
    scheduler, listener = Scheduler(engine="direct"), Listener()
    start_ns = scheduler.now_ns()
    for begun_ns in (0, 50 * SECOND_NS):
        scheduler.advance_to(start_ns + begun_ns)
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.update_node(node_request("node"))
        scheduler.update_application(gang_request(total=2, timeout_ms=60_000))
        scheduler.update_allocation(placeholder_request("holder"))
        scheduler.run_until_idle()
    scheduler.advance_to(start_ns + 61 * SECOND_NS)

    assert "released holder TIMEOUT" not in listener.heard


def test_a_partition_is_removed_while_it_is_busy(scheduler: Scheduler, listener: Listener) -> None:
    """Its asks end with it, later ones are answered, and the other partition goes on."""
    begin(scheduler, listener, configuration=TWO)
    scheduler.update_allocation(ask_request(*keys(500), application="app-second", partition="second"))
    listener.wait_for_count("placed ", 1)
    scheduler.update_configuration(configuration_request(ONE))
    listener.wait_for("app-second is Failed")

    scheduler.update_allocation(ask_request("late", application="app-second", partition="second"))
    scheduler.update_allocation(ask_request("other"))
    reason = "Failed to find partition [rm]second, for application app-second and allocation late"
    listener.wait_for(f"rejected late: {reason}", "placed other")


@pytest.mark.lockcheck(off=True)  # the thread that registers stands for another one besides
@pytest.mark.parametrize("change", ["registration", "removal"])
def test_what_arrives_while_its_partition_ends_is_answered(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """A request that was sent between the end of the partition and the news of it."""
    begin(scheduler, listener, configuration=TWO)
    enter = scheduler._managers.enter
    errors: list[Exception] = []

    def late(*args: Any) -> Any:
        try:
            scheduler.update_application(application_request("late", partition="second"))
        except Exception as error:  # noqa: BLE001 - none is expected
            errors.append(error)
        return enter(*args)

    monkeypatch.setattr(scheduler._managers, "enter", late)
    if change == "registration":
        scheduler.register("rm", listener, configuration=TWO)
    else:
        scheduler.update_configuration(configuration_request(ONE))

    assert [] == errors
    assert listener.hears(lambda: any(" late" in text for text in listener.heard), seconds=1)


@pytest.mark.parametrize("text", [BROKEN, "no: [yaml"])
def test_a_refused_configuration_leaves_everything_as_it_was(
    scheduler: Scheduler, listener: Listener, text: str
) -> None:
    """Whether it comes with an update or with another registration."""
    begin(scheduler, listener, configuration=TWO)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    before = scheduler.snapshot()

    with pytest.raises(RequestError, match="update of configuration failed: "):
        scheduler.update_configuration(configuration_request(text))
    with pytest.raises(RequestError, match="registration of RM failed: "):
        scheduler.register("rm", Listener(), configuration=text)
    assert before == scheduler.snapshot()
    scheduler.update_allocation(ask_request("next", application="app-second", partition="second"))
    listener.wait_for("placed next")


def test_a_registration_without_an_id_is_refused_in_few_words(
    scheduler: Scheduler, listener: Listener
) -> None:
    """That it failed is reported once, whichever thread finds out why."""
    with pytest.raises(RequestError, match=r"^registration of RM failed: the rmID is empty$"):
        scheduler.register("", listener)


def test_a_refused_registration_leaves_no_manager_and_no_thread(
    scheduler: Scheduler, listener: Listener
) -> None:
    """As if it had never been tried."""
    before = threads_of_ours()
    with pytest.raises(RequestError, match="registration of RM failed: "):
        scheduler.register("rm", listener, configuration=BROKEN)

    assert before == threads_of_ours()
    with pytest.raises(RequestError, match="not registered"):
        scheduler.update_node(node_request("node"))
