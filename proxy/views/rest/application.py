"""The REST interface of a scheduler as an ASGI application: all routes and their description, put together.

A module with endpoints has a table `OPERATIONS`; its endpoints find the scheduler by `requests.scheduler_of`.
An endpoint that is not a coroutine runs on a thread: it may wait for the scheduler.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache, wraps
from http import HTTPStatus
from importlib import resources
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Final, final

import yaml
from anyio import CapacityLimiter
from loguru import logger
from pydantic import ConfigDict, TypeAdapter
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....model.errors import LicorneError
from ...core.documents.declarations import Operation, Parameter
from ...core.documents.monitoring import ErrorDocument
from ...core.scheduler.scheduler import Scheduler
from ...si.arguments import check_names, check_type
from ..page.application import Page
from .handlers import applications, events, monitoring, questions, queues
from .limits import LimitsSettings, Pace, Pacing, RequestLimits
from .requests import Access, check_tokens, pace_of
from .responses import (
    SHARED,
    CrossOrigin,
    EscapedSlashes,
    EventTexts,
    LoggedEvents,
    RestError,
    allowed_methods,
    error_response,
    method_refused,
    not_found,
    redirect,
    repaired_path,
)

_SUFFIX: Final = "Document"
_REFERENCE: Final = "#/components/schemas/"
_CONFIG: Final = ConfigDict(use_attribute_docstrings=True)
_TWICE: Final = "escapes count twice, in the path and in the name"
_TEXT: Final = {"type": "string"}
_NAME: Final = "[a-zA-Z0-9_:#/@-]{1,64}"


@cache
def description() -> bytes:
    """Return the description of all operations, OpenAPI 3.1 as YAML in UTF-8."""
    return description_of([*OPERATIONS, *Page.OPERATIONS])


async def _description(_: Request) -> Response:
    return Response(description(), headers={"Content-Type": _TYPE})


_TYPE: Final = "application/yaml"
OPERATIONS: Final[Sequence[Operation]] = [
    Operation(
        "/openapi.yaml",
        _description,
        "cluster",
        "This description",
        "The description",
        {_TYPE: dict[str, object]},
        is_open=True,
    ),
    *queues.OPERATIONS,
    *applications.OPERATIONS,
    *events.OPERATIONS,
    *questions.OPERATIONS,
    *monitoring.OPERATIONS,
]
"""All operations but those of the page."""


def all_routes(operations: Iterable[Operation]) -> list[Route]:
    """Return fresh routes of operations, with the headers for pages of other origins, and without HEAD."""
    return [_route(each) for each in operations]


def _route(operation: Operation) -> Route:
    made = Route(operation.path, _counted(operation.endpoint), methods=[operation.method])
    assert made.methods is not None, f"{operation.path} has no methods: please report"
    made.methods.discard("HEAD")
    # Starlette's `$` also matches before a newline, which would be cut off.
    made.path_regex = re.compile(made.path_regex.pattern.removesuffix("$") + r"\Z")
    if operation.path.startswith(SHARED):
        made.app = CrossOrigin(made.app, allowed_methods(made.methods))
    return made


def _counted(endpoint: Callable[[Request], object]) -> Callable[[Request], object]:
    """Return an endpoint whose time on its thread counts as time of readers."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    def counted(request: Request) -> object:
        with pace_of(request).step():
            return endpoint(request)

    return counted


def _in_path(name: str, description: str, pattern: str = "") -> Parameter:
    schema = _TEXT | {"pattern": pattern} if pattern else _TEXT
    return Parameter(name, description, schema, "path", required=True)


