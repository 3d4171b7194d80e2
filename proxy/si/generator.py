"""Generate `si_pb2.py` and `si_pb2.pyi` from `si.proto`: `python -m licorne.proxy.si.generator`.

What protoc writes is changed in three places:

* The messages live in a descriptor pool of their own. The default pool is one for the whole process and
  takes each name once, so a program that carries its own copy of `si.v1` could not import Licorne. To
  register the file by another path does not help: the names of the messages would still clash.
* The check that the installed protobuf is at least as new as protoc is left out. The generated code is a
  serialized description and three calls that every supported protobuf has, and a program that embeds Licorne
  should not need the newest protobuf. The tests of this folder show that a version works.
* The types are completed where strict type checkers object.

Only developers need this module, and only it needs grpcio-tools.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ...model.errors import LicorneError

__all__ = ["GenerationError", "generate", "main"]

_SOURCE: Final = Path(__file__).with_name("si.proto")
_MODULE_FOLDER: Final = "licorne/proxy/si"
_DEFAULT_POOL: Final = "DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile("
_OWN_POOL: Final = (
    "# A pool of its own: another copy of si.v1 in this process does no harm (see generator.py).\n"
    "_pool = _descriptor_pool.DescriptorPool()\n"
    "_pool.AddSerializedFile(google_dot_protobuf_dot_descriptor__pb2.DESCRIPTOR.serialized_pb)\n"
    "DESCRIPTOR = _pool.AddSerializedFile("
)
_VERSION_TRACES: Final = (
    re.compile(r"^# Protobuf Python Version: .*\n", re.MULTILINE),
    re.compile(r"^from google\.protobuf import runtime_version as _runtime_version\n", re.MULTILINE),
    re.compile(r"^_runtime_version\.ValidateProtobufRuntimeVersion\(\n(?: .*\n)*\)\n", re.MULTILINE),
)
_LOOSE_TYPES: Final = (
    (re.compile(r"^(\w+): _ClassVar\[int\]$", re.MULTILINE), r"\1: int"),
    (re.compile(r"\b_Mapping\]"), "_Mapping[str, object]]"),
)


class GenerationError(LicorneError):
    """The code could not be generated: protoc failed, or wrote something unexpected."""


def generate(folder: Path) -> None:
    """Write `si_pb2.py` and `si_pb2.pyi` into a folder.

    Args:
        folder: An existing folder; files of these names are replaced.

    Raises:
        GenerationError: Nothing was written.
    """
    with tempfile.TemporaryDirectory() as scratch:
        _run_protoc(scratch)
        written = Path(scratch, _MODULE_FOLDER)
        code = _detached(written.joinpath("si_pb2.py").read_text(encoding="utf-8"))
        types = _tightened(written.joinpath("si_pb2.pyi").read_text(encoding="utf-8"))
    folder.joinpath("si_pb2.py").write_text(code, encoding="utf-8")
    folder.joinpath("si_pb2.pyi").write_text(types, encoding="utf-8")


def _run_protoc(folder: str) -> None:
    """Let protoc write below a folder, as if the source lay at the path of the module."""
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc"),
        f"--proto_path={_MODULE_FOLDER}={_SOURCE.parent}",
        f"--python_out={folder}",
        f"--pyi_out={folder}",
        f"{_MODULE_FOLDER}/{_SOURCE.name}",
    ]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, fixed
    if outcome.returncode:
        raise GenerationError(f"protoc refused {_SOURCE}: {outcome.stderr.strip()}")


def _detached(code: str) -> str:
    """Return the generated code with a pool of its own and without the version of protoc."""
    if code.count(_DEFAULT_POOL) != 1:
        raise GenerationError(f"protoc wrote no line {_DEFAULT_POOL!r}; see what this version writes instead")
    for trace in _VERSION_TRACES:
        code = trace.sub("", code)
    return code.replace(_DEFAULT_POOL, _OWN_POOL)


def _tightened(types: str) -> str:
    """Return the generated types as strict type checkers want them."""
    for loose, tight in _LOOSE_TYPES:
        types = loose.sub(tight, types)
    return types


def main() -> None:
    """Write the generated code beside its source, where it is committed."""
    generate(_SOURCE.parent)


if __name__ == "__main__":
    main()
