"""The pytest plugin: options, which load the rest (`pytest_runs`) only if locks are checked.

    pytest --lockcheck=full

A session for the whole run is around those of the tests, so that what tests do at import is observed too. The
declared order comes from the marker of a test, class or module, `@pytest.mark.lockcheck(order=ORDER)`, else
from `--lockcheck-order`; `off=True` leaves a test unchecked.
"""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Final

import pytest

from .findings.terms import ADOPTED_HELP, REPORT_FORMS, WITNESSES

if TYPE_CHECKING:
    from .sessions.session import Session

_RUNS: Final = "lockcheck runs"
"""The name of the plugin that checks."""
_LEVELS: Final = ("off", "order", "full")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("lockcheck", "the order of locks")
    group.addoption(
        "--lockcheck", choices=_LEVELS, default=_level_of_environment(), help="how much is checked"
    )
    group.addoption(
        "--lockcheck-witness", metavar="DIR", default=WITNESSES,
        help=f"where the files go by which a deadlock is replayed that happened ({WITNESSES})",
    )  # fmt: skip
    group.addoption("--lockcheck-adopt", metavar="WHOSE", help=ADOPTED_HELP)
    group.addoption(
        "--lockcheck-order", metavar="ORDER", help='the declared order: "a < b < c", or module:NAME'
    )
    group.addoption(
        "--lockcheck-fail-on",
        metavar="RUNGS",
        help="the rung from which on a finding fails its test (R2); a broken declaration (R0) always does, "
        "a blocking call under a lock if RB is named too: R2,RB",
    )
    group.addoption(
        "--lockcheck-blocking", action="append", default=[], metavar="CLASS=KINDS",
        help="kinds of blocking calls that are allowed while a lock of a class is held: archive=file,sleep",
    )  # fmt: skip
    parser.addini("lockcheck_blocking", "as --lockcheck-blocking, a rule a line", "linelist")
    parser.addini("lockcheck_fail_on", "as --lockcheck-fail-on")
    group.addoption(
        "--lockcheck-baseline", metavar="FILE", help="accepted findings (.toml), with reasons and last days"
    )
    for name, described in REPORT_FORMS.items():
        group.addoption(
            f"--lockcheck-{name}", metavar="FILE", help=f"write a report as {described}; - for the output"
        )


def _level_of_environment() -> str:
    level = os.environ.get("LOCKCHECK", "").strip().lower()
    return level if level in _LEVELS else "off"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Open the session of the run, before anything of the program is imported: contracts are made then."""
    _begin(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the run; if a `conftest.py` has loaded the plugin, the session is opened only now."""
    config.addinivalue_line(
        "markers", "lockcheck(order=None, off=False): how the locks of a test are checked"
    )
    _begin(config, config.option)


def _begin(config: pytest.Config, options: Namespace) -> None:
    if options.lockcheck != "off" and not config.pluginmanager.has_plugin(_RUNS):
        from . import pytest_runs  # noqa: PLC0415 - most runs check no locks

        pytest_runs.open_run(config, options)
        config.pluginmanager.register(pytest_runs, _RUNS)


@pytest.fixture
def lockcheck(request: pytest.FixtureRequest) -> Session:
    """Return the session of the test, which has what was found."""
    runs = request.config.pluginmanager.get_plugin(_RUNS)
    opened: Session | None = runs.session_of(request.node) if runs is not None else None
    if opened is None:
        pytest.skip("nothing is checked: pytest --lockcheck=order or full")
    return opened
