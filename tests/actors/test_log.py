"""What is logged, and who decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from licorne.actors.services.log import Log
from licorne.model.configuration.extra import LogLevel

if TYPE_CHECKING:
    from loguru import Record


def say_everything(log: Log) -> None:
    """Say something at each level."""
    log.debug("{} {}", "debug", 1)  # noqa: PLE1205 - loguru's braces
    log.info("info")
    log.warning("warning")
    log.error("error", error=ValueError("given"))
    try:
        int("caught")
    except ValueError:
        log.exception("exception")


ALL = ["debug 1", "info", "warning", "error", "exception"]


def test_a_log_hands_on_everything_by_default(records: list[Record]) -> None:
    """With the names of loguru's levels."""
    say_everything(Log())

    assert ALL == [record["message"] for record in records]
    assert ["DEBUG", "INFO", "WARNING", "ERROR", "ERROR"] == [record["level"].name for record in records]


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        (LogLevel.DEBUG, ALL),
        (LogLevel.INFO, ALL[1:]),
        (LogLevel.WARN, ALL[2:]),
        (LogLevel.ERROR, ALL[3:]),
        pytest.param(LogLevel.DPANIC, [], id="nothing that Licorne has to say is so serious"),
    ],
)
def test_a_log_says_what_its_level_lets_pass(
    records: list[Record], level: LogLevel, heard: list[str]
) -> None:
    """And whatever is more serious."""
    say_everything(Log(lambda wanted: wanted >= level))

    assert heard == [record["message"] for record in records]


def test_records_carry_what_was_bound(records: list[Record]) -> None:
    """That of the log and that of the moment."""
    Log(logger="core").bind(received="message").info("text")

    (record,) = records
    assert {"logger": "core", "received": "message"} == record["extra"]


def test_a_log_that_was_bound_keeps_its_level(records: list[Record]) -> None:
    """It is the same log."""
    Log(lambda wanted: wanted >= LogLevel.WARN).bind(more=1).info("text")

    assert [] == records


def test_records_come_from_where_the_message_was_said(records: list[Record]) -> None:
    """Not from the log itself: programs filter by module."""
    say_everything(Log())

    assert {"say_everything"} == {record["function"] for record in records}


def test_errors_bring_their_exception(records: list[Record]) -> None:
    """The one that is given, or the one that is handled."""
    say_everything(Log())

    exceptions = [record["exception"] for record in records]
    texts = [None if entry is None else str(entry.value) for entry in exceptions]
    assert [None, None, None, "given", "invalid literal for int() with base 10: 'caught'"] == texts
