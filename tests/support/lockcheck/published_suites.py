"""The published packages whose own tests `make suites` runs with checked locks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one release of a package, as its source distribution has them."""

    package: str
    release: str
    tests: tuple[str, ...]
    """Files and folders of the source distribution, for pytest."""
    needs: tuple[str, ...] = ()
    """What else is installed, as pip reads it."""
    configuration: str | None = None
    """The file of the source distribution with the package's configuration of pytest."""
    ignored: tuple[str, ...] = ()
    """Files that need services or packages that are not installed."""
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The package with its release."""
        return f"{self.package} {self.release}"


SUITES: Final = (
    Suite(
        "apscheduler", "3.11.0", ("tests",), ("pytz", "anyio", "sqlalchemy", "tornado"), "pyproject.toml",
        options=("-m", "not external_service"),
    ),
    Suite(
        "blinker", "1.9.0", ("tests",), ("pytest-asyncio",), "pyproject.toml",
        options=("-o", "asyncio_default_fixture_loop_scope=function"),
    ),
    Suite("cachetools", "8.0.1", ("tests",)),
    Suite(
        "cheroot", "11.1.2", ("cheroot/test",),
        ("pytest-mock", "requests", "requests-toolbelt", "requests-unixsocket", "jaraco.text", "trustme",
         "pyopenssl", "portend", "pypytools"),
        ignored=("cheroot/test/test_ssl.py",),
    ),
    Suite("diskcache", "5.6.3", ("tests",), ignored=("tests/test_djangocache.py", "tests/test_doctest.py")),
    Suite("dogpile.cache", "1.5.0", ("tests",), ("mako", "msgpack"), "pyproject.toml"),
    Suite("fasteners", "0.20", ("tests",), ("diskcache", "more-itertools")),
    Suite(
        "httpcore", "1.0.9", ("tests",),
        ("trio", "anyio", "pytest-httpbin", "pytest-trio", "h2", "socksio"), "pyproject.toml",
    ),
    Suite("janus", "2.0.0", ("tests",), ("pytest-asyncio",)),
    Suite(
        "joblib", "1.6.0", ("joblib/test/test_parallel.py", "joblib/test/test_memory_async.py",
                            "joblib/test/test_logger.py", "joblib/test/test_config.py"),
        ("threadpoolctl", "pytest-asyncio"), "pyproject.toml",
    ),
    Suite("pebble", "5.2.3", ("test",), options=("-k", "not Process and not process")),
    Suite(
        "portalocker", "4.4.2", ("portalocker_tests",), ("pytest-timeout",), options=("-p", "no:doctest"),
    ),
    Suite("prometheus_client", "0.26.0", ("tests",), ("django", "pytest-benchmark", "aiohttp", "twisted")),
    Suite("schedule", "1.2.2", ("test_schedule.py",), ("pytz",)),
    Suite("tenacity", "9.2.1", ("tests",), ("tornado", "typeguard", "pytest-asyncio"), "pyproject.toml"),
    Suite(
        "tqdm", "4.67.1", ("tests",), ("pytest-asyncio", "pytest-timeout", "numpy"), "pyproject.toml",
        ignored=("tests/tests_perf.py",),
    ),
    Suite("waitress", "3.0.2", ("tests",)),
    Suite(
        "watchdog", "7.1.0", ("tests",), ("pytest-timeout", "flaky", "pyyaml", "eventlet"), "pyproject.toml",
        ignored=("tests/test_isolated.py",),
    ),
)  # fmt: skip
"""All of them use threads; each suite ends within two minutes."""
