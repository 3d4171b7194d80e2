"""The rules about windows: each refusal with its place and reason."""

from __future__ import annotations

import pytest

from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.reader import load, past_window_problems
from licorne.model.configuration.schema import SchedulerConfig
from licorne.model.configuration.windows import WindowConfig

TIMES = "from: 2026-12-01T06:00, to: 2026-12-01T10:00"


def windows(*rows: str) -> str:
    """Return a configuration with windows."""
    lines = "".join(f"      - {{{row}}}\n" for row in rows)
    return (
        f"partitions:\n  - name: default\n    windows:\n{lines}    queues: [{{name: root, submitacl: '*'}}]\n"
    )


def read(row: str) -> WindowConfig:
    """Return one window."""
    (window,) = load(windows(row)).partitions[0].windows
    return window


def problems(*rows: str) -> list[str]:
    """Return the errors of windows, with their places."""
    with pytest.raises(ConfigurationError) as refused:
        load(windows(*rows))
    return [f"{each.line}:{each.column}: {each.text}" for each in refused.value.problems]


def test_a_window_has_defaults() -> None:
    window = read(f"name: a, nodes: [n1], {TIMES}")
    assert (window.when.zone, window.when.every_days, window.drain_ns) == ("UTC", 0, 24 * 3600 * 10**9)
    assert not window.is_for("ada", ("staff",), "app", ("root.a", "root"))
    assert window.has("n1", {})
    assert not window.has("n2", {})


def test_an_offset_counts_and_a_zone_counts() -> None:
    first = read("name: a, nodes: [n1], from: 2026-12-01T06:00:00+02:00, to: 2026-12-01 10:00Z")
    second = read(
        "name: a, nodes: [n1], from: 2026-12-01T05:00, to: 2026-12-01T11:00, zone: Europe/Stockholm"
    )
    assert first.when.span(0) == second.when.span(0)


def test_attributes_must_all_be_there() -> None:
    window = read(f"name: a, attributes: {{rack: r1, kind: gpu}}, {TIMES}")
    assert window.has("x", {"rack": "r1", "kind": "gpu", "more": ""})
    assert not window.has("x", {"rack": "r1"})


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (f"nodes: [n1], {TIMES}", "4:9: a window has a name, as firmware is"),
        (
            f"name: a, {TIMES}",
            "4:9: window 'a' is for nodes by their names or by their attributes, one of both",
        ),
        (
            f"name: a, nodes: [n1], attributes: {{rack: r1}}, {TIMES}",
            "4:9: window 'a' is for nodes by their names or by their attributes, not both",
        ),
        (f"name: a, nodes: [n1, n1], {TIMES}", "4:31: window 'a': 'n1' is written twice"),
        (f"name: a, nodes: [''], {TIMES}", "4:27: window 'a': '' is no name"),
        (
            "name: a, nodes: [n1], from: soon, to: 2026-12-01T10:00",
            "4:38: window 'a': from: 'soon' is no time as 2026-12-01T06:00 or 2026-12-01T06:00:00Z",
        ),
        (
            "name: a, nodes: [n1], from: 2026-12-01T06:00",
            "4:9: window 'a': to: '' is no time as 2026-12-01T06:00 or 2026-12-01T06:00:00Z",
        ),
        (
            f"name: a, nodes: [n1], {TIMES}, zone: Mars/Base",
            "4:84: window 'a': zone: the time zone 'Mars/Base' does not exist on this machine",
        ),
        (
            "name: a, nodes: [n1], from: 2026-12-01T06:00Z, to: 2026-12-01T10:00, zone: UTC",
            "4:38: window 'a': from: '2026-12-01T06:00Z' with an offset from UTC, and the window has the",
        ),
        (
            "name: a, nodes: [n1], from: 2026-12-01T06:00, to: 2026-12-01T06:00",
            "4:60: window 'a': it ends at 2026-12-01T06:00, and begins at 2026-12-01T06:00",
        ),
        (
            f"name: a, nodes: [n1], {TIMES}, every: 36h",
            "4:85: window 'a': every is '36h', and must be a number of days as 1d or 7d",
        ),
        (
            "name: a, nodes: [n1], from: 2026-12-01T06:00, to: 2026-12-02T07:00, every: 1d",
            "4:85: window 'a': it lasts 1d1h, longer than the 1d after which it is repeated",
        ),
        (
            f"name: a, nodes: [n1], {TIMES}, drain: -1h",
            "4:85: window 'a': drain is '-1h', and must be a duration as 24h",
        ),
        (
            f"name: a, nodes: [n1], {TIMES}, for: {{users: ['1 x']}}",
            "4:92: window 'a': '1 x' cannot be the name of a user",
        ),
        (
            f"name: a, nodes: [n1], {TIMES}, for: {{queues: [leaf]}}",
            "4:93: window 'a': 'leaf' cannot be the name of a queue",
        ),
    ],
)
def test_a_window_that_breaks_a_rule_is_refused_with_its_place(row: str, problem: str) -> None:
    (found,) = problems(row)
    assert found.startswith(problem)


@pytest.mark.parametrize(
    "other",
    [
        "name: b, nodes: [n2, n1], from: 2026-12-01T09:59, to: 2026-12-01T11:00",
        "name: b, nodes: [n1], from: 2026-11-30T09:00, to: 2026-11-30T11:00, every: 1d",
        "name: b, nodes: [n1], from: 2026-12-01T10:30, to: 2026-12-01T10:45, zone: Europe/Stockholm",
    ],
)
def test_windows_of_one_node_do_not_overlap(other: str) -> None:
    (problem,) = problems(f"name: a, nodes: [n1], {TIMES}", other)
    assert problem.startswith("5:9: window 'b' overlaps window 'a' on the same nodes at 2026-12-01 ")


def test_windows_by_attributes_overlap_where_one_names_all_of_the_other() -> None:
    (problem,) = problems(
        f"name: a, attributes: {{rack: r1}}, {TIMES}", f"name: b, attributes: {{rack: r1, kind: x}}, {TIMES}"
    )
    assert "overlaps window 'a'" in problem
    load(
        windows(f"name: a, attributes: {{rack: r1}}, {TIMES}", f"name: b, attributes: {{rack: r2}}, {TIMES}")
    )


def test_windows_that_touch_or_have_other_nodes_do_not_overlap() -> None:
    load(
        windows(
            f"name: a, nodes: [n1], {TIMES}, every: 1d",
            "name: b, nodes: [n1], from: 2026-12-01T10:00, to: 2026-12-02T06:00, every: 1d",
            f"name: c, nodes: [n2], {TIMES}",
        )
    )


def test_two_windows_of_one_name_are_refused() -> None:
    row = f"name: a, nodes: [n1], {TIMES}"
    assert problems(row, row) == ["5:16: window 'a': another window of the partition has this name"]


def test_a_new_window_in_the_past_is_refused_and_a_known_one_is_not() -> None:
    """A scheduler that starts again after the maintenance still takes its configuration."""
    config = load(windows(f"name: a, nodes: [n1], {TIMES}", f"name: b, nodes: [n2], {TIMES}, every: 1d"))
    span = config.partitions[0].windows[0].when.span(0)
    assert span is not None
    (problem,) = past_window_problems(config, SchedulerConfig(), span[1])
    assert str(problem) == (
        "queues.yaml:4:9: partitions[0].windows[0]: window 'a' is in the past: it ended at 2026-12-01 10:00 "
        "UTC"
    )
    assert past_window_problems(config, SchedulerConfig(), span[1] - 1) == ()
    assert past_window_problems(config, config, span[1]) == ()
