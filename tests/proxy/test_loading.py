"""Which packages are loaded before they are needed, by a program that only imports or asks for help."""

from __future__ import annotations

import pytest
from support.programs import run_python

_LOADED = """
import sys
known = set(sys.modules)
{statement}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - known}} - sys.stdlib_module_names
print("loaded:", *sorted(name for name in loaded if not name.startswith("_")))
"""
_HELP = """
sys.argv = ["licorne", {arguments}"--help"]
from licorne.proxy.shell.command_line import main
try:
    main()
except SystemExit:
    pass
"""


def loaded_by(statement: str) -> set[str]:
    """Return the packages beside the standard library's that a fresh interpreter loads for a statement."""
    done = run_python("-c", _LOADED.format(statement=statement))
    assert 0 == done.returncode, done.stderr
    return set(done.stdout.rpartition("loaded: ")[2].split())


def test_importing_licorne_loads_nothing_else() -> None:
    """The scheduler, with protobuf, yaml, pykka and its log, is loaded when it is used."""
    assert loaded_by("import licorne") == {"licorne"}


@pytest.mark.parametrize("arguments", ["", '"validate", ', '"serve", ', '"kubernetes", "explain", '])
def test_help_loads_only_what_draws_it(arguments: str) -> None:
    """No part of the scheduler, no log, and not pydantic, with which typer reads values."""
    drawing = {"annotated_doc", "markdown_it", "mdurl", "pygments", "rich", "shellingham", "typer"}
    loaded = loaded_by(_HELP.format(arguments=arguments))

    assert loaded >= {"licorne", "typer"}
    assert not loaded - drawing - {"click", "licorne"}


@pytest.mark.parametrize(
    ("before", "expected"), [("", "0"), ("logger.enable('licorne')", "1"), ("logger.disable('licorne')", "0")]
)
def test_the_log_is_written_if_the_program_enables_it(before: str, expected: str) -> None:
    """Also before it has loaded a part of the scheduler; otherwise it is not."""
    program = f"""
import licorne
from loguru import logger
written = []
logger.remove()
logger.add(written.append)
{before}
licorne.Scheduler
exec("logger.warning('x')", {{"__name__": "licorne.part", "logger": logger}})
print(len(written))
"""
    assert expected == run_python("-c", program).stdout.strip()
