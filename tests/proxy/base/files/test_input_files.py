from __future__ import annotations

from pathlib import Path

import pytest

from licorne.proxy.base.files import input_files
from licorne.proxy.base.files.input_files import InputError, read_text, virtual_ns, whole_number


def test_a_text_is_read_without_its_mark_and_with_one_kind_of_line_end(tmp_path: Path) -> None:
    """Files come from every system."""
    path = tmp_path / "f"
    path.write_bytes("\ufeffa\r\nb\rc\n".encode())

    assert read_text(path) == "a\nb\nc\n"


def test_bytes_that_are_no_text_are_named_with_their_place(tmp_path: Path) -> None:
    """The place is that in the file."""
    path = tmp_path / "f"
    path.write_bytes(b"ab\ncd\xff")

    with pytest.raises(InputError) as caught:
        read_text(path)

    assert f"{path}:2:3: byte 0xff is not UTF-8 text" == str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The reason is that of the system."""
    path = tmp_path / "gone"

    with pytest.raises(InputError) as caught:
        read_text(path)

    assert f"{path}: cannot be read: No such file or directory" == str(caught.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Whatever cannot be read is bad input, not a crash."""
    with pytest.raises(InputError, match="cannot be read"):
        read_text(tmp_path)


def test_a_file_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in pieces: it does not say its size."""
    monkeypatch.setattr(input_files, "_FILE_SIZE_MAX_BYTES", 2**21)

    with pytest.raises(InputError, match=r"^/dev/zero: there are more than 2,097,152 bytes$"):
        read_text(Path("/dev/zero"))


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1_000", " 1", "٣", "0x10", "nan"])
def test_only_digits_are_a_whole_number(text: str) -> None:
    """What Python would also take for a number is refused."""
    with pytest.raises(InputError) as caught:
        whole_number(text, path=Path("f.csv"), line=7, name="size")

    assert f"f.csv:7: size: {text!r} is not a whole number" == str(caught.value)


def test_a_number_beyond_64_bits_is_refused() -> None:
    """The scale counts: it is the product that has to fit."""
    assert 2**63 - 1 == whole_number(str(2**63 - 1), path=Path("f"), line=1, name="size")
    with pytest.raises(InputError, match="too large"):
        whole_number(str(2**53), path=Path("f"), line=1, name="size", scale=2**10)


def test_seconds_become_nanoseconds() -> None:
    """Virtual time is exact."""
    assert 3 * 10**9 == virtual_ns("3", path=Path("f"), line=1, name="time")
