"""Commands of `licorne` that run in this process, as a test looks at them."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from licorne.proxy.shell.command_line import application


def run(*arguments: str | Path, text: str = "") -> tuple[int, str, str]:
    """Run a command; return its status, its output and what it said on standard error."""
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], input=text)
    return result.exit_code, result.stdout, result.stderr
