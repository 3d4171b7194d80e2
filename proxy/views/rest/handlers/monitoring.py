"""The routes for those who watch over a scheduler: metrics, history, health and state dumps."""

from __future__ import annotations

import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from typing import IO, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from .....model.policies.policies import PolicyFacts
from .....model.policies.watching import PolicyFigures
from .....model.values.messages import short_partition_name
from .....model.values.states import ManagerState
from ....core.documents.applications import PreemptedDocument, preempted_documents
from ....core.documents.declarations import JSON, Operation, text
from ....core.documents.monitoring import (
    ApplicationCountDocument,
    ContainerCountDocument,
    HealthDocument,
    ManagedPartitionDocument,
    ManagerDocument,
    PolicyDocument,
    StateDumpDocument,
)
from ....core.health import health_document
from ....core.scheduler.answering.questions import NotKnownError
from ....core.scheduler.managers.manager_life import ManagerStatus
from ...dumps import state_dump_file
from ..requests import scheduler_of
from ..responses import JSON_TYPE, RestError, error_response, json_response, redirect
from .questions import parameters_of

_PIECE: Final = 2**16
"""How many bytes of a state dump are sent at once."""
_PROFILES = (
    *("", "heap", "threadcreate", "goroutine", "allocs", "block"),
    *("mutex", "cmdline", "profile", "symbol", "trace"),
)


def _metrics(request: Request) -> Response:
    # It loads `prometheus_client`.
    from ....core.metrics.exporter import CONTENT_TYPE, registry_of, text_of  # noqa: PLC0415

    families = [*registry_of(scheduler_of(request)).collect(), *request.app.state.more_metrics()]
    return Response(text_of(families), media_type=None, headers={"Content-Type": CONTENT_TYPE})


def _application_history(request: Request) -> Response:
    return json_response(scheduler_of(request).monitoring.history.applications())


def _container_history(request: Request) -> Response:
    return json_response(scheduler_of(request).monitoring.history.containers())


def _health(request: Request) -> Response:
    scheduler = scheduler_of(request)
    report = scheduler.health()
    if report is None and not scheduler.stepped:
        report = scheduler.check_health()  # The checks begin with a registration: there has been none yet.
    if report is None:
        raise RestError(HTTPStatus.NOT_FOUND, "Health check is not available")
    return json_response(health_document(report))


def managers_document(
    known: Iterable[ManagerStatus],
    callbacks_waiting: Callable[[str], int],
    about: Callable[[str], tuple[Mapping[str, str], Sequence[ManagedPartitionDocument]]],
) -> list[ManagerDocument]:
    """Return the document of all resource managers: those that have not stopped first, by id.

    Args:
        known: Their states, sorted by id.
        callbacks_waiting: Returns how many callbacks of the one of an id wait.
        about: Returns the description of the program of the one of an id, and the documents of its
            partitions.
    """
    documents: list[ManagerDocument] = []
    for status in sorted(known, key=lambda each: each.state is ManagerState.STOPPED):
        build, partitions = about(status.rm_id)
        documents.append(
            {
                "rmID": status.rm_id,
                "state": status.state.value,
                "since": status.since_ns,
                "reason": status.reason,
                "lost": status.is_lost,
                "connection": status.connection or "in this process",
                "buildInformation": dict(build),
                "callbacksWaiting": callbacks_waiting(status.rm_id),
                "partitions": [*partitions],
            }
        )
    return documents


def _managers(request: Request) -> Response:
    """Show all RMs."""
    scheduler = scheduler_of(request)
    partitions: defaultdict[str, list[ManagedPartitionDocument]] = defaultdict(list)
    for figures in scheduler.monitoring.figures().partitions:
        partitions[figures.rm_id].append(
            {
                "name": short_partition_name(figures.name),
                "nodes": len(figures.nodes),
                "applications": sum(figures.active.values()),
                "allocations": figures.allocations,
            }
        )
    builds = {build.rm_id: build.information for build in scheduler.views.builds()}
    documents = managers_document(
        scheduler.resource_managers(),
        scheduler.callbacks_waiting,
        lambda rm_id: (builds.get(rm_id, {}), partitions[rm_id]),
    )
    return json_response(documents)


def _preemptions(request: Request) -> Response:
    """List the victims of the last preemptions of a partition, the newest first."""
    wanted = parameters_of(request, needed=("rm", "partition"))
    view = scheduler_of(request).monitoring.live_view
    try:
        records = view.preemptions(wanted["rm"], wanted["partition"])
    except NotKnownError as error:
        raise RestError(HTTPStatus.NOT_FOUND, str(error)) from error
    return json_response([each for record in reversed(records) for each in preempted_documents(record)])


def _policies(request: Request) -> Response:
    """Show the policies that the program has given, by name."""
    monitoring = scheduler_of(request).monitoring
    figures = monitoring.policies()
    facts = sorted(monitoring.policy_facts().items())
    return json_response([_policy(name, each, figures[name]) for name, each in facts])


