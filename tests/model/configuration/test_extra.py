"""The extra configuration."""

from __future__ import annotations

import pytest

from licorne.model.configuration.extra import ExtraConfig, LogLevel, parse_extra_config


def settings_of(texts: dict[str, str]) -> ExtraConfig:
    settings, warnings = parse_extra_config(texts)
    assert warnings == ()
    return settings


def test_an_empty_map_gives_the_defaults() -> None:
    """Whatever was set before: each map replaces the one before it."""
    assert settings_of({}) == ExtraConfig(
        event_tracking_enabled=True,
        event_request_capacity=1000,
        event_ring_buffer_capacity=100_000,
        event_max_streams=100,
        event_max_streams_per_host=15,
        event_rest_response_size=10_000,
        health_check_interval_seconds=30.0,
        log_levels={},
    )


def test_every_setting_is_read() -> None:
    """By its exact key."""
    texts = {
        "event.trackingEnabled": "false",
        "event.requestCapacity": "1",
        "event.ringBufferCapacity": "2",
        "event.maxStreams": "3",
        "event.maxStreamsPerHost": "0",
        "event.RESTResponseSize": "5",
        "health.checkInterval": "1m30s",
        "log.level": "warn",
    }

    assert settings_of(texts) == ExtraConfig(
        event_tracking_enabled=False,
        event_request_capacity=1,
        event_ring_buffer_capacity=2,
        event_max_streams=3,
        event_max_streams_per_host=0,
        event_rest_response_size=5,
        health_check_interval_seconds=90.0,
        log_levels={"": LogLevel.WARN},
    )


@pytest.mark.parametrize(
    ("text", "flag"), [("1", True), ("T", True), ("TRUE", True), ("0", False), ("f", False)]
)
def test_flags_have_short_forms(text: str, *, flag: bool) -> None:
    """As the recorded core reads them."""
    assert flag is settings_of({"event.trackingEnabled": text}).event_tracking_enabled


@pytest.mark.parametrize(
    "key", ["event.requestCapacity", "event.ringBufferCapacity", "event.RESTResponseSize"]
)
def test_a_size_of_zero_is_the_default(key: str) -> None:
    """A buffer without room would be of no use."""
    assert ExtraConfig() == settings_of({key: "0"})


@pytest.mark.parametrize(
    ("key", "text", "default"),
    [
        ("event.trackingEnabled", "yes", True),
        ("event.requestCapacity", "-1", 1000),
        ("event.ringBufferCapacity", "1k", 100_000),
        ("event.maxStreams", "", 100),
        ("event.maxStreamsPerHost", "18446744073709551616", 15),
        ("event.RESTResponseSize", "1.5", 10_000),
        ("health.checkInterval", "30", 30.0),
    ],
)
def test_what_cannot_be_read_is_the_default_with_a_warning(key: str, text: str, default: object) -> None:
    """Nothing in this map makes a request fail."""
    settings, warnings = parse_extra_config({key: text})

    assert ExtraConfig() == settings
    assert (f"{key}: {text!r} cannot be read, {default} is used",) == warnings


def test_an_interval_of_zero_or_less_is_kept() -> None:
    """It means that there are no periodic checks."""
    assert settings_of({"health.checkInterval": "-1s"}).health_check_interval_seconds == -1.0


def test_a_misspelt_setting_is_remarked_on() -> None:
    """With the one that was meant; settings of other parts are not."""
    _, warnings = parse_extra_config(
        {"event.ringbufferCapacity": "5", "service.clusterId": "x", "event.lifetime": "1"}
    )

    assert (
        "event.ringbufferCapacity: unknown setting; did you mean 'event.ringBufferCapacity'?",
        "event.lifetime: unknown setting",
    ) == warnings


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("debug", LogLevel.DEBUG),
        ("Info", LogLevel.INFO),
        ("", LogLevel.INFO),
        ("WARN", LogLevel.WARN),
        ("dpanic", LogLevel.DPANIC),
        ("-1", LogLevel.DEBUG),
        ("-9", LogLevel.DEBUG),
        ("2", LogLevel.ERROR),
        ("99", LogLevel.FATAL),
    ],
)
def test_levels_have_names_and_numbers(text: str, level: LogLevel) -> None:
    """Numbers beyond the ends mean the ends."""
    assert level is settings_of({"log.core.events.level": text}).level_of("core.events")


@pytest.mark.parametrize(
    ("key", "text"),
    [("log.level", "loud"), ("log.a b.level", "info"), ("log.a..b.level", "info"), ("log.level", "1.0")],
)
def test_levels_that_make_no_sense_are_ignored_with_a_warning(key: str, text: str) -> None:
    """Unknown levels and impossible names of loggers."""
    settings, warnings = parse_extra_config({key: text})

    assert ExtraConfig() == settings
    assert (f"{key}: {text!r} sets no level of a logger and is ignored",) == warnings


def test_a_logger_has_the_level_of_the_nearest_one_above() -> None:
    """Its own first, then shorter names, then that of all."""
    settings = settings_of(
        {"log.level": "error", "log.core.level": "warn", "log.core.scheduler.level": "debug"}
    )

    loggers = ("core.scheduler", "core.scheduler.queue", "core.schedulerx", "core", "test")
    assert [LogLevel.DEBUG, LogLevel.DEBUG, LogLevel.WARN, LogLevel.WARN, LogLevel.ERROR] == [
        settings.level_of(logger) for logger in loggers
    ]


def test_without_any_level_loggers_inform() -> None:
    """The default of the defaults."""
    assert settings_of({}).level_of("core.events") is LogLevel.INFO
