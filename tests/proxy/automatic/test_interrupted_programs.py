"""Programs whose user presses Ctrl-C: it surfaces in their own code, and the scheduler stays whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Final

import pytest
from support.proxy.listening import Gate, Listener, PredicateListener
from support.proxy.manager_requests import TWO, ask_request, configuration_request
from support.proxy.running_scheduler import begin
from support.waiting import WAIT_SECONDS, stays, wait_until

from licorne import Scheduler

_PROGRAM: Final = """
import sys, threading
from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si
class Manager(ResourceManager):
    def predicates(self, args): pass
TEXT = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf%d}]}]}]"
kind = sys.argv[1]
scheduler = Scheduler(engine=kind, stepped=True) if kind == "direct" else Scheduler(engine=kind)
scheduler.register("rm", Manager(), configuration=TEXT % 0)
node = {"nodeID": "n", "action": "CREATE", "schedulableResource": {"resources": {"memory": {"value": 10**9}}}}
scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))
number = 0
print("ready", flush=True)
try:
    while True:
        number += 1
        name = f"app-{number}"
        new = {"applicationID": name, "queueName": "root.leaf0", "ugi": {"user": "u"}}
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[new]))
        size = {"resources": {"memory": {"value": 1}}}
        ask = {"allocationKey": name, "applicationID": name, "resourcePerAlloc": size}
        scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))
        if kind == "direct":
            scheduler.run_until_idle()
        if number % 5 == 0:
            scheduler.snapshot()
        if number % 7 == 0:
            text = (TEXT % 0).replace("}]}]}]", "}, {name: more%d}]}]}]" % number)
            scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=text))
except KeyboardInterrupt:
    pass
scheduler.validate()
scheduler.register("again", Manager(), configuration=TEXT % 1)
scheduler.snapshot()
scheduler.stop()
left = [thread.name for thread in threading.enumerate() if thread.name.startswith("licorne")]
print("whole", left, flush=True)
"""


@pytest.mark.parametrize("moment_ms", [3, 40])
@pytest.mark.parametrize("engine", ["actors", "threads", "direct"])
def test_a_program_that_is_interrupted_goes_on_with_a_whole_scheduler(engine: str, moment_ms: int) -> None:
    """Wherever its main thread was: in a request, a look, or a reload."""
    command = [sys.executable, "-c", _PROGRAM, engine]
    with subprocess.Popen(  # noqa: S603 - our own code, by our own interpreter
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert "ready\n" == program.stdout.readline()
        threading.Event().wait(moment_ms / 1000)
        program.send_signal(signal.SIGINT)
        output, errors = program.communicate(timeout=60)

    assert ("whole []\n", "", 0) == (output, errors, program.returncode)


def interrupts(action: Callable[[], object]) -> bool:
    """Press Ctrl-C while the main thread waits in a call; return whether that raises in the call."""
    places: list[object] = []
    returned = False

    def stands_still() -> bool:
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        places.append((frame.f_code, frame.f_lasti))
        return len(places) >= 10 and len(set(places[-10:])) == 1

    def press() -> None:
        wait_until(stands_still)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come at any of these
        threading.Thread(target=press).start()
        action()
        returned = True
        threading.Event().wait(WAIT_SECONDS)
    return not returned


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's"
)
def test_a_call_that_waits_is_interrupted_and_happens_all_the_same(scheduler: Scheduler) -> None:
    """A reload waits for a partition that asks a predicate; so does a stop, which can be repeated."""
    predicate_listener, gate = PredicateListener(), Gate("asked to place ask")
    predicate_listener.react = gate.hold
    begin(scheduler, predicate_listener)
    scheduler.update_allocation(ask_request("ask"))
    assert gate.reached.wait(WAIT_SECONDS)
    reloaded = interrupts(lambda: scheduler.update_configuration(configuration_request(TWO)))
    on_actors = scheduler._engine.__class__.__name__ == "ActorsEngine"
    stopped = interrupts(scheduler.stop)
    gate.open()
    scheduler.stop()

    # On threads only the scheduling thread waits for a predicate, and a stop waits for its end.
    assert (on_actors, True) == (reloaded, stopped)


def test_a_second_stop_waits_for_the_first(scheduler: Scheduler, listener: Listener) -> None:
    """When it returns, nothing runs any more."""
    gate = Gate("placed")
    listener.react = gate.hold
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    assert gate.reached.wait(WAIT_SECONDS)
    stops = [threading.Thread(target=scheduler.stop) for _ in range(3)]
    for thread in stops:
        thread.start()
    wait = stays(lambda: all(thread.is_alive() for thread in stops))
    gate.open()
    for thread in stops:
        thread.join(WAIT_SECONDS)

    assert (True, 0) == (wait, sum(thread.is_alive() for thread in stops))
