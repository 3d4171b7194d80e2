"""`Scheduler.dry_run`, and the proof that questions change nothing, byte for byte."""

from __future__ import annotations

import json
from typing import Final

import pytest
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne import RequestError, ResourceManager, Scheduler
from licorne.model.explanation.explain import explain
from licorne.model.views.shown import application_ids
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript
from licorne.proxy.si import si_pb2 as si

QUEUES: Final = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
TEN: Final = {"resources": {"memory": {"value": 10}}}
ENGINES = pytest.mark.parametrize(
    ("engine", "stepped"), [("direct", True), ("actors", True), ("actors", False)]
)
SEEDS: Final = range(4)
SOAK_SEEDS: Final = range(4, 60)


def an_application(queue: str = "root.a", application_id: str = "app") -> si.AddApplicationRequest:
    user = si.UserGroupInformation(user="ada", groups=["dev"])
    return si.AddApplicationRequest(applicationID=application_id, queueName=queue, ugi=user)


def an_ask(application_id: str = "app", key: str = "ask", node: str = "") -> si.Allocation:
    return si.Allocation(allocationKey=key, applicationID=application_id, nodeID=node, resourcePerAlloc=TEN)


def begin(scheduler: Scheduler, rm_id: str = "rm") -> None:
    scheduler.register(rm_id, ResourceManager(), configuration=QUEUES)
    node = {"nodeID": "n1", "action": "CREATE", "schedulableResource": TEN}
    scheduler.update_node(si.NodeRequest(rmID=rm_id, nodes=[node]))


@ENGINES
@pytest.mark.parametrize(
    ("before", "application"), [([], an_application()), ([an_application()], None)], ids=["new", "active"]
)
def test_an_ask_of_an_application_gets_the_place_where_it_would_go(
    engine: EngineName,
    before: list[si.AddApplicationRequest],
    application: si.AddApplicationRequest | None,
    *,
    stepped: bool,
) -> None:
    """The queue, then the node; an active application is not sent again."""
    with Scheduler(engine=engine, stepped=stepped, check_direction=True) as scheduler:
        begin(scheduler)
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=before))

        run = scheduler.dry_run(application=application, ask=an_ask())

    assert ("root.a", "n1", application is not None) == (run.queue_path, run.node_id, run.is_new)


def test_what_cannot_be_tried_is_an_error_that_says_why() -> None:
    """Nothing given, things that do not belong together, unknown ones."""
    with Scheduler(engine="direct") as scheduler:
        with pytest.raises(RequestError, match="name a resource manager; registered are: none"):
            scheduler.dry_run(application=an_application())
        begin(scheduler)
        with pytest.raises(RequestError, match="needs an application, an ask, or both"):
            scheduler.dry_run()
        with pytest.raises(RequestError, match=r"application 'app' is not active in \[rm\]default"):
            scheduler.dry_run(ask=an_ask())
        with pytest.raises(RequestError, match="ask 'ask' is of application 'other', not of 'app'"):
            scheduler.dry_run(application=an_application(), ask=an_ask("other"))
        with pytest.raises(RequestError, match="'ask' is on a node already"):
            scheduler.dry_run(ask=an_ask(node="n1"))
        with pytest.raises(RequestError, match=r"no partition \[rm\]gpu; the partitions are: \[rm\]default"):
            scheduler.dry_run(application=si.AddApplicationRequest(partitionName="gpu"))
        begin(scheduler, "second")
        with pytest.raises(RequestError, match="registered are: rm, second"):
            scheduler.dry_run(application=an_application())
        assert "[second]default" == scheduler.dry_run(application=an_application(), rm_id="second").partition


# ----------------------------------------------------------------------- questions change nothing


def ask_everything(scheduler: Scheduler) -> int:
    """Ask all that can be asked; return how many answers there were."""
    count = 0
    for partition in scheduler._cluster.partitions():
        for name in partition.read(application_ids):
            explanation = partition.read(explain, name)
            assert explanation is not None
            count += 1
            for ask in explanation.asks:
                partition.read(explain, name, only_key=ask.allocation_key)
            try:
                scheduler.dry_run(ask=an_ask(name, key="never"), rm_id=partition.rm_id)
                count += 1
            except RequestError:  # It has ended.
                continue
        for queue in ("root.a", "root.a.b", "root.new.queue", "nonsense$"):
            application = an_application(queue, "never")
            scheduler.dry_run(application=application, ask=an_ask("never"), rm_id=partition.rm_id)
            count += 1
    return count


def replayed(text: str, engine: EngineName, *, curious: bool) -> tuple[list[str], int]:
    """Replay a transcript, asking everything after each line if curious; return output and last snapshot."""
    output: list[str] = []
    count = 0
    replay = Replay(Scheduler(engine=engine, stepped=True), output.append)
    with replay.scheduler as scheduler:
        for line in read_transcript(text, "transcript"):
            replay.run([line])
            if curious:
                count += ask_everything(scheduler)
                scheduler.validate()
        output.append(json.dumps(scheduler.snapshot(), sort_keys=True))
        output.append(str([scheduler.next_timer_ns(), scheduler.next_deadline_ns()]))
    return output, count


def assert_unchanged(seed: int, engine: EngineName) -> None:
    """Replay a transcript twice, once with questions."""
    text = "\n".join(simulated_transcript(seed))

    calm, _ = replayed(text, engine, curious=False)
    asked, count = replayed(text, engine, curious=True)

    assert calm == asked
    assert count > 50


@pytest.mark.parametrize("engine", ["direct", "actors"])
@pytest.mark.parametrize("seed", SEEDS)
def test_questions_after_every_line_change_nothing_at_all(seed: int, engine: EngineName) -> None:
    """Not one byte of what is decided, announced and shown, nor when the next timer is due."""
    assert_unchanged(seed, engine)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_questions_change_nothing_in_many_more_transcripts(seed: int) -> None:
    """The same with seeds that the usual run has no time for."""
    assert_unchanged(seed, "direct")
