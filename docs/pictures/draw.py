"""Draw the pictures of the README: run the commands that they show. Run by `make pictures`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
LICORNE: Final = Path(sys.executable).with_name("licorne")
COLUMNS: Final = 100
_FONT_FROM_THE_NET: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def draw_simulation() -> None:
    """Draw what `licorne simulate` prints at a terminal."""
    command = f"stty cols {COLUMNS}; '{LICORNE}' simulate examples/daily.yaml 2>/dev/null"
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    ran = subprocess.run(  # noqa: S603
        ["script", "--quiet", "--return", "--command", command, os.devnull],  # noqa: S607
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere)
        console.print(Text.from_ansi(ran.stdout.strip()))
        drawn = console.export_svg(title="licorne simulate examples/daily.yaml", theme=MONOKAI)
    HERE.joinpath("simulation.svg").write_text(_FONT_FROM_THE_NET.sub("", drawn), encoding="utf-8")


def draw_lockcheck() -> None:
    """Draw the page that `licorne lockcheck run --html` writes about the program of the README."""
    readme = ROOT.joinpath("README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(from licorne\.lockcheck.*?)^```", readme, re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bank.py").write_text(program, encoding="utf-8")
        check = [LICORNE, "lockcheck", "run", "--html", "bank.html", "bank.py"]
        subprocess.run(check, cwd=folder, check=False, stderr=subprocess.DEVNULL)  # noqa: S603 - it finds something
        picture = HERE / "lockcheck.png"
        shot = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--window-size=1060,650",
            f"--screenshot={picture}",
        ]
        subprocess.run([*shot, "bank.html"], cwd=folder, check=True, stderr=subprocess.DEVNULL)  # noqa: S603


if __name__ == "__main__":
    draw_simulation()
    draw_lockcheck()
