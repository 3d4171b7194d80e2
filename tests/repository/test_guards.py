"""The shape of the package: what the checkout holds, and what an import does."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
from support.programs import outcome_of
from support.sources import ROOMS, ROOT, modules_of, nodes_of
from support.waiting import PROGRAM_SECONDS
from typer.main import get_group

from licorne.proxy.shell.command_line import application

SCHEDULER: Final = (
    "google.protobuf",
    "licorne.actors",
    "licorne.model.partition",
    "licorne.proxy.core.scheduler.scheduler",
)

_LOOK_AROUND: Final = """
import json, logging, threading
from loguru import logger
def look():
    handlers = [repr(handler) for handler in logging.getLogger().handlers]
    return [threading.active_count(), handlers, logging.getLogger().level, sorted(logger._core.handlers)]
before = look()
import licorne
print(json.dumps({"before": before, "after": look()}))
"""

_ALONE: Final = """
import json, sys
import licorne.lockcheck, licorne.lockcheck.sessions.session
rooms = ("licorne.model", "licorne.actors", "licorne.proxy", "google.protobuf", "pykka", "pydantic")
print(json.dumps(sorted(name for name in sys.modules if name.startswith(rooms))))
"""

_COMMANDS: Final = """
import contextlib, sys
from licorne.proxy.shell.command_line import main
for arguments in {commands!r}:
    sys.argv = ["licorne", *arguments]
    with contextlib.suppress(SystemExit):
        main()
print("loaded:", *(name for name in {heavy!r} if name in sys.modules))
"""

_FACADE: Final = """
import json, licorne
try:
    licorne.Schedular
except AttributeError as error:
    said = str(error)
print(json.dumps([licorne.Scheduler.__name__, all(name in dir(licorne) for name in licorne.__all__), said]))
"""

_FAIL: Final = """
from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si
class Failing(ResourceManager):
    def update_node(self, response):
        raise ValueError("on purpose")
with Scheduler(engine="direct") as scheduler:
    scheduler.register("rm", Failing())
    request = si.NodeRequest(rmID="rm")
    request.nodes.add(nodeID="n1", action=si.NodeInfo.CREATE)
    scheduler.update_node(request)
    request.nodes[0].nodeID = "n2"
    scheduler.update_node(request)
    print(scheduler.deliver())
"""


# -------------------------------------------------------------------------------------- the checkout


def test_the_root_holds_no_module_but_the_facade_the_command_and_the_build() -> None:
    """A module beside the rooms would be a room of its own that no rule speaks of."""
    assert ["__init__.py", "__main__.py", "setup.py"] == sorted(path.name for path in ROOT.glob("*.py"))


def test_the_packages_are_the_folders_that_hold_modules() -> None:
    """They are listed by hand, and a folder that was forgotten would be missing in the wheel alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {path.parent.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    expected = sorted(["licorne", *(".".join(["licorne", *folder.parts]) for folder in folders)])

    assert expected == project["tool"]["setuptools"]["packages"]


def test_every_folder_with_modules_is_a_package_by_its_own_file() -> None:
    """A folder without `__init__.py` would be a namespace, which anybody may extend."""
    folders = {path.parent for room in ROOMS for path in (ROOT / room).rglob("*.py")}

    assert [] == [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()]


def test_the_facade_imports_by_full_name() -> None:
    """A checkout may have any name: a relative import there would find a package of that name."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))

    assert [] == [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def test_only_the_face_of_a_package_lists_its_names() -> None:
    """Elsewhere a name is public by having no underscore, and is imported from the module that defines it."""
    files = [path for room in (*ROOMS, "tests") for path in (ROOT / room).rglob("*.py")]
    lists = [
        path for path in files if re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]

    assert [] == sorted(str(path.relative_to(ROOT)) for path in lists if path.name != "__init__.py")


def test_no_name_of_a_class_stands_twice() -> None:
    """One name, one class: a reader who looks for a name finds what is meant."""
    places: dict[str, list[str]] = {}
    for path in (path for room in ROOMS for path in modules_of(room)):
        for node in nodes_of(path).of(ast.ClassDef):
            places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")

    assert {} == {name: where for name, where in places.items() if len(where) > 1}


@pytest.mark.parametrize("target", ["bench", "corpus", "mutants", "oracle", "proto", "pykka-contract"])
def test_what_a_target_of_the_makefile_runs_is_there(target: str) -> None:
    """The longer targets run seldom: one that names a file that has moved would be found out late."""
    ran = subprocess.run(  # noqa: S603 - prints the commands, runs none
        ["make", "--dry-run", "--always-make", target],  # noqa: S607 - as everybody runs it
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=True,
    )
    modules = re.findall(r"python -m (support\.\S+|licorne\.\S+)", ran.stdout)
    files = re.findall(r"python (tests/\S+\.py)", ran.stdout)

    assert modules + files
    assert [] == [module for module in modules if find_spec(module) is None]
    assert [] == [file for file in files if not (ROOT / file).is_file()]


# ---------------------------------------------------------------------------------------- the import


def test_an_import_starts_no_thread_and_configures_no_logging(tmp_path: Path) -> None:
    """A program that embeds the scheduler has a logging of its own."""
    output, errors = outcome_of(_LOOK_AROUND, tmp_path)
    found = json.loads(output)

    assert found["before"] == found["after"]
    assert errors == ""


def test_the_log_is_silent_by_default_but_for_failing_callbacks(tmp_path: Path) -> None:
    """A program that did not ask sees on its error output that a callback raises, with the place."""
    output, errors = outcome_of(_FAIL, tmp_path)

    assert "2\n" == output
    assert 1 == errors.count("update_node of resource manager 'rm' raised ValueError: on purpose")
    assert 1 == errors.count("in update_node")


def test_the_lock_checker_loads_nothing_of_the_scheduler(tmp_path: Path) -> None:
    """It is useful alone: a program that schedules nothing should not pay for a scheduler."""
    output, _ = outcome_of(_ALONE, tmp_path)

    assert [] == json.loads(output)


def test_help_loads_nothing_of_the_scheduler(tmp_path: Path) -> None:
    """Who asks what there is should not wait for it, whichever command they ask about."""
    commands = [["--help"], *([name, "--help"] for name in get_group(application).commands)]
    heavy = [*SCHEDULER, "licorne.model.configuration.reader", "yaml"]
    output, _ = outcome_of(_COMMANDS.format(commands=commands, heavy=heavy), tmp_path)

    assert len(commands) == output.lower().count("usage:")
    assert output.endswith("\nloaded:\n")


def test_a_configuration_is_checked_without_a_scheduler(tmp_path: Path) -> None:
    """By what reads configurations alone."""
    (tmp_path / "queues.yaml").write_text(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"
    )
    code = _COMMANDS.format(commands=[["validate", "queues.yaml"]], heavy=SCHEDULER)

    assert ("queues.yaml: valid\nloaded:\n", "") == outcome_of(code, tmp_path)


def test_every_name_of_the_facade_is_there(tmp_path: Path) -> None:
    """They are loaded when they are used, and listed before."""
    output, _ = outcome_of(_FACADE, tmp_path)

    assert ["Scheduler", True, "module 'licorne' has no attribute 'Schedular'"] == json.loads(output)


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    """It stands in one place, and what is installed says the same."""
    code = "import importlib.metadata as m, licorne; print(m.version('licorne') == licorne.__version__)"

    assert ("True\n", "") == outcome_of(code, tmp_path)
