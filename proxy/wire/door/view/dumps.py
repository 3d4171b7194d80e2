"""The state dump of a door: the dumps of all workers, merged.

A dump has each entry of a list on a separate line. So the lists are merged line by line, and the dump of a
worker is never in memory as a whole.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, closing
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, NamedTuple, final

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ....core.documents.configurations import configuration_document
from ....core.documents.monitoring import OpenStreamDocument
from ....views.rest.responses import JSON_TYPE, RestError
from .merging import Json, clusters, effective_configuration, summed_history
from .reading import AskedWorker, DoorReader, WorkerAnswers, noted, reader_of
from .worker_client import WorkerSilentError

_IN_MEMORY_MAX: Final = 1 << 20
_HEAD: Final = re.compile(rb'  "(\w+)": (.*?),?\n', re.DOTALL)
_LISTS: Final = ("partitions", "applications", "nodes", "queues", "placementRules")
"""The sections whose entries are concatenated, worker by worker."""
_PIECE: Final = 1 << 16


@final
class WorkerDump:
    """The dump of one worker in a temporary file, and the positions of its sections; to be closed."""

    def __init__(self, worker: AskedWorker) -> None:
        self.worker = worker
        self._file: IO[bytes] = SpooledTemporaryFile(max_size=_IN_MEMORY_MAX)  # noqa: SIM115 - `close` does it
        self.write = self._file.write
        self.close = self._file.close
        self._places: dict[str, int] = {}
        self._values: dict[str, bytes] = {}

    def look_up(self) -> None:
        """Find the sections.

        Raises:
            WorkerSilentError: The file is not a dump.
        """
        self._file.seek(0)
        while line := self._file.readline():
            found = _HEAD.fullmatch(line)
            if found is None:
                continue
            name = found[1].decode()
            self._values[name] = found[2]
            self._places[name] = self._file.tell()
        if "timestamp" not in self._values:
            raise WorkerSilentError(f"the worker at {self.worker.address} gives no state dump")

    def entries(self, name: str) -> Iterator[bytes]:
        """Yield the texts of the entries of a list."""
        if self._values.get(name) != b"[":
            return
        self._file.seek(self._places[name])
        while (line := self._file.readline()).startswith(b"    "):
            yield line.strip().removesuffix(b",")

    def list_of(self, name: str) -> list[Json]:
        """Return the entries of a short list."""
        return [json.loads(entry) for entry in self.entries(name)]

    def value(self, name: str) -> Any:
        """Return the value of a section that is not a list."""
        return json.loads(self._values.get(name, b"null"))


async def _state_dump(request: Request) -> Response:
    """Read the dumps of all workers, merge them, then send the file."""
    reader = reader_of(request)
    if request.app.state.door_dumping:
        text = "a state dump is being made already; ask again when it is done"
        raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, text)
    request.app.state.door_dumping = True
    kept = ExitStack()
    try:
        with ExitStack() as reading:
            dumps, answers = await _read(reader, reading)
            streams = request.app.state.events.open_streams()
            file = kept.enter_context(SpooledTemporaryFile(max_size=_IN_MEMORY_MAX))
            await run_sync(merged_dump, file, reader, dumps, streams)
    except BaseException:
        kept.close()
        raise
    finally:
        request.app.state.door_dumping = False
    return noted(StreamingResponse(_pieces(file, kept), headers={"Content-Type": JSON_TYPE}), answers)


DUMPS: Final = {"/debug/fullstatedump": _state_dump}
"""The endpoints by their paths."""


class _Section(NamedTuple):
    name: str
    parts: Iterator[bytes]


async def _read(reader: DoorReader, stack: ExitStack) -> tuple[list[WorkerDump], WorkerAnswers]:
    """Read the dump of each worker into a file.

    Raises:
        RestError: No worker of the existing partitions gives a dump.
    """
    missing = reader.missing()
    dumps = []
    for worker in reader.workers():
        dump = stack.enter_context(closing(WorkerDump(worker)))
        try:
            async with aclosing(_parts(reader, worker)) as parts:
                async for part in parts:
                    dump.write(part)
            await run_sync(dump.look_up)
            dumps.append(dump)
        except WorkerSilentError as error:
            missing += [(place, str(error)) for place in worker.places]
    if missing and not dumps:
        raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, missing[0][1])
    return dumps, WorkerAnswers((), missing)


async def _parts(reader: DoorReader, worker: AskedWorker) -> AsyncGenerator[bytes, None]:
    answer = await reader.client.ask(worker.address, b"/debug/fullstatedump", token=worker.token)
    if answer.status != HTTPStatus.OK:
        text = json.loads(await answer.body()).get("message", "")
        raise WorkerSilentError(f"the worker at {worker.address} gives no state dump: {text}")
    async with aclosing(answer.parts()) as parts:
        async for part in parts:
            yield part


def merged_dump(
    file: IO[bytes], reader: DoorReader, dumps: Sequence[WorkerDump], streams: Sequence[OpenStreamDocument]
) -> None:
    """Write the dump of all workers, and seek to its start.

    Args:
        file: The file to write.
        reader: The door.
        dumps: The dumps of the workers.
        streams: The streams of events of the door.
    """
    before = b"{\n"
    for section in _sections(reader, dumps, streams):
        file.write(b'%b  "%b": ' % (before, section.name.encode()))
        before = b",\n"
        file.writelines(section.parts)
    file.write(b"\n}\n")
    file.seek(0)


def _sections(
    reader: DoorReader, dumps: Sequence[WorkerDump], streams: Sequence[OpenStreamDocument]
) -> Iterator[_Section]:
    """Yield the sections in the order that the dump of a scheduler has."""

    def entries(name: str) -> Iterator[bytes]:
        return _list_text(entry for dump in dumps for entry in dump.entries(name))

    def made(name: str, merge: Callable[[], Sequence[Any]]) -> _Section:
        return _Section(name, _list_text(map(_text, merge())))

    def history(name: str, key: str) -> _Section:
        return made(name, lambda: summed_history([dump.list_of(name) for dump in dumps], key))

    yield _Section("timestamp", iter([_text(time.time_ns())]))
    yield _Section("partitions", entries("partitions"))
    yield _Section("applications", entries("applications"))
    yield history("appHistory", "totalApplications")
    yield _Section("nodes", entries("nodes"))
    info = [(dump.worker, dump.list_of("clusterInfo")) for dump in dumps]
    yield made("clusterInfo", lambda: clusters(reader.places(), info))
    yield history("containerHistory", "totalContainers")
    yield _Section("queues", entries("queues"))
    yield _Section("rmDiagnostics", iter([_text(_diagnostics(dumps))]))
    level = dumps[0].value("logLevel") if dumps else ""
    yield _Section("logLevel", iter([_text(level)]))
    config, extra = effective_configuration(reader)
    if config is not None:
        yield _Section("config", iter([_text(configuration_document(config, extra, yaml=False))]))
    yield _Section("placementRules", entries("placementRules"))
    if streams:
        yield made("eventStreams", lambda: streams)


def _diagnostics(dumps: Sequence[WorkerDump]) -> Json:
    """Return the reports of the RMs on their state: a single one unchanged, several by their ids."""
    found: Json = {}
    for dump in dumps:
        own = list(dict.fromkeys(place.rm_id for place in dump.worker.places))
        said = dump.value("rmDiagnostics") or {}
        found |= {own[0]: said} if len(own) == 1 else said
    return next(iter(found.values())) if len(found) == 1 else found


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def _list_text(entries: Iterator[bytes]) -> Iterator[bytes]:
    before = b"["
    for entry in entries:
        yield b"%b\n    %b" % (before, entry)
        before = b","
    yield b"[]" if before == b"[" else b"\n  ]"


def _pieces(file: IO[bytes], kept: ExitStack) -> Iterator[bytes]:
    with kept:
        while piece := file.read(_PIECE):
            yield piece
