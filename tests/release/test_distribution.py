"""What is released: the source distribution, the wheel, and what runs where the wheel alone is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Final

import pytest
from support.builds import NO_SOURCES, run_hook
from support.programs import outcome_of, run_python
from support.sources import ROOMS, ROOT
from support.waiting import PROGRAM_SECONDS

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

_IMPORT_ALL: Final = """
import importlib, json, pkgutil, licorne
names = [found.name for found in pkgutil.walk_packages(licorne.__path__, "licorne.")]
files = [importlib.import_module(name).__file__ for name in names]
print(json.dumps({"root": licorne.__file__, "names": names, "files": files}))
"""

_SIMULATE: Final = f"""
import contextlib, sys
from licorne.proxy.shell.command_line import main
sys.argv = ["licorne", "simulate", {str(ROOT / "examples" / "daily.yaml")!r}, "--json"]
with contextlib.suppress(SystemExit):
    main()
print(sys.modules[main.__module__].__file__, end="")
"""


def module_names() -> set[str]:
    """Return the modules and packages of all rooms, as they are imported."""
    files = [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    names = [".".join(["licorne", *path.with_suffix("").parts]) for path in files]
    return {name.removesuffix(".__init__") for name in names}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution and from that the wheel, from a copy of the checkout; return where.

    By the two hooks that a frontend calls. `python -m build` starts five further interpreters for what a
    build needs, which is installed here.
    """
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, folder / "checkout", ignore=NO_SOURCES)
    run_hook("build_sdist", folder / "checkout", folder / "dist")
    (sources,) = (folder / "dist").glob("*.tar.gz")
    shutil.unpack_archive(sources, folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    run_hook("build_wheel", unpacked, folder / "dist")
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """Return the wheel."""
    (path,) = built.glob("*.whl")
    return path


def metadata_of(wheel: Path) -> Message:
    """Return the metadata of a wheel, whose body is the description."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel without what it needs, which is there, and return the folder that holds it."""
    target = tmp_path_factory.mktemp("installed")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run(  # noqa: S603 - our own wheel
        [*install, "--no-index", "--target", str(target), str(wheel)],
        timeout=PROGRAM_SECONDS,
        check=True,
    )
    return target


@pytest.fixture(scope="module")
def sources(built: Path) -> set[str]:
    """Return the files of the source distribution, without its own folder."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def test_the_source_distribution_holds_what_a_reader_needs(sources: set[str]) -> None:
    """The package, the pages with their pictures, the examples, the changes and the licence."""
    found = (path for room in ("deploy", "docs", "examples") for path in (ROOT / room).rglob("*"))
    files = [path for path in found if path.is_file() and path.suffix != ".pyc"]
    modules = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    wanted = {str(path.relative_to(ROOT)) for path in (*files, *modules)}

    assert set() == wanted - sources
    assert {"CHANGELOG.md", "LICENSE", "README.md", "__init__.py", "__main__.py", "py.typed"} <= sources


def test_the_source_distribution_holds_nothing_else(sources: set[str]) -> None:
    """No tests, not even those that setuptools takes along by their names, and nothing compiled."""
    rooms = {name.partition("/")[0] for name in sources if "/" in name}

    assert {"deploy", "docs", "examples", "licorne.egg-info", *ROOMS} == rooms
    assert [] == [name for name in sources if name.endswith((".pyc", ".pyo", ".lct", ".log"))]


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel: Path) -> None:
    """A top-level `model` or `proxy` would overwrite other people's packages."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    modules = {
        name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for name in names
        if name.endswith(".py")
    }

    (information,) = [top for top in tops if top.endswith(".dist-info")]
    assert {"licorne", information} == tops
    assert module_names() | {"licorne", "licorne.__main__"} == modules


def test_the_wheel_holds_what_is_no_module(wheel: Path) -> None:
    """The mark of a typed package, and the interface for those who generate their own messages."""
    names = zipfile.ZipFile(wheel).namelist()

    others = sorted(name for name in names if name.startswith("licorne/") and not name.endswith(".py"))
    assert "licorne/py.typed" in others
    assert "licorne/proxy/si/si.proto" in others
    assert "licorne/proxy/views/rest/openapi.yaml" in others
    assert "licorne/lockcheck/reports/report.schema.json" in others


def test_an_index_of_packages_shows_a_readme_whose_links_lead_somewhere(wheel: Path) -> None:
    """Each is absolute, and each into the repository names a file of the checkout."""
    metadata = metadata_of(wheel)
    source = PROJECT["urls"]["Source"]
    links = re.findall(r"\]\(([^)\s]+)", str(metadata.get_payload()))
    inside = re.compile(re.escape(source) + r"/(?:blob|raw)/v[\d.]+/([^#]+)")
    paths = [found[1] for link in links if (found := inside.fullmatch(link.partition("#")[0]))]

    assert "text/markdown" == metadata["Description-Content-Type"]
    assert [] == [link for link in links if not link.startswith("https://")]
    assert [] == [path for path in paths if not (ROOT / path).exists()]
    assert len(paths) > 20
    assert {f"{name}, {url}" for name, url in PROJECT["urls"].items()} == set(
        metadata.get_all("Project-URL", ())
    )


def test_the_package_names_the_versions_of_python_that_ci_tests(wheel: Path) -> None:
    """And no other one: what is not tested is not promised."""
    start = "Programming Language :: Python :: 3."
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    tested = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1])  # type: ignore[index]
    named = [
        "3." + each.removeprefix(start)
        for each in metadata_of(wheel).get_all("Classifier", ())
        if each.startswith(start)
    ]

    assert tested == named


def test_what_measures_the_project_itself_is_not_released(wheel: Path, sources: set[str]) -> None:
    """It lies below `tests/`."""
    released = [name for name in (*zipfile.ZipFile(wheel).namelist(), *sources) if "/bench/" in name]

    assert [] == released


def test_the_wheel_installs_and_every_module_of_it_imports(installed: Path, tmp_path: Path) -> None:
    """From the folder it was installed to, with nothing of the checkout."""
    output, _ = outcome_of(_IMPORT_ALL, tmp_path, {"PYTHONPATH": str(installed)})
    found = json.loads(output)
    files = [found["root"], *found["files"]]

    assert module_names() | {"licorne.__main__"} == set(found["names"])
    assert [] == [file for file in files if not Path(file).is_relative_to(installed)]


def test_the_installed_wheel_simulates_a_day(installed: Path, tmp_path: Path) -> None:
    """With its own modules alone, and without what only the measures of the project need."""
    (installed / "sortedcontainers.py").write_text("raise ImportError(__name__)\n")
    output, _ = outcome_of(_SIMULATE, tmp_path, {"PYTHONPATH": str(installed)})
    said, _, place = output.rpartition("\n")
    report = json.loads(said)

    assert Path(place).is_relative_to(installed)
    assert ("a day in a small cluster", "direct") == (report["workload"], report["engine"])
    assert report["decisions"] > 0


@pytest.mark.parametrize("command", [["bin/licorne"], ["-m", "licorne"], ["-m", "licorne.lockcheck"]])
def test_the_commands_of_the_installed_wheel_run(command: list[str], installed: Path, tmp_path: Path) -> None:
    """As a script, and as modules."""
    start = [str(installed / command[0])] if len(command) == 1 else command
    ran = run_python(
        *start, "--help", folder=tmp_path, environment={**os.environ, "PYTHONPATH": str(installed)}
    )

    assert (0, "") == (ran.returncode, ran.stderr)
    assert "sage: " in ran.stdout
