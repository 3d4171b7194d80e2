"""The committed code is what `si.proto` says."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from licorne.proxy.si import generator, si_pb2

if TYPE_CHECKING:
    from types import ModuleType

pytest.importorskip("grpc_tools", reason="grpcio-tools, of the development group, holds protoc")

COMMITTED = Path(generator.__file__).parent


def _load(path: Path) -> ModuleType:
    """Execute a generated module under a name of its own."""
    spec = importlib.util.spec_from_file_location("regenerated_si_pb2", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _declarations(path: Path) -> list[str]:
    """Return the classes and attributes of a type file; how they are spelt depends on protoc's version."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            names += [f"class {node.name}"]
            names += [
                f"{node.name}.{ast.unparse(a.target)}" for a in node.body if isinstance(a, ast.AnnAssign)
            ]
    return names


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("si")
    generator.generate(folder)
    return folder


def test_the_committed_code_describes_what_the_source_says(regenerated: Path) -> None:
    """Who changes `si.proto` commits the code of it too (`make proto`)."""
    module = _load(regenerated / "si_pb2.py")

    assert module.DESCRIPTOR.serialized_pb == si_pb2.DESCRIPTOR.serialized_pb


def test_the_committed_types_declare_what_the_source_says(regenerated: Path) -> None:
    """The type file names the same classes and attributes as a fresh one."""
    actual = _declarations(COMMITTED / "si_pb2.pyi")

    assert _declarations(regenerated / "si_pb2.pyi") == actual
    assert len(actual) > 300


@pytest.mark.parametrize("name", ["si_pb2.py", "si_pb2.pyi"])
def test_the_code_names_neither_a_version_nor_the_default_pool(regenerated: Path, name: str) -> None:
    """The code works with other versions of protobuf, and takes no name in the whole process."""
    code = (regenerated / name).read_text(encoding="utf-8")

    assert "runtime_version" not in code
    assert "Protobuf Python Version" not in code
    assert "_descriptor_pool.Default()" not in code


def test_unexpected_code_of_protoc_is_refused() -> None:
    """A protoc that writes something else is an error, not code that half works."""
    with pytest.raises(generator.GenerationError, match="protoc wrote no line"):
        generator._detached("DESCRIPTOR = something_else()\n")


def test_a_source_that_protoc_refuses_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of protoc are in the error, and nothing is written."""
    source = tmp_path / "source" / "si.proto"
    source.parent.mkdir()
    source.write_text('syntax = "proto3"; message {', encoding="utf-8")
    target = tmp_path / "target"
    target.mkdir()
    monkeypatch.setattr(generator, "_SOURCE", source)

    with pytest.raises(generator.GenerationError, match="Expected message name"):
        generator.generate(target)

    assert list(target.iterdir()) == []
