"""Usual mistakes of programs that embed the scheduler: each is answered in one line, and changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from support.programs import run_python

from licorne import (
    CallbackFailure,
    Door,
    LicorneError,
    Recording,
    Recovery,
    RemoteScheduler,
    ResourceManager,
    Scheduler,
    explanation_line,
    rest_app,
)
from licorne.proxy.core.metrics.figures import Metrics
from licorne.proxy.core.scheduler.managers.callbacks import CallbackThreads
from licorne.proxy.core.scheduler.managers.predicates import CallbackPredicates
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.older_generation import Generation
from licorne.proxy.views.rest.running import RestServer, RestSettings
from licorne.proxy.wire.door.handing_over import session_callback
from licorne.proxy.wire.door.launchers.fixed import FixedLauncher

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: sandbox}]}]}]"
SIZE = {"resources": {"vcore": {"value": 1_000}}}
NODE = si.NodeInfo(nodeID="n", action="CREATE", schedulableResource=SIZE)
REGISTRATION = si.RegisterResourceManagerRequest(rmID="rm", config=QUEUES)


class Silent(ResourceManager):
    """Overrides nothing."""


class AsyncAllocations(ResourceManager):
    async def update_allocation(self, response: si.AllocationResponse) -> None: ...  # type: ignore[override]


class AsyncPredicates(ResourceManager):
    async def predicates(self, args: si.PredicatesArgs) -> None: ...  # type: ignore[override]


class Generating(ResourceManager):
    def update_node(self, response: si.NodeResponse) -> Any:
        yield response


class WithoutArgument(ResourceManager):
    def update_application(self) -> None: ...  # type: ignore[override]


class WithTwoArguments(ResourceManager):
    def update_application(self, response: si.ApplicationResponse, more: object) -> None: ...  # type: ignore[override]


Call = Callable[[Any], object]
CALLS: Mapping[str, tuple[Call, str]] = {
    "a class as callback": (lambda s: s.register("x", Silent), "give an instance, Silent(...)"),
    "no callback": (lambda s: s.register("x", None), "extend licorne.ResourceManager"),
    "async def": (lambda s: s.register("x", AsyncAllocations()), "update_allocation of the callback"),
    "async predicates": (lambda s: s.register("x", AsyncPredicates()), "is `async def`"),
    "a callback with yield": (lambda s: s.register("x", Generating()), "has `yield`"),
    "a callback without argument": (lambda s: s.register("x", WithoutArgument()), "with one argument"),
    "a callback with two": (
        lambda s: s.register("x", WithTwoArguments()),
        "missing a required argument: 'more'",
    ),
    "a number as id": (lambda s: s.register(5, Silent()), "rm_id: expected str, got int 5"),
    "a file name": (
        lambda s: s.register("x", Silent(), configuration="queues.yaml"),
        "give pathlib.Path('queues.yaml')",
    ),
    "no configuration": (lambda s: s.register("x", Silent(), configuration=None), "got NoneType None"),
    "a list as configuration": (lambda s: s.register("x", Silent(), configuration=[]), "got list []"),
    "a set in it": (
        lambda s: s.register("x", Silent(), configuration={"partitions": [{"name": {1}}]}),
        "configuration.partitions[0].name: expected a text, a number, a list or a mapping, got set {1}",
    ),
    "a missing file": (
        lambda s: s.register("x", Silent(), configuration=Path("/no/queues.yaml")),
        "/no/queues.yaml: cannot be read",
    ),
    "a number as setting": (
        lambda s: s.register("x", Silent(), extra_configuration={"a": 1}),
        "extra_configuration['a']: expected str, got int 1",
    ),
    "one partition as text": (
        lambda s: s.register("x", Silent(), partitions="default"),
        "give a list of names",
    ),
    "partitions as numbers": (lambda s: s.register("x", Silent(), partitions=[1]), "expected str, got int 1"),
    "an id as registration": (
        lambda s: s.register_resource_manager("x", Silent()),
        "expected a message si.v1.RegisterResourceManagerRequest, got str 'x'; make it with",
    ),
    "a text as update": (lambda s: s.update_configuration("x"), "si.v1.UpdateConfigurationRequest"),
    "a text to prepare": (lambda s: s.prepare_configuration("x"), "si.v1.UpdateConfigurationRequest"),
    "a reload from nowhere": (lambda s: s.reconfigure("rm", Path("/no/queues.yaml")), "cannot be read"),
    "a dict as request": (
        lambda s: s.update_node({"rmID": "rm"}),
        "NodeRequest: expected a message si.v1.NodeRequest, got dict {'rmID': 'rm'}; make it with",
    ),
    "a message of another type": (
        lambda s: s.update_node(si.AllocationRequest(rmID="rm")),
        "expected a message si.v1.NodeRequest, got si.v1.AllocationRequest",
    ),
    "an entry as request": (lambda s: s.update_node(NODE), "got si.v1.NodeInfo"),
    "a list of requests": (lambda s: s.update_application([]), "expected a message si.v1.ApplicationRequest"),
    "a class of requests": (lambda s: s.update_allocation(si.AllocationRequest), "got MessageMeta"),
    "no request": (lambda s: s.update_allocation(None), "got None"),
    "another RM": (lambda s: s.update_node(si.NodeRequest(rmID="no")), 'RmID="no" not registered'),
    "a number as application": (lambda s: s.explain(5), "application_id: expected str, got int 5"),
    "a number as key": (lambda s: s.explain_ask("app", 5), "allocation_key: expected str"),
    "a number as partition": (lambda s: s.explain("app", partition=5), "partition: expected str or None"),
    "a dict to try": (lambda s: s.dry_run(application={}), "expected a message si.v1.AddApplicationRequest"),
    "an ask as text": (lambda s: s.dry_run(ask="a"), "expected a message si.v1.Allocation"),
    "a count as text": (lambda s: s.next_asks("5"), "count: expected int, got str '5'"),
    "a count below zero": (lambda s: s.next_asks(-1), "count=-1 is not from 1 to 250"),
    "a snapshot of a number": (lambda s: s.snapshot(rm_id=5), "rm_id: expected str or None"),
    "settings of a number": (lambda s: s.extra_configuration(5), "rm_id: expected str"),
    "queues of nobody": (lambda s: s.configuration_text(None), "rm_id: expected str, got None"),
    "a pause without words": (lambda s: s.pause_manager("rm", None), "reason: expected str"),
    "a stop of a number": (lambda s: s.stop_manager(5, "why"), "rm_id: expected str"),
    "the end of a number": (lambda s: s.forget_manager(5), "rm_id: expected str"),
    "one node as text": (lambda s: s.reconsider("rm", node_ids="n1"), "node_ids='n1' is one text"),
    "nodes as numbers": (lambda s: s.reconsider("rm", node_ids=[1]), "node_ids: a name: expected str"),
    "no explanation": (
        lambda _: explanation_line(cast("Any", None)),
        "explanation: expected Explanation, got None",
    ),
    "the past": (lambda s: s.advance_to(0), "it does not go back"),
    "seconds": (lambda s: s.advance_to(1e18), "time_ns: expected int, got float"),
    "the far future": (lambda s: s.advance_to(2**70), "is more than 9223372036854775807"),
    "a text of cycles": (lambda s: s.schedule("5"), "cycles: expected int or None"),
    "cycles below zero": (lambda s: s.schedule(-1), "cycles=-1 is below 0"),
    "an unknown engine": (lambda _: Scheduler(engine="dircet"), "there are actors, direct, threads"),  # type: ignore[arg-type]
    "threads as text": (lambda _: Scheduler(engine="threads", threads="2"), "threads: expected int"),  # type: ignore[arg-type]
    "stepped as text": (lambda _: Scheduler(stepped="no"), "stepped: expected bool"),  # type: ignore[arg-type]
    "a timeout as text": (lambda _: Scheduler(predicate_timeout_seconds="1"), "expected int or float"),  # type: ignore[arg-type]
    "a resolver by name": (lambda _: Scheduler(resolver="os"), "has no method groups_of"),  # type: ignore[arg-type]
    "a hook that is not one": (lambda _: Scheduler(on_error=5), "on_error=5 cannot be called"),  # type: ignore[arg-type]
    "a recording nowhere": (lambda _: Scheduler(record=5), "record: expected Recording or Path or str"),  # type: ignore[arg-type]
    "a recording of nothing": (lambda _: Recording(None), "folder: expected Path or str, got None"),  # type: ignore[arg-type]
    "steps of one that runs": (
        lambda _: running_scheduler("run_until_idle"),
        "this scheduler is not stepped",
    ),
    "REST of a client": (lambda _: rest_app(None), "scheduler, which is in this process: expected Scheduler"),  # type: ignore[arg-type]
    "one token": (lambda s: rest_app(s, tokens="secret-secret-secret"), "tokens: expected a list of texts"),
    "a port as text": (lambda s: RestServer(s, RestSettings(port="80")), "port: expected int, got str '80'"),  # type: ignore[arg-type]
    "a port too high": (
        lambda s: RestServer(s, RestSettings(port=70_000)),
        "port=70000 is not from 0 to 65535",
    ),
    "a URL of a server": (lambda _: RemoteScheduler("http://127.0.0.1:1"), "expected HOST:PORT"),
    "a host alone": (lambda _: RemoteScheduler("localhost"), "address='localhost': expected HOST:PORT"),
    "a port alone": (lambda _: RemoteScheduler(3333), "address: expected str, got int 3333"),  # type: ignore[arg-type]
    "a token of bytes": (lambda _: RemoteScheduler("127.0.0.1:1", token=b"x"), "token: expected a text"),  # type: ignore[arg-type]
    "no time to wait": (lambda _: RemoteScheduler("127.0.0.1:1", timeout=0), "timeout=0 is not above 0"),
    "a time that is no number": (
        lambda _: RemoteScheduler("127.0.0.1:1", timeout=float("nan")),
        "timeout=nan is not above 0",
    ),
    "a door without launcher": (lambda _: Door("local"), "has no methods start, lost and stop"),  # type: ignore[arg-type]
    "a worker as number": (lambda _: FixedLauncher({"default": 5}), "addresses['default']: expected str"),  # type: ignore[dict-item]
    "a recovery of nothing": (lambda _: Recovery(None, REGISTRATION, Silent()), "is not a scheduler"),  # type: ignore[arg-type]
    "a recovery by an id": (lambda s: Recovery(s, "rm", Silent()), "RegisterResourceManagerRequest"),  # type: ignore[arg-type]
    "one node to recover": (
        lambda s: Recovery(s, REGISTRATION, Silent(), nodes=NODE),  # type: ignore[arg-type]
        "nodes: expected a list of messages si.v1.NodeInfo, got NodeInfo",
    ),
    "a node as dict": (
        lambda s: Recovery(s, REGISTRATION, Silent(), nodes=[{"nodeID": "n"}]),  # type: ignore[list-item]
        "a node: expected a message si.v1.NodeInfo, got dict",
    ),
    "an ask as application": (
        lambda s: Recovery(s, REGISTRATION, Silent(), applications=[si.Allocation()]),  # type: ignore[list-item]
        "an application: expected a message si.v1.AddApplicationRequest, got si.v1.Allocation",
    ),
    "keys as asks": (
        lambda s: Recovery(s, REGISTRATION, Silent(), asks=["a"]),  # type: ignore[list-item]
        "an allocation or ask: expected a message si.v1.Allocation, got str 'a'",
    ),
    "a word for a rule": (
        lambda s: Recovery(s, REGISTRATION, Silent(), on_rejection="fail"),  # type: ignore[arg-type]
        "on_rejection: expected OnRejection, got str 'fail'",
    ),
    "a recovery that is not started": (
        lambda s: Recovery(s, REGISTRATION, Silent()).wait(),
        "the recovery of RM 'rm' has not been started: call start()",
    ),
    "a server that is not started": (
        lambda s: RestServer(s).port,
        "the REST server has not been started: use it in a `with` block",
    ),
    "a dict to a recovery": (
        lambda s: Recovery(s, REGISTRATION, Silent()).update_node({}),  # type: ignore[arg-type]
        "expected a message si.v1.NodeRequest, got dict {}",
    ),
}


def running_scheduler(method: str) -> None:
    with Scheduler() as scheduler:
        getattr(scheduler, method)()


@pytest.fixture(scope="module")
def scheduler() -> Scheduler:
    made = Scheduler(engine="direct")
    made.register("rm", Silent(), configuration=QUEUES)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_a_usual_mistake_is_answered_in_one_line(scheduler: Scheduler, name: str) -> None:
    """The line says what was expected and what came; the scheduler is as it was."""
    call, words = CALLS[name]
    before = scheduler.snapshot()

    with pytest.raises(LicorneError) as raised:
        call(scheduler)

    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert before == scheduler.snapshot()


STEPS: tuple[Call, ...] = (
    lambda s: s.run_until_idle(),
    lambda s: s.settle(),
    lambda s: s.schedule(),
    lambda s: s.deliver(),
    lambda s: s.advance_to(s.now_ns() + 1),
    lambda s: s.fire_next(),
    lambda s: s.next_deadline_ns(),
    lambda s: s.inspect_outstanding(),
    lambda s: s.preempt_over_quota(),
)


def test_a_predicate_cannot_step_the_scheduler_that_asks_it() -> None:
    """It would be asked again inside of itself."""
    refusals: list[str] = []

    class Stepping(ResourceManager):
        def predicates(self, _: si.PredicatesArgs) -> None:
            for step in STEPS:
                try:
                    step(scheduler)
                except LicorneError as error:
                    refusals.append(str(error))

    scheduler = Scheduler(engine="direct")
    scheduler.register("rm", Stepping(), configuration=QUEUES)
    send(scheduler)

    assert scheduler.run_until_idle() == 1
    assert len(refusals) == len(STEPS)
    assert all("inside a predicate is refused" in text for text in refusals)


class Refusing(ResourceManager):
    """Refuses by what it returns."""

    def predicates(self, args: si.PredicatesArgs) -> Any:
        return not args.nodeID


@pytest.mark.parametrize("recovers", [False, True])
def test_a_predicate_that_returns_false_refuses(*, recovers: bool) -> None:
    """Not only one that raises: what else could it mean."""
    scheduler = Scheduler(engine="direct")
    if recovers:
        Recovery(scheduler, REGISTRATION, Refusing()).start()
    else:
        scheduler.register("rm", Refusing(), configuration=QUEUES)
    send(scheduler)

    assert scheduler.run_until_idle() == 0
    assert "predicates returned False" in str(scheduler.explain("app"))


def test_a_predicate_that_returns_false_refuses_at_a_door() -> None:
    """The session with a worker hands over what the resource manager answers."""
    callback = session_callback(Refusing(), lambda *_: None)

    with pytest.raises(LicorneError, match="predicates returned False"):
        callback.predicates(si.PredicatesArgs(nodeID="n"))


class Explaining(ResourceManager):
    """Returns the reason."""

    def predicates(self, args: si.PredicatesArgs) -> Any:
        return f"{args.nodeID} is tainted"


def test_a_predicate_that_returns_a_reason_refuses_and_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It means to refuse, and so does a false value of another type; the program hears how that is done."""
    scheduler = Scheduler(engine="direct")
    scheduler.register("rm", Explaining(), configuration=QUEUES)
    send(scheduler)

    assert scheduler.run_until_idle() == 0
    said = "predicates returned str 'n is tainted': expected None or True"
    assert said in str(scheduler.explain("app"))
    assert said in caplog.text


