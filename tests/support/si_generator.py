"""Generate the code of the messages from the `.proto` files: `make proto`.

What protoc writes is changed in four places:

* The messages live in a descriptor pool of their own. The default pool is one for the whole process and
  takes each name once, so a program that carries its own copy of `si.v1` could not import Licorne. To
  register the file by another path does not help: the names of the messages would still clash.
* The modules name each other by their place in the package. The sources do not: `licorne_v1.proto` imports
  `si.proto` by its bare name, as programs in other languages find it.
* The check that the installed protobuf is at least as new as protoc is left out. The generated code is a
  serialized description and three calls that every supported protobuf has, and a program that embeds Licorne
  should not need the newest protobuf. The tests of `licorne.proxy.si` show that a version works.
* The types are completed where strict type checkers object.

Only this module needs grpcio-tools.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import licorne.proxy.si
from licorne import LicorneError

_FOLDER: Final = Path(licorne.proxy.si.__file__).parent
_SOURCES: Final = ("si", "licorne_v1")
_DEFAULT_POOL: Final = "DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile("
_OWN_POOLS: Final = {
    "si": (
        "# A pool of its own: another copy of si.v1 in this process does no harm (see si_generator.py).\n"
        "_pool = _descriptor_pool.DescriptorPool()\n"
        "_pool.AddSerializedFile(google_dot_protobuf_dot_descriptor__pb2.DESCRIPTOR.serialized_pb)\n"
        "DESCRIPTOR = _pool.AddSerializedFile("
    ),
    "licorne_v1": "DESCRIPTOR = si__pb2.DESCRIPTOR.pool.AddSerializedFile(",
}
_IMPORTS: Final = (
    ("import si_pb2 as ", "from . import si_pb2 as "),
    (
        "_builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, '",
        "_builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, 'licorne.proxy.si.",
    ),
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
    """Write the module and the types of each source into a folder.

    Args:
        folder: An existing folder; files of these names are replaced.

    Raises:
        GenerationError: Nothing was written.
    """
    written: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        _run_protoc(scratch)
        for name in _SOURCES:
            code = Path(scratch, f"{name}_pb2.py").read_text(encoding="utf-8")
            types = Path(scratch, f"{name}_pb2.pyi").read_text(encoding="utf-8")
            written[f"{name}_pb2.py"] = _placed(_detached(code, name))
            written[f"{name}_pb2.pyi"] = _placed(_tightened(types))
    for name, text in written.items():
        folder.joinpath(name).write_text(text, encoding="utf-8")


def _run_protoc(folder: str) -> None:
    """Have protoc write into a folder."""
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc"),
        f"--proto_path={_FOLDER}",
        f"--python_out={folder}",
        f"--pyi_out={folder}",
        *(f"{name}.proto" for name in _SOURCES),
    ]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, fixed
    if outcome.returncode:
        raise GenerationError(f"protoc refused the sources in {_FOLDER}: {outcome.stderr.strip()}")


def _detached(code: str, name: str) -> str:
    """Return the generated code with a pool of its own and without the version of protoc."""
    if code.count(_DEFAULT_POOL) != 1:
        raise GenerationError(f"protoc wrote no line {_DEFAULT_POOL!r}; see what this version writes instead")
    for trace in _VERSION_TRACES:
        code = trace.sub("", code)
    return code.replace(_DEFAULT_POOL, _OWN_POOLS[name])


def _placed(text: str) -> str:
    """Return the generated code with the modules named by their place in the package."""
    for bare, placed in _IMPORTS:
        text = text.replace(bare, placed)
    return text


def _tightened(types: str) -> str:
    """Return the generated types as strict type checkers want them."""
    for loose, tight in _LOOSE_TYPES:
        types = loose.sub(tight, types)
    return types


def main() -> None:
    """Write the generated code beside its sources, where it is committed."""
    generate(_FOLDER)


if __name__ == "__main__":
    main()
