"""Policies that are named on a command line: module, class and arguments, or an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from licorne import LicorneError
from licorne.proxy.base.files.plugins import given_policies

MODULE = """
class Shortest:
    def __init__(self, ageing=0.1):
        self.ageing = ageing

    def application_key(self, application):
        return 1

NOTHING = 5
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of policies, which is the current one."""
    (tmp_path / "policies_of_a_test.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_policies_of_a_test.py").write_text("import json\n\nraise ValueError('no licence')\n")
    (tmp_path / "unreadable_policies_of_a_test.py").write_text("class:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.endswith("policies_of_a_test")]:
        del sys.modules[name]


def test_a_class_is_found_in_the_current_folder() -> None:
    """With its arguments, if there are any."""
    given = given_policies(
        ["sjf=policies_of_a_test:Shortest", "aged=policies_of_a_test:Shortest(ageing=0.5)"]
    )

    assert sorted(given) == ["aged", "sjf"]
    assert getattr(given["sjf"](), "ageing", None) == 0.1
    assert getattr(given["aged"](), "ageing", None) == 0.5


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("sjf", "expected NAME=module:Class, or NAME=module:Class(argument=value)"),
        ("=policies_of_a_test:Shortest", "expected NAME=module:Class"),
        ("sjf=policies_of_a_test", "expected NAME=module:Class"),
        ("sjf=policies_of_a_test:Shortest(", "expected NAME=module:Class"),
        ("sjf=policies_of_a_test:Shortest(1)", "expected NAME=module:Class"),
        ("sjf=policies_of_a_test:Shortest(ageing=open('x'))", "expected NAME=module:Class"),
        ("sjf=policies_of_a_test:Shortests", "has no attribute 'Shortests'"),
        ("sjf=policies_of_a_test:NOTHING", "expected a class or a function, got 5"),
        ("sjf=no_policies_of_a_test:Shortest", "No module named 'no_policies_of_a_test'"),
        ("sjf=broken_policies_of_a_test:Shortest", "ValueError: no licence"),
        ("sjf=unreadable_policies_of_a_test:Shortest", "SyntaxError"),
    ],
)
def test_what_cannot_be_given_is_refused(option: str, message: str) -> None:
    with pytest.raises(LicorneError) as refused:
        given_policies([option])

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("module", "line"), [("broken_policies_of_a_test", 3), ("unreadable_policies_of_a_test", 1)]
)
def test_a_module_that_fails_is_named_with_its_line(module: str, line: int, folder: Path) -> None:
    with pytest.raises(LicorneError) as refused:
        given_policies([f"sjf={module}:Shortest"])

    assert f"({folder / module}.py:{line})" in str(refused.value)


def test_a_name_is_given_once() -> None:
    with pytest.raises(LicorneError, match="given twice"):
        given_policies(["sjf=policies_of_a_test:Shortest", "sjf=policies_of_a_test:Shortest"])


def test_a_package_has_entry_points() -> None:
    """Or is refused: it is not installed, or has none."""
    with pytest.raises(LicorneError, match="no such distribution is installed"):
        given_policies([], "no-policies-of-a-test")
    with pytest.raises(LicorneError, match="no entry points"):
        given_policies([], "pytest")
