from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from licorne.proxy.base.files.input_files import InputError, read_text, unpacked_name

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
def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """A few hundred bytes would fill the memory of the machine."""
    path = tmp_path / "log"
    path.write_bytes(pack(bytes(40 << 20)))

    tracemalloc.start()
    with pytest.raises(
        InputError, match=r"bytes of it unpack to more than 1[6-9],[0-9,]*: unpack it, and read"
    ):
        read_text(path)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_a_log_that_packs_well_is_read(tmp_path: Path) -> None:
    """Forty times is usual for lines with the same words."""
    line = '{"allocation": {"allocations": [{"applicationID": "app-%d", "allocationKey": "task-%d"}]}}\n'
    text = "".join(line % (number // 50, number) for number in range(250_000))
    path = tmp_path / "log"
    path.write_bytes(lzma.compress(text.encode(), preset=0))

    assert text == read_text(path)
    assert path.stat().st_size * 8 < len(text)
    assert len(text) > 16 << 20


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
