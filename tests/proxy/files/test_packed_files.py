from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from licorne.proxy.files.input_errors import InputError
from licorne.proxy.files.input_files import read_text
from licorne.proxy.files.packed_files import unpacked_name

_TEXT = "a\r\nb\n" * 100
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_a_packed_file_is_read_as_its_text(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Its first bytes say that it is packed, not its name."""
    path = tmp_path / "log"
    path.write_bytes(pack(_TEXT.encode()))

    assert "a\nb\n" * 100 == read_text(path)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_a_file_that_was_cut_off_is_refused(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Half of a log is not taken for the whole."""
    path = tmp_path / "log"
    path.write_bytes(pack(_TEXT.encode())[:-4])

    with pytest.raises(InputError, match=f"^{path}: cannot be (unpacked|read): "):
        read_text(path)


def test_the_name_says_what_is_in_a_packed_file() -> None:
    """Other suffixes stay."""
    names = ("log.swf.gz", "log.swf.BZ2", "day.yaml.xz", "log.swf")

    assert ["log.swf", "log.swf", "day.yaml", "log.swf"] == [unpacked_name(Path(name)).name for name in names]
