"""Why two runs differ: of whole comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.proxy.compared_days import LIMITS, a_day, compared_with_reasons
from support.proxy.simulation_builders import written

from licorne.proxy.play.comparison.comparison import TwoRuns, comparison_document
from licorne.proxy.play.comparison.comparison_page import comparison_html
from licorne.proxy.play.comparison.why import why_lines

_DAY = """\
nodes: [{prefix: n, resources: {vcore: 4}}]
applications:
  - {name: first, queue: root.a, user: u, tasks: [{count: 4, resources: {vcore: 1}, duration: 30m}]}
  - {name: second, queue: root.b, user: v, tasks: [{count: 4, resources: {vcore: 1}, duration: 10m}]}
  - {name: third, queue: root.a, user: u, submit: 5m, tasks: [{resources: {vcore: 1}, duration: 5m}]}
"""


def _queues(a: str, b: str) -> str:
    """Return a configuration with two queues."""
    queues = f"[{{name: a, {a}}}, {{name: b, {b}}}]"
    return f'partitions: [{{name: default, queues: [{{name: root, submitacl: "*", queues: {queues}}}]}}]\n'


def _compared(folder: Path, a: str, b: str) -> TwoRuns:
    """Compare two configurations of the day with three jobs."""
    day = written(folder / "day.yaml", _DAY)
    return compared_with_reasons(written(folder / "a.yaml", a), written(folder / "b.yaml", b), day)


def _lines(comparison: TwoRuns, folder: Path) -> list[str]:
    assert comparison.why is not None, "the decisions differ"
    return [line.replace(f"{folder}/", "") for line in why_lines(comparison.why)]


def test_a_limit_is_named_with_its_places_and_what_follows(tmp_path: Path) -> None:
    """A day with three jobs: the limit that refuses, the setting, and which job has the room of which."""
    plain = "parent: false"
    comparison = _compared(
        tmp_path,
        _queues(f"{plain}, properties: {{priority.offset: 1}}", f"{plain}"),
        _queues(f"{plain}, properties: {{priority.offset: 1}}, resources: {{max: {{vcore: 1}}}}", plain),
    )

    lines = _lines(comparison, tmp_path)

    assert lines[0] == "why:"
    assert lines[1] == "  B refuses first-1-t1-2: queue root.a has no room"
    assert lines[2].startswith("    max.vcore: asked 1, left 0 of 1 (b.yaml:1:")
    assert lines[2].endswith("not set)")
    assert lines[3] == "1 setting differs, 1 of them makes this decision differ:"
    assert lines[4].startswith("  resources.max.vcore of root.a: not set (a.yaml:1:")
    assert lines[5] == "what follows:"
    assert lines[6].startswith("  first-1 waits in B: second-1 has its room on n-1; queue root.a has no room")


def test_an_order_is_named_with_its_rule(tmp_path: Path) -> None:
    """Two queues that change their places are named with their places and the rule of each run."""
    first, second = "properties: {priority.offset: '1'}", "properties: {priority.offset: '2'}"
    comparison = _compared(tmp_path, _queues(second, first), _queues(first, second))

    lines = _lines(comparison, tmp_path)

    assert lines[1].startswith(
        "  A: root.a goes before root.b in root, place 1 before 2, by the higher priority"
    )
    assert lines[2].startswith(
        "  B: root.b goes before root.a in root, place 1 before 2, by the higher priority"
    )
    assert lines[3] == "2 settings differ, 2 of them make this decision differ:"


def test_a_comparison_with_itself_has_no_reasons(tmp_path: Path) -> None:
    """Where no decision differs there is nothing to say."""
    queues = _queues("parent: false", "parent: false")

    comparison = _compared(tmp_path, queues, queues)

    assert (None, None) == (comparison.difference, comparison.why)
    assert comparison.effects.total.same == comparison.effects.total.jobs == 3


def test_b_and_a_exchanged_exchange_all_effects(tmp_path: Path) -> None:
    """The comparison of B with A is the negation of that of A with B."""
    plain, small = (
        _queues("parent: false", more) for more in ("parent: false", "resources: {max: {vcore: 1}}")
    )
    there, back = _compared(tmp_path, plain, small), _compared(tmp_path, small, plain)

    assert [row.delay_ns for row in there.effects.later] == [
        -(row.delay_ns or 0) for row in back.effects.earlier
    ]
    assert (there.effects.total.later_ns, there.effects.total.earlier_ns) == (
        back.effects.total.earlier_ns,
        back.effects.total.later_ns,
    )
    assert there.why is not None, "the decisions differ"
    assert back.why is not None, "the decisions differ"
    assert [
        (each.job, each.taken_by, each.at_ns) for each in there.why.consequences if each.waits_in == "B"
    ] == [(each.job, each.taken_by, each.at_ns) for each in back.why.consequences if each.waits_in == "A"]


@pytest.mark.parametrize("seed", [0, 1])
def test_one_changed_limit_of_thirty_is_named(seed: int, tmp_path: Path) -> None:
    """Of all settings that differ on a random day, the limit that has an effect is named."""
    day = a_day(tmp_path, seed)

    why = compared_with_reasons(day.a, day.b, day.input).why

    assert why is not None, "a decision differs on this day"
    assert why.needed is not None, "the settings make it differ"
    assert ([day.changed], True) == ([each.name for each in why.needed.changes], why.needed.is_proved)
    assert LIMITS // 3 < len(why.settings)


def test_the_page_and_the_document_say_the_same(tmp_path: Path) -> None:
    """The page has the step, the settings and the consequences of the document, and no script."""
    comparison = _compared(
        tmp_path,
        _queues("parent: false", "parent: false"),
        _queues("parent: false", "resources: {max: {vcore: 1}}"),
    )

    page, document = (
        comparison_html(comparison),
        json.loads(json.dumps(comparison_document(comparison)["why"])),
    )

    assert [each["name"] for each in document["needed"]] == ["resources.max.vcore of root.b"]
    assert "<script" not in page
    assert "resources.max.vcore of root.b" in page
    assert document["consequences"], "some job starts at another time"
    for each in document["consequences"]:
        assert f'<th scope="row">{each["job"]}</th>' in page
