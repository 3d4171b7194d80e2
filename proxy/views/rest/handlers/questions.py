"""The routes that answer questions: why something waits, where something would go, what is tried next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.names import did_you_mean
from .....model.configuration.problems import Position
from .....model.errors import LicorneError, RequestError
from .....model.explanation.dry_run import NEXT_ASKS_MAX
from .....model.values.documents import Json
from ....base.files.json_text import JsonError, MessageError, parse_json, read_message
from ....core.documents.declarations import JSON, Operation, numbered, text
from ....core.documents.explanations import (
    DryRunDocument,
    DryRunRequestDocument,
    ExplanationDocument,
    NextAsksDocument,
    SentencesDocument,
)
from ....core.documents.monitoring import LocksDocument
from ....core.explanation.documents import (
    document_of,
    dry_run_document,
    next_asks_document,
    prospect_document,
)
from ....core.scheduler.answering.questions import NotKnownError, StoppedError
from ....core.scheduler.scheduler import Scheduler
from ....si import si_pb2 as si
from ...page.answers import ConfigurationLines, explanation_document
from ..requests import pace_of, scheduler_of
from ..responses import RestError, json_response

T = TypeVar("T")
M = TypeVar("M", si.AddApplicationRequest, si.Allocation)

_WHICH: Final = ("rm", "partition")
_NEXT_ASKS: Final = 20
_PARTS: Final = ("rm", "application", "ask")


def _explain(request: Request) -> Response:
    """Answer why an application waits, or one ask of it."""
    wanted = parameters_of(request, needed=("application",), optional=("ask", *_WHICH))
    scheduler, application = scheduler_of(request), wanted["application"]
    rm_id, partition, key = wanted.get("rm"), wanted.get("partition"), wanted.get("ask")

    def answer() -> ExplanationDocument:
        if key is None:
            explanation = scheduler.explain(application, rm_id=rm_id, partition=partition)
        else:
            explanation = scheduler.explain_ask(application, key, rm_id=rm_id, partition=partition)
        prospects = scheduler.would_preempt(application, rm_id=rm_id, partition=partition)
        shown = [prospect_document(each) for each in prospects if key in (None, each.allocation_key)]
        where = _lines_of(scheduler, explanation.partition).where
        return {**document_of(explanation, where), "wouldPreempt": shown}

    return json_response(_answered(scheduler, answer))


def _explain_in_sentences(request: Request) -> Response:
    """Answer why an application waits, in sentences."""
    wanted = parameters_of(request, needed=("application",), optional=_WHICH)
    scheduler, application = scheduler_of(request), wanted["application"]
    rm_id, partition = wanted.get("rm"), wanted.get("partition")

    def answer() -> SentencesDocument:
        explanation = scheduler.explain(application, rm_id=rm_id, partition=partition)
        prospects = scheduler.would_preempt(application, rm_id=rm_id, partition=partition)
        return explanation_document(explanation, prospects, _lines_of(scheduler, explanation.partition))

    return json_response(_answered(scheduler, answer))


async def _dry_run(request: Request) -> Response:
    """Answer where an application or ask of the body would go; nothing changes."""
    body = await request.body()

    def answer() -> Response:
        with pace_of(request).step():
            parameters_of(request)
            return json_response(_dry_run_document(scheduler_of(request), body))

    return await run_in_threadpool(answer)


def _dry_run_document(scheduler: Scheduler, body: bytes) -> DryRunDocument:
    try:
        wanted = _read_body(body)
        rm_id = wanted.get("rm")
        if rm_id is not None and not isinstance(rm_id, str):
            raise MessageError(f"rm: expected a text, not {rm_id!r}")
        application = _message(wanted, "application", si.AddApplicationRequest)
        ask = _message(wanted, "ask", si.Allocation)
    except LicorneError as error:
        raise RestError(HTTPStatus.BAD_REQUEST, f"the body of the request: {error}") from error

    def answer() -> DryRunDocument:
        run = scheduler.dry_run(application=application, ask=ask, rm_id=rm_id)
        return dry_run_document(run, _lines_of(scheduler, run.partition).where)

    return _answered(scheduler, answer)


def _read_body(body: bytes) -> dict[str, Json]:
    """Return the object in a body.

    Raises:
        LicorneError: It is missing, or it has an unknown key.
    """
    try:
        wanted = parse_json(body.decode())
    except UnicodeDecodeError as error:
        raise JsonError(f"no text in UTF-8: {error}") from error
    if not isinstance(wanted, dict):
        raise MessageError(f"expected an object, not {wanted!r}")
    for key in wanted:
        if key not in _PARTS:
            raise MessageError(f"{key}: unknown key; those known are {', '.join(_PARTS)}")
    return wanted


def _message(wanted: dict[str, Json], key: str, kind: type[M]) -> M | None:
    if wanted.get(key) is None:
        return None
    try:
        return read_message(kind, wanted[key])
    except MessageError as error:
        raise MessageError(f"{key}: {error}") from error


def _next_asks(request: Request) -> Response:
    """List the asks that are tried next, for each partition."""
    wanted = parameters_of(request, optional=("count", *_WHICH))
    count = whole_number(wanted, "count", least=1, most=NEXT_ASKS_MAX, otherwise=_NEXT_ASKS)
    scheduler = scheduler_of(request)
    rm_id, partition = wanted.get("rm"), wanted.get("partition")

    def answer() -> list[NextAsksDocument]:
        if rm_id is partition is None and not scheduler.views.partition_names():
            return []
        return [
            next_asks_document(found, _nowhere)
            for found in scheduler.next_asks(count, rm_id=rm_id, partition=partition)
        ]

    return json_response(_answered(scheduler, answer))


def _nowhere(_: Position) -> str:
    """Blockers of a whole partition stand in no configuration."""
    return ""


def _locks(request: Request) -> Response:
    """Return the graph of the locks."""
    from ...page.answers import locks_document  # noqa: PLC0415 - loads the reports of lockcheck

    parameters_of(request)
    engine = scheduler_of(request).engine_name
    if engine != "threads":
        text = f"The engine {engine} has no locks in its partitions: the lock graph is of the engine threads"
        raise RestError(HTTPStatus.NOT_FOUND, text)
    return json_response(locks_document())


def _answered(scheduler: Scheduler, question: Callable[[], T]) -> T:
    """Return the answer to a question.

    Raises:
        RestError: The scheduler refuses the question.
    """
    try:
        with scheduler.one_caller:
            return question()
    except StoppedError:
        raise
    except NotKnownError as error:
        raise RestError(HTTPStatus.NOT_FOUND, str(error)) from error
    except RequestError as error:
        raise RestError(HTTPStatus.BAD_REQUEST, str(error)) from error


def _lines_of(scheduler: Scheduler, partition: str) -> ConfigurationLines:
    """Return the lines of the configuration that a partition, given by its full name, has."""
    return ConfigurationLines(scheduler.configuration_text(partition[1:].rpartition("]")[0]))


_APPLICATION_ASKED: Final = text("application", "Its id", required=True)
_MANAGER: Final = text("rm", "The resource manager that is meant")
_PARTITION_ASKED: Final = text("partition", "The partition that is meant: its short or full name")

OPERATIONS = [
    Operation(
        "/licorne/v1/explain",
        _explain,
        "questions",
        "Why an application waits, or one ask of it",
        "The explanation",
        {JSON: ExplanationDocument},
        description="All that blocks it, and what would be preempted for it. Unknown parameters are refused.",
        parameters=[
            _APPLICATION_ASKED,
            text("ask", "The allocation key of the one ask to explain"),
            _MANAGER,
            _PARTITION_ASKED,
        ],
        refusals=[400, 404],
    ),
    Operation(
        "/licorne/v1/explain/sentences",
        _explain_in_sentences,
        "questions",
        "Why an application waits, as a person reads it",
        "The explanation; each reason has the line of the configuration behind it",
        {JSON: SentencesDocument},
        parameters=[_APPLICATION_ASKED, _MANAGER, _PARTITION_ASKED],
        refusals=[400, 404],
    ),
    Operation(
        "/licorne/v1/dry-run",
        _dry_run,
        "questions",
        "Where a new application or ask would go if it came now; nothing changes",
        "Where it would go, or why not",
        {JSON: DryRunDocument},
        description="The predicates of the resource manager are not asked. "
        "The body is read as JSON, whatever its type is.",
        body={JSON: DryRunRequestDocument},
        refusals=[400],
    ),
    Operation(
        "/licorne/v1/next-asks",
        _next_asks,
        "questions",
        "The asks that the next cycles would try, in order",
        "One entry a partition",
        {JSON: list[NextAsksDocument]},
        parameters=[
            numbered("count", "How many of each partition", least=1, most=NEXT_ASKS_MAX, default=_NEXT_ASKS),
            _MANAGER,
            _PARTITION_ASKED,
        ],
        refusals=[400, 404],
    ),
    Operation(
        "/licorne/v1/locks",
        _locks,
        "questions",
        "The graph of the locks of the engine `threads`",
        "The declared order, and the observed one",
        {JSON: LocksDocument},
        refusals=[400, 404],
    ),
]


def parameters_of(
    request: Request, *, needed: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, str]:
    """Return the parameters of a request by their names; one that is empty is left out.

    Raises:
        RestError: One is missing, unknown or given twice.
    """
    known = (*needed, *optional)
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            takes = ", ".join(known) or "none"
            text = f"the parameter {name!r} is unknown{did_you_mean(name, known)}; this path takes {takes}"
            raise RestError(HTTPStatus.BAD_REQUEST, text)
        if name in given:
            raise RestError(HTTPStatus.BAD_REQUEST, f"the parameter {name} is given twice")
        given[name] = value
    for name in needed:
        if not given.get(name):
            raise RestError(HTTPStatus.BAD_REQUEST, f"the parameter {name} is missing")
    return {name: value for name, value in given.items() if value}


def whole_number(given: dict[str, str], name: str, *, least: int, most: int, otherwise: int) -> int:
    """Return a parameter that is a whole number.

    Args:
        given: The parameters.
        name: The name of one.
        least: The smallest number that is taken.
        most: The largest one.
        otherwise: The number where the parameter is not given.

    Raises:
        RestError: It is not a whole number, or out of this range.
    """
    text = given.get(name)
    if text is None:
        return otherwise
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not is_number or not least <= int(text) <= most:
        raise RestError(
            HTTPStatus.BAD_REQUEST, f"{name}={text!r} is not a whole number from {least} to {most}"
        )
    return int(text)
