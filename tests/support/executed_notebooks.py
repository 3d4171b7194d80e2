"""Executes notebooks: `python tests/support/executed_notebooks.py FILE...`, in an environment with nbclient.

A cell that raises fails, and so does one that writes to standard error: a policy that fails is logged there, and
the run goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat  # type: ignore[import-not-found] # of the environment of notebooks
from nbclient import NotebookClient  # type: ignore[import-not-found] # likewise


def _executed(path: Path) -> list[str]:
    """Execute a notebook in its folder; return what its cells have written to standard error."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output.text for output in outputs if output.get("name") == "stderr"]


def main() -> int:
    """Execute all notebooks that the command line names."""
    status = 0
    for name in sys.argv[1:]:
        errors = _executed(Path(name))
        sys.stdout.write(f"{name}: {'failed' if errors else 'executed'}\n{''.join(errors)}")
        status |= bool(errors)
    return status


if __name__ == "__main__":
    sys.exit(main())
