"""The environments of `make suites`: the tests of a published package, the package, and lockcheck.

Everything is in `.cache/suites`, and is fetched by pip: the tests come from the source distribution. An
environment is made once; lockcheck is installed anew in each run, without anything that it does not need.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from support.lockcheck.published_suites import Suite

ROOT: Final = Path(__file__).resolve().parents[3]
CACHE: Final = ROOT / ".cache" / "suites"
PYTEST: Final = "pytest>=8.3,<10"


class SuiteError(Exception):
    """A suite could not be fetched or run; says why."""


def lockcheck_wheel() -> Path:
    """Build Licorne as it is here, and return the wheel."""
    wheels = CACHE / "wheels"
    for old in wheels.glob("licorne-*.whl"):
        old.unlink()
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
    (wheel,) = wheels.glob("licorne-*.whl")
    return wheel


def prepared(suite: Suite, wheel: Path) -> tuple[Path, Path]:
    """Return the interpreter and the folder with the tests of a suite, made where they are missing.

    Raises:
        SuiteError: pip failed, or the source distribution has another name than its release.
    """
    source = _source(suite)
    environment = CACHE / "environments" / f"{suite.package}-{suite.release}"
    interpreter = environment / "bin" / "python"
    if not (environment / "ready").exists():
        _run(sys.executable, "-m", "venv", "--clear", str(environment))
        wanted = (PYTEST, f"{suite.package}=={suite.release}", *suite.needs)
        _run(str(interpreter), "-m", "pip", "install", "--quiet", *wanted)
        (environment / "ready").touch()
    again = ("--no-deps", "--force-reinstall")
    _run(str(interpreter), "-m", "pip", "install", "--quiet", *again, str(wheel))
    return interpreter, source


def _source(suite: Suite) -> Path:
    source = CACHE / "sources" / f"{suite.package}-{suite.release}"
    if source.is_dir():
        return source
    fetched = CACHE / "archives" / source.name
    _run(
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", suite.package,
        "--dest", str(fetched), f"{suite.package}=={suite.release}",
    )  # fmt: skip
    (archive,) = fetched.glob("*.tar.gz")
    unpacked = fetched / "unpacked"
    with tarfile.open(archive) as opened:
        opened.extractall(unpacked, filter="data")
    (inner,) = unpacked.iterdir()
    source.parent.mkdir(parents=True, exist_ok=True)
    inner.rename(source)  # whole or not at all
    return source


def _run(*command: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own words only
        command, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SuiteError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
