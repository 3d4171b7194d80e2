from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from support.proxy.fake_core import FakeCore
from support.proxy.figure_runs import simulated_figures
from support.proxy.simulation_builders import SECOND, a_task, an_application, written

from licorne.proxy.base.files.input_files import InputError
from licorne.proxy.play.simulation.reporting.figures import RunFigures
from licorne.proxy.play.simulation.reporting.report_files import read_figures, to_csv, to_json


def _figures() -> RunFigures:
    return simulated_figures(
        FakeCore(), an_application(a_task("t1", cores=10, duration=2), a_task("t2", cores=10, duration=2))
    )


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Equal in everything, and again the same bytes."""
    figures = _figures()
    path = written(tmp_path / "f.json", to_json(figures))

    assert figures == read_figures(path)
    assert to_json(figures) == to_json(read_figures(path))


def test_the_csv_has_a_row_for_each_value() -> None:
    """The second task waits two seconds and runs for two."""
    rows = list(csv.DictReader(io.StringIO(to_csv(_figures()))))
    waiting = [
        (row["item"], int(row["start_ns"]), row["value"])
        for row in rows
        if (row["figure"], row["queue"]) == ("pending", "root.q")
    ]

    assert [("vcore", at * SECOND, value) for at, value in enumerate(["10", "10", "0", "0"])] == waiting
    assert "2000000000" == next(
        row["value"] for row in rows if (row["figure"], row["queue"]) == ("wait_p99_ns", "root.q")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "is not JSON: ", id="no JSON"),
        pytest.param("[]", "its kind is None, not 'licorne simulation figures'", id="a list"),
        pytest.param('{"format": 2, "workload": "w"}', "its kind is None", id="the document of --json"),
        pytest.param(
            '{"kind": "licorne simulation figures", "format": 9}',
            "has the format 9; this program reads 1",
            id="another format",
        ),
        pytest.param(
            '{"kind": "licorne simulation figures", "format": 1, "workload": 5}',
            "workload: Input should be a valid string, not 5",
            id="a wrong type",
        ),
    ],
)
def test_another_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """The error says the file and what is wrong with it."""
    path = written(tmp_path / "other.json", text)

    with pytest.raises(InputError) as caught:
        read_figures(path)

    assert str(path) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("fairness", [1000], "values, for 4 intervals"),
        ("wait_bounds_ns", [0], "the classes of waits are"),
        ("nodes", -1, "nodes: Input should be greater than or equal to 0, not -1"),
        ("surprise", 1, "surprise: Extra inputs are not permitted"),
        ("workload", "\ud800", "is not a document of figures"),
    ],
)
def test_a_document_that_was_changed_is_refused(
    key: str, value: object, message: str, tmp_path: Path
) -> None:
    """What the page relies on is checked."""
    document = json.loads(to_json(_figures()))
    document[key] = value
    path = written(tmp_path / "other.json", json.dumps(document))

    with pytest.raises(InputError) as caught:
        read_figures(path)

    assert message in str(caught.value)