_IN_PATHS: Final = {
    each.name: each
    for each in (
        _in_path("partition", "Its short or its full name"),
        _in_path(
            "queue",
            f"The full path, such as `root.a`, in any case of letters; {_TWICE}",
            rf"^{_NAME}(\.{_NAME})*$",
        ),
        _in_path("application", "Its id"),
        _in_path("node", "The id of the node"),
        _in_path("user", f"The user; {_TWICE}", "^[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?$"),
        _in_path("group", f"The group; {_TWICE}", "^[_a-zA-Z][a-zA-Z0-9:_.-]*$"),
    )
}
"""The parameters in paths, unless an operation has another description."""
_REFUSALS: Final = {
    HTTPStatus.MOVED_PERMANENTLY: "Moved",
    HTTPStatus.BAD_REQUEST: "Refused",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.NOT_FOUND: "Unknown",
    HTTPStatus.REQUEST_TIMEOUT: "TooSlow",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "TooLarge",
    HTTPStatus.MISDIRECTED_REQUEST: "Misdirected",
    HTTPStatus.TOO_MANY_REQUESTS: "TooMany",
    HTTPStatus.INTERNAL_SERVER_ERROR: "NoEvents",
    HTTPStatus.NOT_IMPLEMENTED: "NoProfiles",
    HTTPStatus.SERVICE_UNAVAILABLE: "Unavailable",
}
"""The answer that `openapi.yaml` describes for each status but 200; below a partition 404 is `NotFound`."""


def description_of(operations: Sequence[Operation]) -> bytes:
    """Return the text of the description, OpenAPI 3.1 as YAML in UTF-8."""
    assert __package__ is not None, "a module of a package knows it: please report"
    document = yaml.safe_load((resources.files(__package__) / "openapi.yaml").read_text(encoding="utf-8"))
    types = [type_ for each in operations for type_ in (*each.returns.values(), *(each.body or {}).values())]
    schemas, components = _schemas([*dict.fromkeys((ErrorDocument, *types))])
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = dict(_entries(each, schemas))
    document |= {"paths": paths}
    document["components"]["schemas"] = components
    return yaml.dump(document, sort_keys=False, allow_unicode=True, width=120, Dumper=_Dumper).encode()


class _Dumper(yaml.SafeDumper):
    """Writes without references of YAML."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature is that of PyYAML
        """Say that every value is written where it stands."""
        return True


def _entries(operation: Operation, schemas: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the entries of an operation in the description.

    Args:
        operation: The operation.
        schemas: The schemas of the types that operations have.
    """
    words = (operation.name or operation.endpoint.__name__).strip("_").split("_")
    yield "tags", [operation.tag]
    yield "operationId", words[0] + "".join(word.capitalize() for word in words[1:])
    yield "summary", operation.summary
    if operation.description:
        yield "description", operation.description
    if operation.is_open:
        yield "security", [{}]
    parameters = _parameters(operation)
    if parameters:
        yield "parameters", [*map(_parameter, parameters)]
    if operation.body is not None:
        note = {"description": operation.body_note} if operation.body_note else {}
        required = {"required": HTTPStatus.BAD_REQUEST in operation.refusals}
        yield "requestBody", required | note | _content(operation.body, schemas)
    yield "responses", dict(_responses(operation, schemas))


def _parameters(operation: Operation) -> list[Parameter]:
    """Return all parameters of an operation, those in the path first."""
    own = {each.name: each for each in operation.parameters if each.place == "path"}
    in_path = [own.get(name) or _IN_PATHS[name] for name in re.findall(r"{(\w+)}", operation.path)]
    return in_path + [each for each in operation.parameters if each.place != "path"]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    required = {"required": True} if parameter.required else {}
    names = {"name": parameter.name, "in": parameter.place}
    rest = {"description": parameter.description, "schema": dict(parameter.schema)}
    return {**names, **required, **rest, **parameter.further}


