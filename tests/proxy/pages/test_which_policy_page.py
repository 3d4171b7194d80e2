"""The examples of docs/which-policy.md: the commands print the lines that the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from support.proxy.page_examples import DOCS
from typer.testing import CliRunner

from licorne.proxy.shell.command_line import application

PAGE: Final = (DOCS / "which-policy.md").read_text(encoding="utf-8")
EXAMPLES: Final = DOCS.parent / "examples" / "policies"
_BLOCK: Final = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND: Final = re.compile(r"^\$ licorne (.+)\n((?:[^$].*\n)+)", re.MULTILINE)
SHOWN: Final = dict(pair for block in _BLOCK.findall(PAGE) for pair in _COMMAND.findall(block))
_CONFIGURATION: Final = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_prints_the_lines_that_the_page_shows(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line, in the order in which they stand there."""
    monkeypatch.chdir(EXAMPLES)
    shown = SHOWN[command].splitlines()

    printed = CliRunner().invoke(application, shlex.split(command)).stdout.splitlines()

    assert shown == [line for line in printed if line in shown][: len(shown)]


def test_every_policy_of_the_examples_is_on_the_page() -> None:
    """A configuration that no command uses would not be tested."""
    used = {word for command in SHOWN for word in shlex.split(command) if word.endswith(".yaml")}

    assert {path.name for path in EXAMPLES.iterdir()} == used


def test_the_lines_of_a_policy_are_those_of_its_example() -> None:
    """What a reader copies is what ran: each property of the page stands in a file of the folder."""
    files = "\n".join(path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.yaml")))
    properties = re.findall(r"\{([a-z]+\.[^{}]+)\}", "".join(_CONFIGURATION.findall(PAGE)))

    assert [] == [one for one in properties if one not in files]


@pytest.mark.parametrize("picture", re.findall(r"\]\((pictures/policy-[a-z-]+\.svg)\)", PAGE))
def test_a_picture_is_there_and_small(picture: str) -> None:
    """It is drawn by docs/pictures/draw_policies.py."""
    assert 1000 < len(Path(DOCS / picture).read_bytes()) < 30_000
