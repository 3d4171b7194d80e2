"""Run Pykka's own tests on our runtime: `python tests/actors/pykka_contract.py`.

The tests come from Pykka's source distribution of the installed version, fetched from PyPI into `.cache/`
and never copied into the repository. Those that ask for Pykka's `runtime` fixture apply to any runtime and
get ours; the rest test Pykka's own classes and are left out. This file is both the command and the plugin
that it loads into the inner pytest.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import subprocess
import sys
import tarfile
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from loguru import logger

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.future import PooledFuture

if TYPE_CHECKING:
    from loguru import Message

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "pykka-contract"
TOOLS = CACHE / "tools"
TEST_NEEDS = "pytest-mock>=3.14,<4"
APPLICABLE_MIN = 100
"""Fewer would mean that Pykka's tests have changed shape and that this run proves nothing."""
TIMEOUT_SECONDS = 120


class ContractError(Exception):
    """The tests could not be fetched; says what to do."""


# The command.


def main() -> int:
    """Fetch the tests, run those that apply, and return the exit code."""
    try:
        source = fetched_source(version("pykka"))
        fetch_tools()
    except ContractError as error:
        sys.stderr.write(f"pykka contract: {error}\n")
        return 2
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TOOLS), str(Path(__file__).parent)))}
    # With `-c` the inner run takes Pykka's configuration; else pytest would find ours further up.
    options = ["-q", "-c", "pyproject.toml", "-p", "pykka_contract", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "tests"]
    done = subprocess.run(  # noqa: S603 - our own words only
        command, cwd=source, env=environment, timeout=TIMEOUT_SECONDS, check=False
    )
    return done.returncode


def fetched_source(release: str) -> Path:
    """Return the unpacked source distribution, fetched on the first run."""
    source = CACHE / f"pykka-{release}"
    if not source.is_dir():
        pip("download", "--no-deps", "--no-binary", "pykka", "--dest", str(CACHE), f"pykka=={release}")
        unpacked = CACHE / "unpacked"
        with tarfile.open(CACHE / f"pykka-{release}.tar.gz") as archive:
            archive.extractall(unpacked, filter="data")
        (unpacked / source.name).rename(source)  # whole or not at all
    return source


def fetch_tools() -> None:
    """Install what only Pykka's tests need, beside the environment rather than into it."""
    if not TOOLS.is_dir():
        pip("install", "--no-deps", "--target", str(TOOLS), TEST_NEEDS)


def pip(*arguments: str) -> None:
    """Run pip; explain a failure.

    Raises:
        ContractError: pip failed, most likely because PyPI cannot be reached.
    """
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(  # noqa: S603 - our own words only
        command, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ContractError(
            f"pip {arguments[0]} failed. Pykka's tests come from PyPI; can it be reached?\n{done.stderr}"
        )


# The plugin of the inner pytest.

_dispatcher = pytest.StashKey[Dispatcher]()
_counts = pytest.StashKey[tuple[int, int]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make one dispatcher, and let Pykka's tests find our log where they look for Pykka's."""
    config.stash[_dispatcher] = Dispatcher(workers=4, name="contract")
    logger.remove()
    logger.enable("licorne")
    logger.add(_to_pykka_log, level=0)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests that apply to any runtime."""
    chosen = [item for item in items if "runtime" in getattr(item, "fixturenames", ())]
    config.stash[_counts] = (len(chosen), len(items))
    items[:] = chosen
    if len(chosen) < APPLICABLE_MIN:
        raise pytest.UsageError(f"only {len(chosen)} of {len(items)} tests use Pykka's `runtime` fixture")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Give the tests our classes where Pykka's `runtime` fixture would give its own."""
    value = yield
    if fixturedef.argname == "runtime":
        value = _our_runtime(request.config, value)
        assert fixturedef.cached_result is not None
        fixturedef.cached_result = (value, fixturedef.cached_result[1], None)
    return value


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report how many tests applied."""
    chosen, found = config.stash.get(_counts, (0, 0))
    release = version("pykka")
    terminalreporter.write_line(f"pykka {release}: {chosen} of {found} tests apply to licorne.actors")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the dispatcher."""
    config.stash[_dispatcher].shutdown()


def _our_runtime(config: pytest.Config, pykkas: Any) -> object:
    class ContractActor(PooledActor):
        bound_dispatcher = config.stash[_dispatcher]
        in_pykka_registry = True

    return dataclasses.replace(pykkas, name="pooled", actor_class=ContractActor, future_class=PooledFuture)


def _to_pykka_log(message: Message) -> None:
    record = message.record
    raised = record["exception"]
    error = None if raised is None else raised.value
    logging.getLogger("pykka").log(record["level"].no, record["message"], exc_info=error)


if __name__ == "__main__":
    sys.exit(main())
