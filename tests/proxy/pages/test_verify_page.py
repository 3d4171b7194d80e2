"""The example of docs/verify.md: its commands say what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.proxy.command_runs import run

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs" / "verify.md").read_text()
(COMMANDS,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
CONFIRMED, REFUTED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
OLD, NEW = '"owedBefore":{"memory":30', '"owedBefore":{"memory":20'


def test_the_example_says_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").symlink_to(PROJECT / "tests")
    monkeypatch.chdir(tmp_path)
    replay, verify = (line.split()[1:] for line in COMMANDS.splitlines())

    assert run(*replay)[0] == 0
    assert run(*verify) == (0, CONFIRMED, "")
    (recorded,) = Path("recordings").glob("*/*.jsonl")
    text = recorded.read_text()
    assert OLD in text
    Path("falsified.jsonl").write_text(text.replace(OLD, NEW, 1))
    assert run("verify", "falsified.jsonl") == (1, REFUTED, "")
    assert NEW in PAGE
