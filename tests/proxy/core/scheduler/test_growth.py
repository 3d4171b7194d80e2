"""What one step costs does not grow with what there is of everything else.

Each row of the table makes a scheduler with so many of something, then one with four times as many, and
counts the lines of Python that the same step executes in both. So no clock takes part, and a step that begins
to visit all there is fails here. A row may allow growth, and says why: nothing may grow faster than it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from support.proxy.counted_lines import lines_executed
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    keys,
    node_request,
    placeholder_request,
    release_request,
)

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

FEW: Final = 60
MANY: Final = 4 * FEW
STEPS: Final = 20
FLAT: Final = 1.1
"""What a flat step may cost more with four times as many: a few lines more to search an order by halving."""


@dataclass(frozen=True)
class Row:
    """What grows, and what is counted then.

    Attributes:
        fill: makes that many, and what the step needs.
        step: what is counted.
        queues: the queues below the root, as YAML in one line, for that many.
        growth: what the step may cost more with four times as many.
        properties: the properties of the root, as YAML in one line.
    """

    fill: Callable[[Scheduler, int], None]
    step: Callable[[Scheduler], None]
    queues: Callable[[int], str] = lambda _: "{name: leaf}"
    growth: float = FLAT
    properties: str = ""


def place(scheduler: Scheduler) -> None:
    """Place asks of the application `app`, one after the other."""
    for key in keys(STEPS, "measured"):
        scheduler.update_allocation(ask_request(key))
        scheduler.run_until_idle()


def release(scheduler: Scheduler) -> None:
    """Release what was placed for the application `app`."""
    for key in keys(STEPS, "early"):
        scheduler.update_allocation(release_request(key))
        scheduler.run_until_idle()


def submit(scheduler: Scheduler) -> None:
    """Submit applications with one ask each."""
    for name in keys(STEPS, "measured"):
        scheduler.update_application(application_request(name))
        scheduler.update_allocation(ask_request(f"{name}-ask", application=name))
        scheduler.run_until_idle()


def add_nodes(scheduler: Scheduler) -> None:
    """Create nodes, one after the other."""
    for name in keys(STEPS, "measured"):
        scheduler.update_node(node_request(name))
        scheduler.run_until_idle()


def wait_for_attempts(scheduler: Scheduler) -> None:
    """Let the time pass after which preemption is tried again for each ask, and as much again."""
    for _ in range(2):
        scheduler.advance_to(scheduler.now_ns() + 16 * 10**9)
        scheduler.run_until_idle()


def empty_nodes(scheduler: Scheduler, count: int) -> None:
    """Make n empty nodes, with an application."""
    scheduler.update_node(node_request(*keys(count, "node"), memory=100))
    scheduler.update_application(application_request("app"))
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))


def full_nodes(scheduler: Scheduler, count: int) -> None:
    """Fill n nodes, and add one with room."""
    scheduler.update_application(application_request("app"))
    scheduler.update_node(node_request(*keys(count, "node"), memory=1))
    scheduler.update_allocation(ask_request(*keys(count, "filling")))
    scheduler.run_until_idle()
    scheduler.update_node(node_request("roomy", memory=1_000))


def one_node(scheduler: Scheduler, *, memory: int = 1_000_000) -> None:
    """Make one node that has room, with an application."""
    scheduler.update_node(node_request("node", memory=memory))
    scheduler.update_application(application_request("app"))


def placed_asks(scheduler: Scheduler, count: int) -> None:
    """Place n asks of one application."""
    one_node(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early"), *keys(count, "placed")))


def waiting_asks(scheduler: Scheduler, count: int) -> None:
    """Let n asks of one application wait that are too large for any node."""
    one_node(scheduler, memory=1_000)
    scheduler.update_application(application_request("waiting"))
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    scheduler.update_allocation(ask_request(*keys(count, "large"), application="waiting", memory=10_000))


def barred_applications(scheduler: Scheduler, count: int) -> None:
    """Let n applications wait, with an ask each that is too large for the whole cluster."""
    waiting_applications(scheduler, count, memory=100_000)


def running_applications(scheduler: Scheduler, count: int) -> None:
    """Let n applications run with one allocation each."""
    one_node(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "other"):
        scheduler.update_application(application_request(name))
        scheduler.update_allocation(ask_request(f"{name}-ask", application=name))


def twenty_nodes(scheduler: Scheduler) -> None:
    """Make nodes that together are larger than what waits, and each of them smaller."""
    scheduler.update_node(node_request(*keys(20, "node"), memory=1_000))
    scheduler.update_application(application_request("app"))


def waiting_applications(scheduler: Scheduler, count: int, *, memory: int = 10_000) -> None:
    """Let n applications wait, with an ask each that is too large for any node."""
    twenty_nodes(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "other"):
        scheduler.update_application(application_request(name))
        scheduler.update_allocation(ask_request(f"{name}-ask", application=name, memory=memory))


def waiting_sizes(scheduler: Scheduler, count: int, *, least: int = 10_000) -> None:
    """Let 5n applications wait, each with an ask of another size that is too large for any node."""
    twenty_nodes(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for number, name in enumerate(keys(5 * count, "other")):
        scheduler.update_application(application_request(name))
        scheduler.update_allocation(ask_request(f"{name}-ask", application=name, memory=least + number))


def barred_sizes(scheduler: Scheduler, count: int) -> None:
    """Let 5n applications wait, each with an ask of another size that is too large for the whole cluster."""
    waiting_sizes(scheduler, count, least=100_000)


def applications_with_many_sizes(scheduler: Scheduler, count: int) -> None:
    """Let n applications wait, each with asks of the same twelve sizes that are too large for any node."""
    twenty_nodes(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "other"):
        scheduler.update_application(application_request(name))
        for number, key in enumerate(keys(12, f"{name}-ask")):
            scheduler.update_allocation(ask_request(key, application=name, memory=10_000 + number))


def gang_beside_waiting(scheduler: Scheduler, count: int) -> None:
    """Let a gang hold placeholders, beside n applications that wait for a node."""
    waiting_applications(scheduler, count)
    request = application_request("gang")
    request.new[0].placeholderAsk.resources["memory"].value = 2
    scheduler.update_application(request)
    for key in ("placeholder-0", "placeholder-1"):
        placeholder = placeholder_request(key)
        placeholder.allocations[0].applicationID = "gang"
        scheduler.update_allocation(placeholder)


def gang_request(key: str, group: str, *, placeholder: bool) -> si.AllocationRequest:
    request = ask_request(key, application="gang")
    request.allocations[0].taskGroupName = group
    request.allocations[0].placeholder = placeholder
    return request


def placeholders(scheduler: Scheduler, count: int, *, groups: bool = True) -> None:
    """Place n placeholders of one gang that needs more, each in a task group of its own or all in one."""
    one_node(scheduler)
    request = application_request("gang")
    request.new[0].placeholderAsk.resources["memory"].value = 10_000
    scheduler.update_application(request)
    for key in keys(count, "placeholder"):
        scheduler.update_allocation(gang_request(key, key if groups else "group", placeholder=True))
        scheduler.run_until_idle()


def placeholders_of_one_group(scheduler: Scheduler, count: int) -> None:
    """As above, all in one."""
    placeholders(scheduler, count, groups=False)


def place_placeholders(scheduler: Scheduler) -> None:
    """Place further ones."""
    for key in keys(STEPS, "measured"):
        scheduler.update_allocation(gang_request(key, key, placeholder=True))
        scheduler.run_until_idle()


def replace_placeholders(scheduler: Scheduler) -> None:
    """Let members take the places of placeholders."""
    for key in keys(STEPS, "measured"):
        scheduler.update_allocation(gang_request(key, "group", placeholder=False))
        scheduler.run_until_idle()


def apps_of_one_user(scheduler: Scheduler, count: int, *, user: str) -> None:
    """Let one application of a user run, and n wait, in the leaf of `app`."""
    one_node(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    scheduler.run_until_idle()
    for name in keys(count + 1, "other"):
        request = application_request(name)
        request.new[0].ugi.user = user
        scheduler.update_application(request)
        scheduler.update_allocation(ask_request(f"{name}-ask", application=name))


def apps_over_a_limit(scheduler: Scheduler, count: int) -> None:
    """Let n applications wait for the room of one user."""
    apps_of_one_user(scheduler, count, user="limited")


def apps_over_a_count(scheduler: Scheduler, count: int) -> None:
    """Let n applications wait until their user runs one less."""
    apps_of_one_user(scheduler, count, user="counted")


def owed_applications(scheduler: Scheduler, count: int) -> None:
    """Let n applications wait that may preempt and find no victim, beside the leaf of `app`."""
    one_node(scheduler, memory=1_000)
    wait_to_preempt(scheduler, count, asks=1)


def wait_to_preempt(scheduler: Scheduler, count: int, *, asks: int) -> None:
    """Let n applications wait, each with so many asks that no node has room for and that may preempt."""
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "other"):
        scheduler.update_application(application_request(name, queue="root.owed"))
        request = ask_request(*keys(asks, f"{name}-ask"), application=name, memory=2_000)
        for ask in request.allocations:
            ask.preemptionPolicy.allowPreemptOther = True
        scheduler.update_allocation(request)


def owed_with_several_asks(scheduler: Scheduler, count: int) -> None:
    """Let n applications wait that may preempt for three asks each, which only nodes have no room for."""
    twenty_nodes(scheduler)
    wait_to_preempt(scheduler, count, asks=3)


def owed_sizes(scheduler: Scheduler, count: int) -> None:
    """Let n applications wait that may preempt, each for another size; the oldest have reserved nodes."""
    nodes = count // 2
    scheduler.update_node(node_request(*keys(nodes, "node"), memory=10_000))
    scheduler.update_application(application_request("app"))
    scheduler.update_allocation(ask_request(*keys(nodes, "full"), memory=9_000))
    scheduler.run_until_idle()
    for number, name in enumerate(keys(count, "other")):
        scheduler.update_application(application_request(name, queue="root.owed"))
        request = ask_request(f"{name}-ask", application=name, memory=2_000 + number)
        request.allocations[0].preemptionPolicy.allowPreemptOther = True
        scheduler.update_allocation(request)
    for _ in range(2):
        scheduler.run_until_idle()
        scheduler.advance_to(scheduler.now_ns() + 10 * 10**9)


def victims(scheduler: Scheduler, count: int) -> None:
    """Let n allocations run that an owed ask may preempt; it is larger than the node and waits."""
    owed_applications(scheduler, 1)
    scheduler.update_allocation(ask_request(*keys(count, "victim")))
    scheduler.run_until_idle()
    scheduler.advance_to(scheduler.now_ns() + 10**9)


def held_users(scheduler: Scheduler, count: int) -> None:
    """Let an application of each of n users wait for the room of its user."""
    one_node(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "user"):
        request = application_request(f"of-{name}")
        request.new[0].ugi.user = name
        scheduler.update_application(request)
        scheduler.update_allocation(ask_request(f"{name}-ask", application=f"of-{name}", memory=1_001))


def ask_in_each_queue(scheduler: Scheduler, count: int, memory: int) -> None:
    """Send early asks, and one ask of a size to each of n queues."""
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "q"):
        scheduler.update_application(application_request(f"in-{name}", queue=f"root.{name}"))
        scheduler.update_allocation(ask_request(f"{name}-ask", application=f"in-{name}", memory=memory))


def busy_queues(scheduler: Scheduler, count: int) -> None:
    """Let one application run in each of n queues."""
    one_node(scheduler)
    ask_in_each_queue(scheduler, count, memory=1)


def waiting_queues(scheduler: Scheduler, count: int) -> None:
    """Let one ask wait in each of n queues, too large for any node."""
    twenty_nodes(scheduler)
    ask_in_each_queue(scheduler, count, memory=10_000)


def queues_at_their_maximum(scheduler: Scheduler, count: int) -> None:
    """Let one ask wait in each of n queues for room below its own maximum."""
    one_node(scheduler)
    ask_in_each_queue(scheduler, count, memory=2)


def reserved_asks(scheduler: Scheduler, count: int) -> None:
    """Let n asks of one application reserve a node each, and twenty more come for which nodes are left."""
    scheduler.update_application(application_request("app"))
    scheduler.update_application(application_request("reserving"))
    scheduler.update_node(node_request(*keys(count + STEPS, "node"), memory=100))
    scheduler.update_allocation(ask_request(*keys(count + STEPS, "filling"), memory=60))
    scheduler.run_until_idle()
    scheduler.update_allocation(ask_request(*keys(count, "large"), application="reserving", memory=100))
    scheduler.advance_to(scheduler.now_ns() + 5 * 10**9)
    scheduler.run_until_idle()
    scheduler.update_allocation(ask_request(*keys(STEPS, "measured"), application="reserving", memory=100))


def free_reserved_nodes(scheduler: Scheduler) -> None:
    """Free reserved nodes, one after the other."""
    for key in keys(STEPS, "filling"):
        scheduler.update_allocation(release_request(key))
        scheduler.run_until_idle()


def reserve(scheduler: Scheduler) -> None:
    """Let the asks that came last get old enough to reserve nodes."""
    scheduler.advance_to(scheduler.now_ns() + 5 * 10**9)
    scheduler.run_until_idle()


def busy_users(scheduler: Scheduler, count: int) -> None:
    """Let n users with a limit of their own run an application each."""
    one_node(scheduler)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "user"):
        request = application_request(f"of-{name}")
        request.new[0].ugi.user = name
        scheduler.update_application(request)
        scheduler.update_allocation(ask_request(f"{name}-ask", application=f"of-{name}"))


def jobs_behind_a_promise(scheduler: Scheduler, count: int) -> None:
    """Let n jobs wait behind the first one, which is promised the room of jobs that run for an hour."""
    wait_behind_a_promise(scheduler, [(91 - number % 6, 60) for number in range(count)])


def jobs_beside_a_promise(scheduler: Scheduler, count: int) -> None:
    """Let n jobs of other walltimes each wait that have room and would delay the first one."""
    wait_behind_a_promise(scheduler, [(91, 60), *((10 + number % 6, 70 + number) for number in range(count))])


def wait_behind_a_promise(scheduler: Scheduler, jobs: list[tuple[int, int]]) -> None:
    """Let jobs of that much memory and as many minutes wait while others run for an hour."""
    one_node(scheduler, memory=100)
    early = ask_request(*keys(STEPS, "early"), memory=3)
    for ask in early.allocations:
        ask.allocationTags["walltime"] = "1h"
    scheduler.update_allocation(early)
    for name, (memory, minutes) in zip(keys(len(jobs), "other"), jobs, strict=True):
        request = ask_request(f"{name}-ask", application=name, memory=memory)
        request.allocations[0].allocationTags["walltime"] = f"{minutes}m"
        scheduler.update_application(application_request(name))
        scheduler.update_allocation(request)


def promised_jobs(scheduler: Scheduler, count: int) -> None:
    """Let n jobs wait that are each promised a start, and others come later."""
    jobs_behind_a_promise(scheduler, count)
    scheduler.run_until_idle()
    scheduler.advance_to(scheduler.now_ns() + 10**9)


def submit_jobs(scheduler: Scheduler) -> None:
    """Submit jobs that end before the first one is to start, and have room."""
    for name in keys(STEPS, "measured"):
        request = ask_request(f"{name}-ask", application=name)
        request.allocations[0].allocationTags["walltime"] = "1m"
        scheduler.update_application(application_request(name))
        scheduler.update_allocation(request)
        scheduler.run_until_idle()


def end_early(scheduler: Scheduler) -> None:
    """Release some of what was placed, which is not enough for any job."""
    for key in keys(5, "early"):
        scheduler.update_allocation(release_request(key))
        scheduler.run_until_idle()


def past_users(scheduler: Scheduler, count: int) -> None:
    """Let each of n users have used something, and wait for more than there is."""
    one_node(scheduler, memory=1_000)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "user"):
        request = application_request(f"of-{name}")
        request.new[0].ugi.user = name
        scheduler.update_application(request)
        use_and_wait(scheduler, f"of-{name}")


def past_queues(scheduler: Scheduler, count: int) -> None:
    """Let something have run in each of n queues, and wait there for more than there is."""
    one_node(scheduler, memory=1_000)
    scheduler.update_allocation(ask_request(*keys(STEPS, "early")))
    for name in keys(count, "q"):
        scheduler.update_application(application_request(f"in-{name}", queue=f"root.{name}"))
        use_and_wait(scheduler, f"in-{name}")


def use_and_wait(scheduler: Scheduler, application: str) -> None:
    """Run something of an application for a second, and let another ask of it wait."""
    scheduler.update_allocation(ask_request(f"{application}-used", application=application))
    scheduler.run_until_idle()
    scheduler.advance_to(scheduler.now_ns() + 10**9)
    scheduler.update_allocation(ask_request(f"{application}-ask", application=application, memory=1_001))
    scheduler.update_allocation(release_request(f"{application}-used", application=application))


def place_later(scheduler: Scheduler) -> None:
    """Place asks of the application `app`, one each second."""
    for key in keys(STEPS, "measured"):
        scheduler.advance_to(scheduler.now_ns() + 10**9)
        scheduler.update_allocation(ask_request(key))
        scheduler.run_until_idle()


def limited_user(_: int) -> str:
    """Return a leaf that limits what a user has, and how many applications another one runs."""
    by_room = "{users: [limited], maxresources: {memory: 1}}"
    by_count = "{users: [counted], maxapplications: 1}"
    return f"{{name: leaf, limits: [{by_room}, {by_count}]}}"


def owed_leaf(_: int) -> str:
    """Return a leaf beside the one of `app` that has a guarantee."""
    return (
        "{name: leaf}, {name: owed, resources: {guaranteed: {memory: 900}}, "
        "properties: {preemption.delay: 1ms}}"
    )


def many_leaves(count: int) -> str:
    """Return n leaves beside the one of `app`."""
    return ", ".join(["{name: leaf}", *(f"{{name: {name}}}" for name in keys(count, "q"))])


def small_leaves(count: int) -> str:
    """Return n leaves with a maximum beside the one of `app`."""
    small = [f"{{name: {name}, resources: {{max: {{memory: 1}}}}}}" for name in keys(count, "q")]
    return ", ".join(["{name: leaf}", *small])


def limited_users(count: int) -> str:
    """Return a leaf that limits each of n users."""
    limits = ", ".join(f"{{users: [{name}], maxresources: {{memory: 1000}}}}" for name in keys(count, "user"))
    return f"{{name: leaf, limits: [{limits}]}}"


PAST_OF_USERS: Final = "{name: leaf, properties: {application.sort.policy: users, fair.half-life: 1h}}"
ROWS: Final = {
    "placing beside empty nodes": Row(empty_nodes, place),
    "placing beside full nodes": Row(full_nodes, place),
    "releasing beside empty nodes": Row(empty_nodes, release),
    "adding a node beside others": Row(empty_nodes, add_nodes),
    "placing beside placed asks": Row(placed_asks, place),
    "releasing beside placed asks": Row(placed_asks, release),
    "placing beside waiting asks": Row(waiting_asks, place),
    "releasing beside waiting asks": Row(waiting_asks, release),
    "placing beside running applications": Row(running_applications, place),
    "submitting beside running applications": Row(running_applications, submit),
    "releasing beside running applications": Row(running_applications, release),
    "placing beside waiting applications": Row(waiting_applications, place),
    "submitting beside waiting applications": Row(waiting_applications, submit),
    "releasing beside waiting applications": Row(waiting_applications, release),
    "placing beside barred applications": Row(barred_applications, place),
    "submitting beside barred applications": Row(barred_applications, submit),
    "releasing beside barred applications": Row(barred_applications, release),
    "placing beside waiting sizes": Row(waiting_sizes, place),
    "submitting beside waiting sizes": Row(waiting_sizes, submit),
    "releasing beside waiting sizes": Row(waiting_sizes, release),
    "placing beside barred sizes": Row(barred_sizes, place),
    "releasing beside barred sizes": Row(barred_sizes, release),
    "placing beside applications with many sizes": Row(applications_with_many_sizes, place),
    "releasing beside applications with many sizes": Row(applications_with_many_sizes, release),
    "placing beside a gang and waiting applications": Row(gang_beside_waiting, place),
    "releasing beside a gang and waiting applications": Row(gang_beside_waiting, release),
    "placing placeholders beside those of other groups": Row(placeholders, place_placeholders),
    "replacing placeholders beside others": Row(placeholders_of_one_group, replace_placeholders),
    "placing beside applications over a limit": Row(apps_over_a_limit, place, limited_user),
    "submitting beside applications over a limit": Row(apps_over_a_limit, submit, limited_user),
    "releasing beside applications over a limit": Row(apps_over_a_limit, release, limited_user),
    "placing beside applications over a count": Row(apps_over_a_count, place, limited_user),
    "submitting beside applications over a count": Row(apps_over_a_count, submit, limited_user),
    "releasing beside applications over a count": Row(apps_over_a_count, release, limited_user),
    "placing beside owed applications": Row(owed_applications, place, owed_leaf),
    "submitting beside owed applications": Row(owed_applications, submit, owed_leaf),
    "releasing beside owed applications": Row(owed_applications, release, owed_leaf),
    "releasing beside owed applications with several asks": Row(owed_with_several_asks, release, owed_leaf),
    # An attempt that found nothing holds for a second: a step looks for no victims.
    "placing beside victims": Row(victims, place, owed_leaf),
    "releasing beside victims": Row(victims, release, owed_leaf),
    # A walk makes ten attempts, and asks of each size whether it may be tried.
    "trying to preempt for sizes of their own": Row(owed_sizes, wait_for_attempts, owed_leaf, growth=3.5),
    "placing beside held users": Row(held_users, place, limited_users),
    "submitting beside held users": Row(held_users, submit, limited_users),
    "releasing beside held users": Row(held_users, release, limited_users),
    "placing beside busy queues": Row(busy_queues, place, many_leaves),
    "releasing beside busy queues": Row(busy_queues, release, many_leaves),
    "placing beside waiting queues": Row(waiting_queues, place, many_leaves),
    "releasing beside waiting queues": Row(waiting_queues, release, many_leaves),
    "placing beside queues at their maximum": Row(queues_at_their_maximum, place, small_leaves),
    "submitting beside queues at their maximum": Row(queues_at_their_maximum, submit, small_leaves),
    "releasing beside queues at their maximum": Row(queues_at_their_maximum, release, small_leaves),
    "reserving beside reserved asks": Row(reserved_asks, reserve),
    "freeing nodes beside reserved asks": Row(reserved_asks, free_reserved_nodes),
    "placing beside busy users": Row(busy_users, place, limited_users),
    "submitting beside busy users": Row(busy_users, submit, limited_users),
    "submitting beside jobs behind a promise": Row(
        jobs_behind_a_promise, submit_jobs, properties="backfill.reservations: '1'"
    ),
    "releasing beside jobs behind a promise": Row(
        jobs_behind_a_promise, end_early, properties="backfill.reservations: '1'"
    ),
    "submitting beside jobs that would delay a promise": Row(
        jobs_beside_a_promise, submit_jobs, properties="backfill.reservations: '1'"
    ),
    # After an end the walltimes of all of them are compared, and a few are tried.
    "releasing beside jobs that would delay a promise": Row(
        jobs_beside_a_promise, end_early, growth=1.5, properties="backfill.reservations: '1'"
    ),
    # Each of three walks passes each waiting job in some fifteen lines.
    "submitting beside jobs with promises": Row(
        promised_jobs, submit_jobs, growth=2.2, properties="backfill.reservations: all"
    ),
    # Each promise may move forward.
    "releasing beside jobs with promises": Row(
        promised_jobs, end_early, growth=3.9, properties="backfill.reservations: all"
    ),
    "placing beside users with past use": Row(past_users, place_later, lambda _: PAST_OF_USERS),
    "placing beside queues with past use": Row(
        past_queues, place_later, many_leaves, properties="fair.half-life: 1h"
    ),
}


def lines_of(row: Row, count: int) -> int:
    """Return how many lines the step executes with that many."""
    below = f"properties: {{{row.properties}}}, queues: [{row.queues(count)}]"
    configuration = f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', {below}}}]}}]"
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=configuration)
        row.fill(scheduler, count)
        scheduler.run_until_idle()
        scheduler.events.counters()  # Moves the events of the fill into blocks, so that the step does not.
        return lines_executed(lambda: row.step(scheduler))


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_a_step_costs_the_same_with_four_times_as_many_of_everything_else(row: Row) -> None:
    few, many = lines_of(row, FEW), lines_of(row, MANY)

    assert many <= row.growth * few, f"{few} lines with {FEW}, {many} with {MANY}"


def test_a_visit_of_each_of_them_is_counted() -> None:
    """A generator in one line of code executes that line once for each, and counts as often."""
    few = lines_executed(lambda: sum(number for number in range(FEW)))
    many = lines_executed(lambda: sum(number for number in range(MANY)))

    assert many > FLAT * few
