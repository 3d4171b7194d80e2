"""`licorne top`: a view of a running server in the terminal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....model.errors import LicorneError
from ...base.terminal.standard_output import ends_on, is_for_people, write_line
from ...views.top.views import View
from .options import TokenOption, print_document, seconds_of, value_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.documents.explanations import SentencesDocument
    from ...views.top.client import RestClient
    from ...views.top.reading import ServerReading

_INTERVAL_SECONDS_MIN = 0.1


def _interval_seconds(text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        BadParameter: It is not one, or is too short.
    """
    seconds = seconds_of("--interval", text)
    if seconds < _INTERVAL_SECONDS_MIN:
        raise typer.BadParameter(
            f"100ms is the shortest interval, {text!r} is shorter", param_hint="'--interval'"
        )
    return seconds


def top(
    *,
    address: Annotated[
        str, value_option("--address", "URL", "The REST interface of the server.")
    ] = "http://127.0.0.1:9080",
    token: TokenOption = None,
    ca: Annotated[
        Path | None,
        value_option("--ca", "FILE", "Certificates of the authorities for the server (PEM), with https."),
    ] = None,
    partition: Annotated[
        str | None,
        value_option(
            "--partition", "NAME", "The partition, as NAME or [RM]NAME; the first one if not given."
        ),
    ] = None,
    view: Annotated[
        View,
        value_option("--view", "VIEW", f"The first view: {', '.join(each.value for each in View)}."),
    ] = View.QUEUES,
    resource: Annotated[
        str | None,
        value_option(
            "--resource", "TYPE", "The resource whose quantities are shown; by default the most used one."
        ),
    ] = None,
    interval: Annotated[
        float,
        value_option(
            "--interval", "DURATION", "How often it reads, such as 500ms.", parser=_interval_seconds
        ),
    ] = "2s",  # type: ignore[assignment]  # typer gives it to the parser
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Print the view as text and end; the default if standard output is not a terminal."
        ),
    ] = False,
    explain: Annotated[
        str | None,
        value_option(
            "--explain", "APPLICATION", "Print why it waits and what would have to change, and end."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the view as JSON and end.")] = False,
) -> None:
    """Show a running server: its queues, applications, nodes, users and events. It changes nothing there."""
    with ends_on(LicorneError, "licorne top"):
        _check_installed()
        from ...views.top.client import RestClient, checked_address, tls_context

        client = RestClient(checked_address(address), token=token, tls=tls_context(ca))
        if explain is not None:
            _print_explanation(client, explain, partition, as_json=as_json)
            return
        if once or as_json or not is_for_people():
            _print_once(client, view, partition, resource, as_json=as_json)
            return
        from ...views.top.main_screen import TopApp
        from ...views.top.tables_of_views import ScreenState

        state = ScreenState(view=view, partition=partition, resource=resource)
        with _drawn_on_standard_output():
            TopApp(client, state, interval_seconds=interval).run()


@contextmanager
def _drawn_on_standard_output() -> Iterator[None]:
    """Have Textual, which draws on standard error, draw where the terminal is: `2>file` is for errors."""
    errors = sys.__stderr__
    if not sys.stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]  # the original stream is what Textual takes
    try:
        yield
    finally:
        sys.__stderr__ = errors  # type: ignore[misc]


def _check_installed() -> None:
    """Refuse to continue without the packages of the extra.

    Raises:
        LicorneError: One is missing.
    """
    from importlib.util import find_spec

    missing = [name for name in ("httpx", "textual") if find_spec(name) is None]
    if missing:
        raise LicorneError(f"{', '.join(missing)} is not installed: pip install 'licorne[tui]'")


def _print_explanation(client: RestClient, application: str, partition: str | None, *, as_json: bool) -> None:
    import asyncio

    from ...views.top.details import explanation_lines
    from ...views.top.reading import ServerReader

    async def read() -> SentencesDocument | None:
        try:
            reader = ServerReader(client)
            return await reader.explain(await reader.read(View.HEALTH, partition), application)
        finally:
            await client.close()

    explanation = asyncio.run(read())
    if explanation is None:
        raise LicorneError(f"the server at {client.address} does not explain {application!r}")
    if as_json:
        print_document(explanation)
        return
    for line in [explanation["headline"], *explanation_lines(explanation)]:
        write_line(line)


def _print_once(
    client: RestClient, view: View, partition: str | None, resource: str | None, *, as_json: bool
) -> None:
    import asyncio

    from ...views.top.details import print_as_json, print_as_text
    from ...views.top.reading import ServerReader
    from ...views.top.tables_of_views import table_of

    async def read() -> ServerReading:
        try:
            return await ServerReader(client).read(view, partition)
        finally:
            await client.close()

    reading = asyncio.run(read())
    shown = reading.checked_type(resource)
    table = table_of(view, reading, shown, time.time_ns())
    if as_json:
        print_as_json(reading, table, shown, client.address, view.value)
    else:
        print_as_text(reading, table, shown, client.address)
