"""What the most frequent step costs in lines and calls of Python: an ask comes, and a cycle places it.

The bounds are what it costs now: a change that makes it cheaper lowers them, and one that makes it dearer
raises them with a reason.
"""

from __future__ import annotations

import pytest
from support.proxy.counted_lines import Count, package_counts
from support.proxy.manager_requests import application_request, ask_request, keys, node_request

from licorne import ResourceManager, Scheduler
from licorne.model.scheduling.cycle import run_cycle
from licorne.proxy.base.process import is_compiled

QUEUES = "{name: a, resources: {guaranteed: {memory: 900}}}, {name: leaf}"

pytestmark = pytest.mark.skipif(is_compiled(), reason="machine code executes no lines that are counted")


def counted_ask() -> tuple[Count, Count]:
    """Return what an ask costs that has room, from the request to the callback, and its cycle alone."""
    configuration = (
        f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', queues: [{QUEUES}]}}]}}]"
    )
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=configuration)
        scheduler.update_node(node_request(*keys(20, "node")))
        for name, queue in (("first", "root.a"), ("app", "root.leaf")):
            scheduler.update_application(application_request(name, queue=queue))
            scheduler.update_allocation(ask_request(*keys(20, f"{name}-early"), application=name))
        scheduler.run_until_idle()
        request = ask_request("measured")

        def work() -> None:
            scheduler.update_allocation(request)
            scheduler.run_until_idle()

        whole, cycles = package_counts(work, run_cycle.__code__)
        return whole, cycles[0]


def test_the_cycle_that_places_an_ask_costs_no_more_lines_and_calls() -> None:
    _, cycle = counted_ask()

    assert cycle.lines <= 675
    assert cycle.calls <= 143


def test_a_whole_ask_costs_no_more_lines_and_calls_and_opens_no_more_files() -> None:
    whole, _ = counted_ask()

    assert whole.lines <= 1_494  # One notes that a section is open: others ask no signal handler then.
    assert whole.calls <= 331
    assert len(whole.files) <= 55