def _responses(operation: Operation, schemas: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the answers of an operation by their statuses."""
    if operation.answer:
        yield "200", {"description": operation.answer} | _content(operation.returns, schemas)
    has_names = "{" in operation.path
    statuses = {429, 503, *operation.refusals}
    statuses |= {401, 421} if not operation.is_open else set()
    statuses |= {301, 404} if has_names else set()
    statuses |= {408, 413} if operation.body is not None else set()
    for status in sorted(statuses):
        name = "NotFound" if has_names and status == HTTPStatus.NOT_FOUND else _REFUSALS[HTTPStatus(status)]
        yield str(status), {"$ref": f"#/components/responses/{name}"}


def _content(types: Mapping[str, Any], schemas: Mapping[Any, Any]) -> dict[str, Any]:
    return {"content": {media: {"schema": schemas[type_]} for media, type_ in types.items()}}


def _schemas(types: Sequence[Any]) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Return the schemas of types, and those of the documents that they refer to, by name."""
    # A configuration has no schema here: it would be repeated in all lists.
    adapters: list[Any] = [(each, "validation", TypeAdapter(list[each], config=_CONFIG)) for each in types]  # type: ignore[valid-type] # found at run time
    lists, found = TypeAdapter.json_schemas(adapters, ref_template=_REFERENCE + "{model}")
    components = {name.removesuffix(_SUFFIX): schema for name, schema in sorted(found["$defs"].items())}
    return {each: _plain(lists[each, "validation"]["items"]) for each in types}, _plain(components)


def _plain(schema: Any) -> Any:
    """Return a schema with short names and no titles; an object has no keys but those that it declares."""
    if isinstance(schema, list):
        return [*map(_plain, schema)]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items() if key not in {"title", "properties"}}
    if "properties" in schema:
        plain["properties"] = {name: _plain(value) for name, value in schema["properties"].items()}
        plain.setdefault("additionalProperties", False)
    if "$ref" in plain:
        plain["$ref"] = plain["$ref"].removesuffix(_SUFFIX)
    return plain


def rest_app(
    scheduler: Scheduler,
    *,
    tokens: Sequence[str] = (),
    hosts: Sequence[str] = (),
    limits: LimitsSettings | None = None,
    ui_dir: Path | str | None = None,
    closed: Sequence[str] = (),
) -> Starlette:
    """Return the REST interface of a scheduler, with the page at `/`, for any ASGI server.

    It does not stop the scheduler. Once the scheduler has been stopped it answers 503.

    Args:
        scheduler: The scheduler that readers see.
        tokens: The bearer tokens that are let in; without any, each reader is.
        hosts: The names by which readers may ask where no token is required, besides addresses, names without
            dots and those of private zones: others may be those of a web page, see `docs/rest.md`.
        limits: The limits for readers; by default those of `LimitsSettings`.
        ui_dir: A folder with the build of another user interface, served at `/` instead of the page.
        closed: The beginnings of paths that are refused where no token is required.

    Raises:
        LicorneError: The folder has no `index.html`.
    """
    check_type("scheduler, which is in this process", scheduler, Scheduler)
    check_type("ui_dir", ui_dir, Path, str, type(None))
    check_tokens(tokens)
    check_names("hosts", hosts)
    check_type("limits", limits, LimitsSettings, type(None))
    pace = Pace(scheduler.monitoring.is_busy, scheduler.monitoring.announced)
    page = Page(scheduler, ui_dir=None if ui_dir is None else Path(ui_dir))
    application = application_of(
        [*OPERATIONS, *page.operations],
        page.files,
        page.lifespan,
        events=LoggedEvents(scheduler.events),
        pace=pace,
        tokens=tokens,
        hosts=hosts,
        limits=limits or LimitsSettings(),
        closed=closed,
    )
    application.state.scheduler = scheduler
    application.state.more_metrics = tuple
    return application


def application_of(
    operations: Sequence[Operation],
    files: Starlette,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]],
    *,
    events: EventTexts,
    pace: Pace,
    tokens: Sequence[str],
    hosts: Sequence[str],
    limits: LimitsSettings,
    closed: Sequence[str] = (),
) -> Starlette:
    """Return an application with operations behind the limits, the access and the pace of readers.

    Args:
        operations: The operations that it answers.
        files: Answers what no operation does.
        lifespan: Entered while it is served.
        events: The source of the routes of events.
        pace: Counts the time of readers.
        tokens: The bearer tokens that are let in; without any, each reader is.
        hosts: As for `rest_app`.
        limits: The limits for readers.
        closed: As for `rest_app`.
    """
    routes = all_routes(operations)
    application = Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestLimits, settings=limits),
            Middleware(Access, tokens=tokens, hosts=hosts, closed=closed),
            Middleware(Pacing, pace=pace),
            Middleware(Compression),
            Middleware(EscapedSlashes),
        ],
        exception_handlers={
            HTTPStatus.METHOD_NOT_ALLOWED: method_refused,
            RestError: _refused,
            ClientDisconnect: _left,
            LicorneError: _unavailable,
            Exception: _broken,
        },
        lifespan=lifespan,
    )
    application.state.pace = pace
    application.state.events = events
    application.state.checks = CapacityLimiter(1)
    application.router.redirect_slashes = False
    application.router.default = _Unrouted(routes, files)
    return application


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RestError), f"a handler for REST errors got {error!r}: please report"
    return error_response(error.status, error.message)


