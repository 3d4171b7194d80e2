"""Files that are not written by hand: every command refuses them with an ordinary error, or reads on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from support.proxy.command_runs import run

DAILY: Final = str(Path(__file__).parents[4] / "examples" / "daily.yaml")
DEEP: Final = "[" * 200_000 + "]" * 200_000
BOMB: Final = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
TRANSCRIPTS: Final = {
    "deep": f'{{"schedule": 1}}\n{{"node": {DEEP}}}\n',
    "digits": '{"schedule": 1}\n{"schedule": ' + "9" * 5000 + "}\n",
    "no text": '{"schedule": 1}\n{"advance": "\xff"}\n',
    "megabytes": '{"schedule": 1}\n{"schedule": "' + "x" * 5_000_000 + '"}\n',
    "no message": '{"schedule": 1}\n{"node": {"nodes": 1}}\n',
}
READERS: Final = (
    ["replay"],
    ["simulate"],
    ["explain", "app", "--input"],
    ["dry-run", "--user", "u", "--input"],
)
SYSTEM_TALK: Final = ("Traceback", "codec", "Errno", "Input should", "Failed to parse", "Exceeds the limit")


@pytest.mark.parametrize("name", TRANSCRIPTS)
@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_a_hostile_transcript_is_refused_with_file_and_line(
    command: list[str], name: str, tmp_path: Path
) -> None:
    """In a line of readable length, however large the value is."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(TRANSCRIPTS[name].encode("latin-1"))

    status, output, errors = run(*command, str(path))

    assert (2, "") == (status, output)
    assert errors.startswith(f"licorne {command[0]}: {path}:2")
    assert [] == [word for word in SYSTEM_TALK if word in errors]
    assert len(errors) < 3_000


@pytest.mark.parametrize("text", [f"a: {DEEP}", BOMB], ids=["deep", "aliases"])
@pytest.mark.parametrize(
    "command",
    [["simulate"], ["explain", "app", "--input"], ["simulate", DAILY, "--users"]],
    ids=["simulate", "explain", "users"],
)
def test_hostile_yaml_is_refused_with_its_place(command: list[str], text: str, tmp_path: Path) -> None:
    """Lists nest, and aliases of aliases stand for more than memory holds."""
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="utf-8")

    status, output, errors = run(*command, str(path))

    assert (2, "") == (status, output)
    assert f"{path}:" in errors
    assert "document: " in errors


@pytest.mark.parametrize("text", [f"a: {DEEP}", BOMB], ids=["deep", "aliases"])
def test_a_hostile_configuration_is_invalid(text: str, tmp_path: Path) -> None:
    """As any other that is wrong."""
    path = tmp_path / "queues.yaml"
    path.write_text(text, encoding="utf-8")

    status, output, errors = run("validate", str(path))

    assert (3, "") == (status, errors)
    assert output.startswith(f"{path}:")


def test_a_request_that_repeats_megabytes_is_answered_in_a_line(tmp_path: Path) -> None:
    """The answers of the scheduler are cut too, not only what is read from the file."""
    path = tmp_path / "t.jsonl"
    long = "x" * 5_000_000
    lines = [{"register": {"rmID": "rm", "config": f"partitions: {long}"}}, {"application": {"rmID": long}}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    status, output, _ = run("replay", str(path))

    assert 0 == status
    assert ["error", "error"] == [
        key for line in output.splitlines() for key in json.loads(line) if key != "line"
    ]
    assert len(output) < 6_000


# ---------------------------------------------------------------------------------------- validate


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Write a file that is no text, one that is invalid and a valid one, and name one that is missing."""
    (tmp_path / "latin.yaml").write_bytes(b"partitions:\n  - name: d\xe4\n")
    (tmp_path / "bad.yaml").write_text("partitions:\n  - name: default\n    queue: []\n", encoding="utf-8")
    (tmp_path / "good.yaml").write_text(
        "partitions: [{name: default, queues: [{name: root}]}]\n", encoding="utf-8"
    )
    return [str(tmp_path / f"{name}.yaml") for name in ("gone", "latin", "bad", "good")]


def test_validate_goes_on_after_a_file_that_cannot_be_read(files: list[str]) -> None:
    """A file that cannot be read decides the status, and all other errors are printed."""
    gone, latin, bad, good = files

    status, output, errors = run("validate", *files)

    assert 2 == status
    assert [
        f"licorne validate: {gone}: cannot be read: No such file or directory",
        f"licorne validate: {latin}:2:12: byte 0xe4 is not UTF-8 text",
    ] == errors.splitlines()
    assert f"{bad}:3:5: " in output
    assert f"{good}: valid" in output


def test_validate_prints_its_document_whatever_can_be_read(files: list[str]) -> None:
    """Each file is in it, one that cannot be read with the reason and the place."""
    status, output, _ = run("validate", "--json", *files)

    documents = json.loads(output)
    assert 2 == status
    assert [(file, file == files[-1]) for file in files] == [(one["file"], one["valid"]) for one in documents]
    assert {"line": 2, "column": 12, "path": "document", "text": "byte 0xe4 is not UTF-8 text"} == (
        documents[1]["errors"][0]
    )
