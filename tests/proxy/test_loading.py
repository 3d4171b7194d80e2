"""Which packages are loaded before they are needed, by a program that only imports or asks for help."""

from __future__ import annotations

from support.programs import run_python

_LOADED = """
import sys
known = set(sys.modules)
{statement}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - known}} - sys.stdlib_module_names
print("loaded:", *sorted(name for name in loaded if not name.startswith("_")))
"""
_HELP = """
sys.argv = ["licorne", "--help"]
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


def test_importing_licorne_loads_its_log_alone() -> None:
    """The scheduler, with protobuf, yaml and pykka, is loaded when it is used."""
    assert loaded_by("import licorne") == {"licorne", "loguru"}


def test_the_help_of_the_command_loads_nothing_of_the_scheduler() -> None:
    """It loads what draws it, and the log that every import of the package loads."""
    drawing = {"annotated_doc", "markdown_it", "mdurl", "pygments", "rich", "shellingham", "typer"}
    loaded = loaded_by(_HELP)

    assert loaded >= {"licorne", "typer"}
    assert not loaded - drawing - {"click", "licorne", "loguru"}