def test_a_predicate_of_preemption_that_returns_something_else_is_reported() -> None:
    """It does not agree; the scheduler goes on."""

    class Agreeing(ResourceManager):
        def preemption_predicates(self, _: si.PreemptionPredicatesArgs) -> Any:
            return True

    failures: list[CallbackFailure] = []
    predicates = CallbackPredicates(
        Agreeing(),
        nullcontext,
        CallbackThreads(),
        lambda name, error: failures.append(CallbackFailure("rm", name, error)),
        Generation(),
        times=Metrics().of_manager("rm").predicates,
    )

    assert predicates.preemption_index("ask", "n", ("victim",), 0) is None
    [failure] = failures
    assert "expected a message si.v1.PreemptionPredicatesResponse, got bool True" in str(failure.error)


@pytest.mark.parametrize("groups", ["staff", 5, None, ["staff", 5]])
def test_a_resolver_that_returns_something_else_refuses_the_application(groups: Any) -> None:
    """One text would otherwise be a list of groups of one letter."""

    class Resolver:
        def groups_of(self, _: str) -> Any:
            return groups

    rejected: list[str] = []

    class Applications(ResourceManager):
        def update_application(self, response: si.ApplicationResponse) -> None:
            rejected.extend(each.reason for each in response.rejected)

    scheduler = Scheduler(engine="direct", resolver=Resolver())
    scheduler.register("rm", Applications(), configuration=QUEUES)
    send(scheduler)

    assert ["groups_of returned" in reason for reason in rejected] == [True]