def _left(_: Request, error: Exception) -> Response:
    """Return an answer for the record; the client has gone."""
    return error_response(HTTPStatus.BAD_REQUEST, f"the request did not come to its end: {error!r}")


def _unavailable(_: Request, error: Exception) -> Response:
    return error_response(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


def _broken(_: Request, error: Exception) -> Response:
    """Return the answer to a request that met a bug of ours, and log that."""
    logger.opt(exception=error).error("a request over REST met an internal error, please report")
    text = f"internal error ({type(error).__name__}): please report it"
    return error_response(HTTPStatus.INTERNAL_SERVER_ERROR, text)


@final
class _Unrouted:
    """Answers requests whose path no route has: by a better path, by a file, or not at all."""

    def __init__(self, routes: Sequence[Route], files: Starlette) -> None:
        self._routes = routes
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        path = repaired_path(scope["path"], request.method, self._routes)
        if path is not None:
            await redirect(path, request.method, request.url.query)(scope, receive, send)
        elif request.method in {"GET", "HEAD"}:
            await self._files(scope, receive, send)
        else:
            await not_found()(scope, receive, send)


_BYTES_MIN: Final = 1_400
_LEVEL: Final = 4
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
_STREAMS: Final = ("/ws/v1/events/stream",)
_STREAM_TYPE: Final = "text/event-stream"


def takes_gzip(accepted: str) -> bool:
    """Return whether a header `Accept-Encoding` lists gzip, in any case; only `q=0` as such excludes it."""
    for entry in accepted.split(","):
        coding, *parameters = (part.strip() for part in entry.split(";"))
        if coding.lower() == "gzip":
            return not any(re.sub(r"\s", "", parameter).lower() == "q=0" for parameter in parameters)
    return False


@final
class Compression:
    """Compresses answers of 1,400 bytes and more; streams of events are not compressed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] in _STREAMS:
            await self._app(scope, receive, send)
            return
        wanted = takes_gzip(Headers(scope=scope).get("Accept-Encoding", ""))
        await self._app(scope, receive, _CompressedAnswer(send, wanted=wanted).send)


@final
class _CompressedAnswer:
    """One answer: its head waits for the first part of its body, whose size decides."""

    def __init__(self, send: Send, *, wanted: bool) -> None:
        self._send = send
        self._wanted = wanted
        self._head: Message | None = None
        self._compressor: zlib._Compress | None = None

    async def send(self, message: Message) -> None:
        """Send a part of the answer, compressed or not."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if message["type"] == "http.response.body":
            message = await self._body(message)
        await self._send(message)

    async def _body(self, message: Message) -> Message:
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._head is not None:
            head, self._head = self._head, None
            self._begin(MutableHeaders(scope=head), len(body), more=more)
            await self._send(head)
        if self._compressor is None:
            return message
        packed = self._compressor.compress(body)
        if not more:
            packed += self._compressor.flush()
        return {**message, "body": packed}

    def _begin(self, headers: MutableHeaders, size: int, *, more: bool) -> None:
        if headers.get("Content-Type", "").startswith(_STREAM_TYPE):
            return
        headers.add_vary_header("Accept-Encoding")
        if not self._wanted or "Content-Encoding" in headers or (size < _BYTES_MIN and not more):
            return
        headers["Content-Encoding"] = "gzip"
        del headers["Content-Length"]
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
