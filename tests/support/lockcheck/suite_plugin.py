"""A plugin of pytest that writes how each test ended, apart from what lockcheck found in it."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

OUTCOMES_VARIABLE = "SUITE_OUTCOMES"
_ORDER = ("passed", "skipped", "failed")
_OUTCOMES = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with no outcome."""
    config.stash[_OUTCOMES] = {}


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the worst outcome of setup, test and teardown, before the plugin of lockcheck sees the report."""
    report = yield
    del call
    outcomes = item.config.stash[_OUTCOMES]
    worst = max(outcomes.get(item.nodeid, "passed"), report.outcome, key=_ORDER.index)
    outcomes[item.nodeid] = worst
    return report


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note what could not be collected as a test that failed."""
    if report.failed:
        _uncollected.append(report.nodeid)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the outcomes by name."""
    outcomes = config.stash.get(_OUTCOMES, {}) | {f"{name} (collection)": "failed" for name in _uncollected}
    Path(os.environ[OUTCOMES_VARIABLE]).write_text(json.dumps(outcomes), encoding="utf-8")


_uncollected: list[str] = []
