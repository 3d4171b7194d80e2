"""Without the packages of an extra, what needs them names the extra; all else works."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, sys
from importlib.machinery import PathFinder

hidden = set(sys.argv[1].split(","))
find_spec = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda _, name, *rest: None if name.partition(".")[0] in hidden else find_spec(name, *rest)
)
import licorne

found = {}
for name in licorne.__all__:
    try:
        getattr(licorne, name)
    except ModuleNotFoundError as error:
        found[name] = str(error)
from typer.testing import CliRunner
from licorne.proxy.shell.command_line import application

for command in ("serve", "door", "save 127.0.0.1:1 saved.jsonl", "kubernetes", "top", "fuzz"):
    found[command.partition(" ")[0]] = CliRunner().invoke(application, command).output
print(json.dumps(found))
"""
SERVER = ("grpc", "grpc_health", "grpc_reflection", "starlette", "anyio", "uvicorn", "prometheus_client")
OTHERS = ("httpx", "textual", "cryptography", "msgspec", "urllib3", "ldap3", "ray")


def test_what_needs_an_extra_names_it() -> None:
    """As after `pip install licorne`, by each public name and each command."""
    hidden = ",".join((*SERVER, *OTHERS))
    run = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, hidden], capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)

    extras = {"top": "tui", "kubernetes": "kubernetes"}
    names = {"Door", "RemoteScheduler", "SchedulerCollector", "exposition", "registry_of", "rest_app"}
    assert names | {"serve", "door", "save", "kubernetes", "top", "fuzz"} == {*found}
    for name, text in found.items():
        assert f"pip install 'licorne[{extras.get(name, 'server')}]'" in text
        assert "Traceback" not in text
