"""Why two runs differ: of whole comparisons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.proxy.compared_days import LIMITS, a_day, compared_with_reasons
from support.proxy.simulation_builders import written

from licorne.proxy.base.files.input_files import LocatedYaml, read_located_yaml
from licorne.proxy.play.comparison.comparison import TwoRuns, comparison_document
from licorne.proxy.play.comparison.comparison_page import comparison_html
from licorne.proxy.play.comparison.why import (
    changed_text,
    differing_settings,
    places_in_both,
    smallest_set,
    why_lines,
)

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
    assert lines[6].startswith("  first-1 waits in B: second-1 has its room on n-1; 0/1 nodes are available")


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


class Row(NamedTuple):
    """What A and B have in the queue `a`, and the texts of what differs."""

    a: str
    b: str
    texts: list[str]


CASES: dict[str, Row] = {
    "the same": Row("parent: false", "parent: false", []),
    "the order of keys": Row("parent: false, maxapplications: 3", "maxapplications: 3, parent: false", []),
    "a limit that changes": Row(
        "resources: {max: {vcore: 4}}",
        "resources: {max: {vcore: 2}}",
        ["resources.max.vcore of root.a: 4 (a.yaml:1:74) in A, 2 (b.yaml:1:74) in B"],
    ),
    "a limit of B alone": Row(
        "parent: false",
        "parent: false, resources: {max: {vcore: 2}}",
        ["resources.max.vcore of root.a: not set (a.yaml:1:39) in A, 2 (b.yaml:1:89) in B"],
    ),
    "a limit of a user": Row(
        "limits: [{limit: l, users: [u], maxapplications: 1}]",
        "limits: [{limit: l, users: [u], maxapplications: 2}]",
        ['limits.users ["u"].maxapplications of root.a: 1 (a.yaml:1:98) in A, 2 (b.yaml:1:98) in B'],
    ),
    "a queue of B alone": Row(
        "parent: true",
        "parent: true, queues: [{name: x}]",
        ['queues of root.a: not set (a.yaml:1:39) in A, [{"name": "x"}] (b.yaml:1:71) in B'],
    ),
}


def _files(row: Row, folder: Path) -> tuple[LocatedYaml, LocatedYaml]:
    """Write and read A and B."""
    text = "partitions: [{name: default, queues: [{name: a, %s}, {name: z}]}]"
    files = [written(folder / f"{name}.yaml", text % own) for name, own in (("a", row.a), ("b", row.b))]
    return read_located_yaml(files[0]), read_located_yaml(files[1])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_settings_that_differ_are_named_with_their_places(case: Row, tmp_path: Path) -> None:
    """Each setting that differs is named once, with its value and its place in both files."""
    found = differing_settings(*_files(case, tmp_path))

    assert case.texts == [setting.text().replace(f"{tmp_path}/", "") for setting in found]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_all_settings_make_b_of_a_and_none_leaves_it(case: Row, tmp_path: Path) -> None:
    """A with all settings that differ is the configuration B, and with none it is A."""
    a, b = _files(case, tmp_path)

    changed = [json.loads(changed_text(a, b, settings)) for settings in ((), differing_settings(a, b))]

    assert [a.value, b.value] == changed


def test_a_limit_is_found_in_both_files(tmp_path: Path) -> None:
    """The position of a limit in one file leads to its places in both, whatever its queue's number is."""
    a, b = (
        read_located_yaml(written(tmp_path / name, f"partitions: [{{name: default, queues: [{queues}]}}]"))
        for name, queues in (
            ("a.yaml", "{name: x, maxapplications: 3}, {name: y}"),
            ("b.yaml", "{name: y}, {name: x, maxapplications: 2}"),
        )
    )

    found = places_in_both(b, a)(b.positions["partitions[0].queues[1].maxapplications"])

    assert f"{b.path}:1:77; {a.path}:1:66, 3 there" == found


@given(st.integers(1, 40), st.data())
def test_the_changes_that_are_needed_are_left(count: int, data: st.DataObject) -> None:
    """Where some changes are needed together, they are what is left."""
    changes = list(range(count))
    needed = data.draw(st.sets(st.sampled_from(changes), min_size=1, max_size=4))

    found = smallest_set(changes, needed.issubset, runs_max=10_000)

    assert (tuple(sorted(needed)), True) == (found.changes, found.is_proved)


def test_one_change_of_thirty_takes_few_runs() -> None:
    """One change of thirty is found by halves."""
    found = smallest_set(range(30), lambda changes: 17 in changes, runs_max=60)

    assert ((17,), True) == (found.changes, found.is_proved)
    assert found.runs <= 10


def test_the_bound_of_runs_is_kept_and_said() -> None:
    """At the bound what is left has the effect, and is not said to be the smallest set."""
    asked: list[Sequence[int]] = []

    def has_effect(changes: Sequence[int]) -> bool:
        asked.append(changes)
        return {0, 29} <= set(changes)

    found = smallest_set(range(30), has_effect, runs_max=5)

    assert (5, 5, False) == (len(asked), found.runs, found.is_proved)
    assert {0, 29} <= set(found.changes)