def test_a_stopped_scheduler_refuses_steps_as_all_other_calls() -> None:
    """Nothing that is done afterwards seems to have happened."""
    scheduler = Scheduler(engine="direct")
    scheduler.stop()

    calls: tuple[Call, ...] = (*STEPS, lambda s: s.deliver_events(), lambda s: s.register("rm", Silent()))
    for call in calls:
        with pytest.raises(LicorneError, match="the scheduler has been stopped"):
            call(scheduler)


@pytest.mark.parametrize("action", ["UPDATE", "DRAIN_NODE", "DRAIN_TO_SCHEDULABLE"])
def test_a_change_of_a_node_that_is_not_there_is_rejected(action: str) -> None:
    """The removal of such a node is not: it is gone."""
    answers: list[si.NodeResponse] = []

    class Nodes(ResourceManager):
        def update_node(self, response: si.NodeResponse) -> None:
            answers.append(response)

    scheduler = Scheduler(engine="direct")
    scheduler.register("rm", Nodes(), configuration=QUEUES)
    for each, partition in ((action, ""), (action, "no"), ("DECOMISSION", "")):
        node = {"nodeID": "zz", "action": each, "attributes": {"si/node-partition": partition}}
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))
    scheduler.run_until_idle()

    rejected = [(each.nodeID, each.code, each.reason) for answer in answers for each in answer.rejected]
    assert rejected == [
        (
            "zz",
            "NODE_UNKNOWN",
            f"nothing is done for the action {action}: partition [rm]default has no node zz",
        ),
        ("zz", "PARTITION_UNKNOWN", "failed to find partition [rm]no of node zz"),
    ]


