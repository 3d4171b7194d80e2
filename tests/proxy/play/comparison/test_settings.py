"""The settings in which two configurations differ, and configurations between the two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from support.proxy.simulation_builders import written

from licorne.proxy.base.files.input_files import LocatedYaml, read_located_yaml
from licorne.proxy.play.comparison.settings import changed_text, differing_settings, places_in_both


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
