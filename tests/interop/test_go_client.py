"""Resource managers in Go, on Go's own gRPC, use a server in another process (`tests/interop/go`)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from support.proxy.go_programs import OLDER_PROTO, build, has_go
from support.proxy.processes import serving

from licorne.proxy.si import si_pb2

pytestmark = pytest.mark.timeout(900)  # The first time, Go loads and compiles gRPC.

QUEUES: Final = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: %s}]}
"""
BOTH: Final = {name: {"nodes": 100, "placements": 1000, "releases": 1000} for name in ("go-1", "go-2")}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the programs, and return the folder in which they are."""
    if not has_go() and "CI" not in os.environ:
        pytest.skip("Go is not installed: https://go.dev/doc/install")
    assert has_go(), "Go is not installed, and in CI this is no reason to skip a test"
    return build(tmp_path_factory.mktemp("go"))


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Run a server whose configuration has the leaf queue `root.server`, and return its address."""
    file = tmp_path / "server.yaml"
    file.write_text(QUEUES % "server", encoding="utf-8")
    with serving("--config", str(file)) as server:
        yield server.address


def ran(program: Path, *arguments: str) -> tuple[int, Any, str]:
    """Run a program; return its status, its summary if it has one, and its errors."""
    ended = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return ended.returncode, json.loads(ended.stdout or "null"), ended.stderr


def test_resource_managers_in_go_run_on_the_configuration_of_the_server(programs: Path, address: str) -> None:
    """They check every answer: nothing is missing, nothing comes twice."""
    outcome = ran(programs / "current", "-address", address, "-queue", "root.server")

    assert (0, BOTH, "") == outcome


def test_resource_managers_in_go_run_on_the_configuration_that_they_send(
    programs: Path, address: str, tmp_path: Path
) -> None:
    """It has another queue than that of the server."""
    file = tmp_path / "sent.yaml"
    file.write_text(QUEUES % "sent", encoding="utf-8")
    arguments = ("-address", address, "-queues", str(file), "-queue", "root.sent")

    assert (0, BOTH, "") == ran(programs / "current", *arguments)


def test_a_resource_manager_of_the_older_generation_is_answered_in_it(programs: Path, address: str) -> None:
    """20 asks for 60 allocations; each has a UUID, by which it is released."""
    outcome = ran(programs / "older", "-address", address, "-queue", "root.server")

    assert (0, {"placements": 60, "releases": 60}, "") == outcome


def test_both_generations_are_served_at_once(programs: Path, address: str) -> None:
    """Each resource manager is answered in its own."""
    arguments = ("-address", address, "-queue", "root.server")
    with subprocess.Popen([programs / "older", *arguments], stdout=subprocess.PIPE, text=True) as older:  # noqa: S603 - ours
        outcome = ran(programs / "current", *arguments)
        said, _ = older.communicate()

    assert (0, BOTH, "") == outcome
    assert (0, {"placements": 60, "releases": 60}) == (older.returncode, json.loads(said))


@pytest.mark.parametrize("program", ["current", "older"])
def test_a_program_ends_with_an_error_when_an_answer_is_wrong(
    programs: Path, address: str, program: str
) -> None:
    """Else the tests above would show nothing."""
    status, summary, errors = ran(programs / program, "-address", address, "-queue", "root.unknown")

    assert (1, None) == (status, summary)
    assert re.search(r"application app(-\d)? was rejected: \S", errors)


# ---------------------------------------------------------------------------------- the older messages


def fields(message: DescriptorProto, start: str = "") -> Iterator[tuple[str, int, int, int, str]]:
    """Yield name, number, type and label of each field of a message, and of those in it."""
    name = f"{start}{message.name}"
    for field in message.field:
        yield f"{name}.{field.name}", field.number, field.type, field.label, field.type_name
    for inner in message.nested_type:
        yield from fields(inner, f"{name}.")


def test_a_field_of_the_older_generation_is_the_same_in_ours(tmp_path: Path) -> None:
    """What the program of that generation is built from is a part of what the scheduler reads."""
    compiled = tmp_path / "older.bin"
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={OLDER_PROTO.parent}"]
    subprocess.run([*protoc, OLDER_PROTO.name, f"--descriptor_set_out={compiled}"], check=True)  # noqa: S603 - ours
    (older,) = FileDescriptorSet.FromString(compiled.read_bytes()).file
    ours = FileDescriptorProto()
    si_pb2.DESCRIPTOR.CopyToProto(ours)
    known = {field for message in ours.message_type for field in fields(message)}
    needed = [field for message in older.message_type for field in fields(message)]

    assert (True, []) == (len(needed) > 100, [field for field in needed if field not in known])
