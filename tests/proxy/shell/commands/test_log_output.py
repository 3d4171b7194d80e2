from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger
from support.proxy.command_runs import run
from support.proxy.listening import Listener
from support.proxy.processes import serving
from support.waiting import wait_until

from licorne import RemoteScheduler
from licorne.actors.services.log import Log
from licorne.model.errors import LicorneError
from licorne.proxy.core.scheduler.managers.callbacks import CallbackFailures
from licorne.proxy.shell.commands.options import JsonHandler, log_format_named, reporter, write_record


@pytest.fixture
def json_lines(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """Write what is logged as JSON lines."""
    sink = logger.add(write_record, level=0, format="{message}")
    logger.enable("licorne")
    yield capsys
    logger.disable("licorne")
    logger.remove(sink)


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_has_the_fields_that_are_known(json_lines: pytest.CaptureFixture[str]) -> None:
    """In their order, after time, level and message; others are left out."""
    log = Log(logger="core.x", rm_id="rm", partition="default", dispatcher="d")
    log.bind(queue="root.q", application="a", allocation_key="k", node="n").warning("{} is full", "it")
    (line,) = _lines(json_lines.readouterr().err)

    assert line.pop("time").endswith("Z")
    assert [
        ("level", "warning"),
        ("message", "it is full"),
        ("logger", "core.x"),
        ("rmID", "rm"),
        ("partition", "default"),
        ("queue", "root.q"),
        ("application", "a"),
        ("allocationKey", "k"),
        ("node", "n"),
    ] == list(line.items())


def test_the_full_name_of_a_partition_is_taken_apart(json_lines: pytest.CaptureFixture[str]) -> None:
    """It begins with the resource manager."""
    Log(partition="[rm-1]default").info("text")
    (line,) = _lines(json_lines.readouterr().err)

    assert ("rm-1", "default") == (line["rmID"], line["partition"])


def test_an_error_is_one_line_with_its_traceback(json_lines: pytest.CaptureFixture[str]) -> None:
    """Line ends are escaped; braces in texts are texts."""
    Log().error("{}", "line 1\nline {2}", error=ValueError("seven"))
    (line,) = _lines(json_lines.readouterr().err)

    assert ("error", "line 1\nline {2}") == (line["level"], line["message"])
    assert "ValueError: seven" in line["error"]


def test_what_goes_through_logging_is_written_in_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    """Failing callbacks do, and other packages."""
    other = logging.Logger("other")  # noqa: LOG001 - one that no other test has
    other.addHandler(JsonHandler())
    try:
        raise ValueError("seven")  # noqa: TRY301 - it is the error that is logged
    except ValueError:
        other.exception("%s failed", "it", extra={"rm_id": "rm"})
    (line,) = _lines(capsys.readouterr().err)

    assert ("error", "it failed", "rm") == (line["level"], line["message"], line["rmID"])
    assert "ValueError: seven" in line["error"]


def test_a_failing_callback_says_whose_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """The record has the resource manager."""
    CallbackFailures(None).note("rm-1", "update_node", ValueError("seven"))
    (record,) = caplog.records

    assert "rm-1" == vars(record)["rm_id"]


def test_an_unknown_format_is_refused() -> None:
    """The error says which there are."""
    with pytest.raises(LicorneError, match="--log-format is one of text, json, not 'xml'"):
        log_format_named("xml")


def test_reports_as_text_are_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    """The command, and the text."""
    reporter("text", "licorne serve")("it is so")

    assert "licorne serve: it is so\n" == capsys.readouterr().err


def test_a_server_writes_reports_and_log_as_json(tmp_path: Path) -> None:
    """A real process: each line of its standard error is an object."""
    errors, queues = tmp_path / "errors.txt", tmp_path / "queues.yaml"
    queues.write_text(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]\n", encoding="utf-8"
    )
    with (
        serving("--log-format", "json", "--config", str(queues), errors=errors) as server,
        RemoteScheduler(server.address) as scheduler,
    ):
        scheduler.register("rm-1", Listener())
        wait_until(lambda: "has registered" in errors.read_text(encoding="utf-8"), "it is logged")
        queues.write_text("partitions: 7\n", encoding="utf-8")
        wait_until(lambda: "is refused" in errors.read_text(encoding="utf-8"), "it is reported")
    lines = _lines(errors.read_text(encoding="utf-8"))

    (registered,) = (line for line in lines if "has registered" in line["message"])
    assert ("info", "rm-1", "core.rmproxy") == (registered["level"], registered["rmID"], registered["logger"])
    assert any(f"{queues}:1:" in line["message"] for line in lines)


def test_a_server_refuses_an_unknown_format() -> None:
    """Before it listens."""
    status, output, errors = run("serve", "--log-format", "xml")

    assert (2, "") == (status, output)
    assert "not 'xml'" in errors
