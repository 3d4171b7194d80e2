"""The committed code is what `si.proto` says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support import si_generator as generator

import licorne.proxy.si

pytest.importorskip("grpc_tools", reason="grpcio-tools, of the development group, holds protoc")

COMMITTED = Path(licorne.proxy.si.__file__).parent


def _descriptions(code: str) -> list[bytes]:
    """Return the serialized descriptions in generated code; how it is spelt depends on protoc's version."""
    return [
        node.value
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes) and len(node.value) > 1_000
    ]


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


@pytest.mark.parametrize("name", ["si_pb2", "licorne_v1_pb2"])
def test_the_committed_code_describes_what_the_source_says(regenerated: Path, name: str) -> None:
    """Who changes a source commits the code of it too (`make proto`)."""
    fresh = (regenerated / f"{name}.py").read_text(encoding="utf-8")
    committed = (COMMITTED / f"{name}.py").read_text(encoding="utf-8")

    assert _descriptions(fresh) == _descriptions(committed)


@pytest.mark.parametrize(("module", "least"), [("si_pb2", 300), ("licorne_v1_pb2", 80)])
def test_the_committed_types_declare_what_the_source_says(regenerated: Path, module: str, least: int) -> None:
    """The type file names the same classes and attributes as a fresh one."""
    actual = _declarations(COMMITTED / f"{module}.pyi")

    assert _declarations(regenerated / f"{module}.pyi") == actual
    assert len(actual) > least


@pytest.mark.parametrize("name", ["si_pb2.py", "si_pb2.pyi", "licorne_v1_pb2.py", "licorne_v1_pb2.pyi"])
def test_the_code_names_neither_a_version_nor_the_default_pool(regenerated: Path, name: str) -> None:
    """The code works with other versions of protobuf, and takes no name in the whole process."""
    code = (regenerated / name).read_text(encoding="utf-8")

    assert "runtime_version" not in code
    assert "Protobuf Python Version" not in code
    assert "_descriptor_pool.Default()" not in code


def test_unexpected_code_of_protoc_is_refused() -> None:
    """A protoc that writes something else is an error, not code that half works."""
    with pytest.raises(generator.GenerationError, match="protoc wrote no line"):
        generator._detached("DESCRIPTOR = something_else()\n", "si")


def test_a_source_that_protoc_refuses_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of protoc are in the error, and nothing is written."""
    source = tmp_path / "source" / "si.proto"
    source.parent.mkdir()
    source.write_text('syntax = "proto3"; message {', encoding="utf-8")
    source.with_name("licorne_v1.proto").write_text('syntax = "proto3";', encoding="utf-8")
    target = tmp_path / "target"
    target.mkdir()
    monkeypatch.setattr(generator, "_FOLDER", source.parent)

    with pytest.raises(generator.GenerationError, match="Expected message name"):
        generator.generate(target)

    assert list(target.iterdir()) == []