def test_rejections_that_a_program_ignores_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The first one of each callback is, so that a program which overrides none does not wait for nothing."""
    scheduler = Scheduler(engine="direct")
    scheduler.register("rm", Silent(), configuration=QUEUES)
    with caplog.at_level(logging.WARNING, "licorne"):
        for queue in ("root.no", "root.nothing"):
            send(scheduler, queue=queue)
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[NODE]))
        scheduler.run_until_idle()

    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 3
    assert texts[0].startswith("application 'app' was rejected: ")
    assert "Silent has no update_application, which is told of it" in texts[0]
    assert texts[1].startswith("ask or allocation 'task' was rejected: ")
    assert texts[2].startswith("node 'n' was rejected: ")


def test_a_misspelt_callback_is_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    """One that has the right method besides is left alone: it is a method of the program."""

    class Misspelt(ResourceManager):
        def update_alocation(self, response: si.AllocationResponse) -> None: ...

    class Both(Misspelt):
        def update_allocation(self, response: si.AllocationResponse) -> None: ...

        def update_allocations(self) -> None: ...

    scheduler = Scheduler(engine="direct")
    with caplog.at_level(logging.WARNING, "licorne"):
        scheduler.register("rm", Misspelt(), configuration=QUEUES)
        scheduler.register("rm", Both(), configuration=QUEUES)

    expected = [
        "Misspelt.update_alocation is not a callback and is never called: did you mean update_allocation?"
    ]
    assert expected == [record.getMessage() for record in caplog.records]


def send(scheduler: Scheduler, *, queue: str = "root.sandbox") -> None:
    """Send a node, an application and an ask, and deliver the answers."""
    application = {"applicationID": "app", "queueName": queue, "ugi": {"user": "ada"}}
    ask = {"allocationKey": "task", "applicationID": "app", "resourcePerAlloc": SIZE}
    scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[NODE]))
    scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[application]))
    scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))
    scheduler.deliver()


FORKED = """
import os, sys
from licorne import LicorneError, ResourceManager, Scheduler
with Scheduler(engine=sys.argv[1]) as scheduler:
    child = os.fork()
    if child == 0:
        try:
            scheduler.register("rm", ResourceManager(), configuration=sys.argv[2])
        except LicorneError as error:
            print(error)
        sys.exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    scheduler.register("rm", ResourceManager(), configuration=sys.argv[2])
print(status)
"""


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_a_forked_process_hears_that_the_threads_are_not_there(engine: str) -> None:
    """Its calls would be taken, and nothing would come of them; the scheduler goes on where it was made."""
    done = run_python("-c", FORKED, engine, QUEUES)

    assert (done.stderr, done.returncode) == ("", 0)
    assert "from which this one was forked without its threads: make another one here\n3\n" in done.stdout