def _policy(name: str, facts: PolicyFacts, figures: PolicyFigures) -> PolicyDocument:
    document: PolicyDocument = {
        "name": name,
        "madeOf": facts.made_of,
        "methods": sorted(point.value for point in facts.points),
        "dependsOn": sorted(facts.depends_on),
        "answers": figures.answers,
        "failures": figures.failures,
        "meanNs": figures.total_ns // max(figures.answers, 1),
        "longestNs": figures.longest_ns,
    }
    if facts.version:
        document["version"] = facts.version
    last = figures.last_failure
    if last is not None:
        document["lastFailure"] = {
            "method": last.method,
            "subject": last.subject,
            "error": last.error,
            "at": last.at_ns,
        }
    return document


def _state_dump(request: Request) -> Response:
    """Make a state dump, then send it: a client that reads slowly keeps no other one waiting."""
    kept = ExitStack()
    file = kept.enter_context(state_dump_file(scheduler_of(request)))
    return StreamingResponse(_pieces(file, kept), headers={"Content-Type": JSON_TYPE})


def _pieces(file: IO[bytes], kept: ExitStack) -> Iterator[bytes]:
    with kept:
        while piece := file.read(_PIECE):
            yield piece


_MONITORING = [
    Operation(
        "/ws/v1/metrics",
        _metrics,
        "monitoring",
        "The metrics, as Prometheus reads them",
        "The text for Prometheus",
        {"text/plain": str},
    ),
    Operation(
        "/ws/v1/scheduler/healthcheck",
        _health,
        "monitoring",
        "The report of the last health check",
        "The report, also if a check has failed",
        {JSON: HealthDocument},
        refusals=[404],
    ),
    Operation(
        "/ws/v1/policies",
        _policies,
        "monitoring",
        "The policies that the program has given, and the numbers of their answers",
        "The policies by name; empty where none were given",
        {JSON: list[PolicyDocument]},
    ),
    Operation(
        "/ws/v1/history/apps",
        _application_history,
        "monitoring",
        "How many applications there were, minute by minute, for a day",
        "The oldest entry first; empty at first",
        {JSON: list[ApplicationCountDocument]},
    ),
    Operation(
        "/ws/v1/history/containers",
        _container_history,
        "monitoring",
        "How many allocations there were, minute by minute, for a day",
        "The oldest entry first; empty at first",
        {JSON: list[ContainerCountDocument]},
    ),
    Operation(
        "/licorne/v1/managers",
        _managers,
        "questions",
        "The resource managers that have registered, those that have stopped last",
        "The resource managers",
        {JSON: list[ManagerDocument]},
    ),
    Operation(
        "/licorne/v1/preemptions",
        _preemptions,
        "questions",
        "The victims of the last 256 preemptions of a partition, with the work that was lost",
        "The victims, the newest first",
        {JSON: list[PreemptedDocument]},
        parameters=[
            text("rm", "The resource manager", required=True),
            text("partition", "The partition: its short or full name", required=True),
        ],
        refusals=[400, 404],
    ),
    Operation(
        "/debug/fullstatedump",
        _state_dump,
        "monitoring",
        "All documents of the scheduler as one; 503 while another one is made",
        "The dump",
        {JSON: StateDumpDocument},
    ),
]


def _stack(_: Request) -> Response:
    """Return the stack of each thread, with the innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"thread {ident} [{names.get(ident, 'not of Python')}]:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sorted(sys._current_frames().items())  # noqa: SLF001 - there is no other way
    ]
    return PlainTextResponse("\n".join(parts))


def _stack_moved(request: Request) -> Response:
    return redirect("/debug/stack", request.method)


def _state_dump_moved(request: Request) -> Response:
    return redirect("/debug/fullstatedump", request.method)


def _profile(_: Request) -> Response:
    text = "There are no profiles of Go here: use py-spy on the process, or /debug/stack"
    return error_response(HTTPStatus.NOT_IMPLEMENTED, text)


_DEBUGGING = [
    Operation(
        "/debug/stack",
        _stack,
        "debugging",
        "The stack of each thread of the process",
        "The threads",
        {"text/plain": str},
    ),
    Operation("/ws/v1/stack", _stack_moved, "debugging", "Redirects to `/debug/stack`", refusals=[301]),
    Operation(
        "/ws/v1/fullstatedump",
        _state_dump_moved,
        "monitoring",
        "Redirects to `/debug/fullstatedump`",
        refusals=[301],
    ),
    *(
        Operation(
            f"/debug/pprof/{name}",
            _profile,
            "debugging",
            "A profile of Go, which there is not",
            refusals=[501],
            name=f"profile_{name}" if name else "profiles",
        )
        for name in _PROFILES
    ),
]
OPERATIONS = [*_DEBUGGING, *_MONITORING]
