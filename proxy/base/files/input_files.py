"""Read input files as text, configurations as programs give them, and YAML with the place of each value.

Every failure is an input error. With the places, strict models can name where a file differs from them.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, cast

from ....model.configuration.problems import ConfigurationError, Position, Problem, RuleFinding
from ....model.configuration.reader import DEFAULT_SOURCE, Report, inspect, load
from ....model.configuration.yaml_nodes import Node, ScalarNode, ScalarTag, SequenceNode, item_path, key_path
from ....model.configuration.yaml_text import compose
from ....model.errors import LicorneError, RequestError
from ....model.resources.quantities import INT64_MAX

NANOSECONDS_IN_SECOND: Final = 10**9
NODES_MAX: Final = 1_000_000
"""How many nodes a simulation has at most, whatever file they come from."""
# Only these digits: `int` would also take underscores, blanks and the digits of other scripts.
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,40}")
_FILE_SIZE_MAX_BYTES: Final = 2**30
_PIECE_BYTES: Final = 2**20
_UNPACKED_MAX_BYTES: Final = 2**29
_UNPACKED_MIN_BYTES: Final = 2**24
"""How much any packed file may unpack to."""
_UNPACKED_RATIO: Final = 100
"""How many times as much as has been read of it a packed file may unpack to besides."""
PACKING_ERRORS: Final = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
"""Errors of reading a damaged packed file; bzip2 raises `OSError`."""
_SUFFIXES: Final = frozenset({".gz", ".bz2", ".xz"})
_FIRST_BYTES_MAX: Final = 6
_READERS: Final[Mapping[bytes, Callable[[BufferedReader], object]]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
"""How what begins with some bytes is read."""
GivenConfiguration: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"
"""YAML text, a path such as `pathlib.Path` of a file with it, or the mapping that such a text is read as."""
_FILE_NAMES: Final = (".yaml", ".yml", ".json")
_DEPTH_MAX: Final = 100


def read_text(path: Path, *, comment: str = "") -> str:
    """Return the text of a UTF-8 file, with or without a byte order mark and with any line ends.

    A file that gzip, bzip2 or xz has made is unpacked, whatever its name is. If comments have a mark, lines
    that begin with it may contain other bytes, for example names in Latin-1: these become `\ufffd`.

    Raises:
        InputError: The file cannot be read or unpacked, has more than 1 GiB of text, or is not UTF-8; or it
            is packed, and has more than 512 MiB, or unpacks to far more than its size.
    """
    try:
        with path.open("rb") as file, unpacked(file) as text:
            return _text(text, path, file if text is not file else None, comment)
    except PACKING_ERRORS as error:
        raise InputError(path, f"cannot be unpacked: {error}") from error
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def read_standard_input() -> str:
    """Return the text that is piped in, read like that of a file; its path in errors is `-`.

    Raises:
        InputError: There is no standard input, or a file with this content would be refused.
    """
    path = Path("-")
    try:
        if sys.stdin is None:
            raise InputError(path, "cannot be read: standard input is closed")
        return _text(sys.stdin.buffer, path)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def _text(file: BinaryIO, path: Path, packed: BufferedReader | None = None, comment: str = "") -> str:
    """Return the text of an open file, which is unpacked from another one if that is given."""
    content = bytearray()
    # In pieces: the size of some files is unknown, and some have no end.
    while piece := file.read(_PIECE_BYTES):
        content += piece
        if len(content) > _FILE_SIZE_MAX_BYTES:
            raise InputError(path, f"there are more than {_FILE_SIZE_MAX_BYTES:,} bytes")
        if packed is not None:
            # A pipe has no position.
            read = packed.tell() if packed.seekable() else _UNPACKED_MAX_BYTES
            _check_unpacked(len(content), read, path)
    try:
        text = _without_foreign_bytes(bytes(content), comment).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The position is counted from the end of the byte order mark.
        raw = error.object
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8 text"
        raise InputError(path, message, line=line, column=column) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_foreign_bytes(content: bytes, comment: str) -> bytes:
    """Return a text whose lines with the mark of comments are UTF-8."""
    if not comment:
        return content
    mark = comment.encode()
    lines = content.split(b"\n")
    return b"\n".join(
        line.decode(errors="replace").encode() if line.startswith(mark) else line for line in lines
    )


def _check_unpacked(size: int, packed_size: int, path: Path) -> None:
    """Refuse a file that would fill the memory of this process: logs unpack to 5 to 40 times their size.

    Raises:
        InputError: It has unpacked to too much.
    """
    if size > min(_UNPACKED_MAX_BYTES, _UNPACKED_MIN_BYTES + _UNPACKED_RATIO * packed_size):
        raise InputError(
            path,
            f"{packed_size:,} bytes of it unpack to more than {size - _PIECE_BYTES:,}: unpack it, "
            "and read what is in it, if that is meant",
        )


def whole_number(text: str, *, path: Path, line: int, name: str, scale: int = 1) -> int:
    """Return an unsigned whole number times a scale.

    Args:
        text: The digits, and nothing else.
        path: The file with the number.
        line: The line with the number.
        name: The name of the number, for the error.
        scale: The factor; the product must be a signed 64-bit integer.

    Raises:
        InputError: It is not a whole number or it is too large.
    """
    if _WHOLE_NUMBER.fullmatch(text) is None:
        raise InputError(path, f"{name}: {text!r} is not a whole number", line=line)
    value = int(text) * scale
    if value > INT64_MAX:
        raise InputError(path, f"{name}: {text!r} is too large", line=line)
    return value


def check_node_count(path: Path, count: int) -> None:
    """Refuse more nodes than a simulation has, before any of them is made.

    Raises:
        InputError: There are too many.
    """
    if count > NODES_MAX:
        raise InputError(path, f"there are {count:,} nodes, more than {NODES_MAX:,}")


def virtual_ns(text: str, *, path: Path, line: int, name: str) -> int:
    """Return whole seconds as nanoseconds of virtual time.

    Raises:
        InputError: It is not a whole number or it is too large.
    """
    return whole_number(text, path=path, line=line, name=name, scale=NANOSECONDS_IN_SECOND)


class InputError(LicorneError):
    """An input file that cannot be used; nothing of it has been applied.

    Its text is `file:line:column: what is wrong`, without the parts that are not known.

    Args:
        path: The file.
        message: The error, with the offending value.
        line: The line, from 1.
        column: The column in that line, from 1.
    """

    def __init__(
        self, path: Path, message: str, *, line: int | None = None, column: int | None = None
    ) -> None:
        self.path = path
        self.message = message
        self.line = line
        self.column = column
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}")


def unpacked(file: BufferedReader) -> BinaryIO:
    """Return a reader of what is in a file, which is the file itself if it is not packed."""
    first = file.peek(_FIRST_BYTES_MAX)
    reader = next((kind(file) for start, kind in _READERS.items() if first.startswith(start)), file)
    return cast("BinaryIO", reader)


def unpacked_name(path: Path) -> Path:
    """Return the path that a file would have if it was not packed: `log.swf` for `log.swf.gz`."""
    return path.with_suffix("") if path.suffix.lower() in _SUFFIXES else path


def configuration_text(given: GivenConfiguration) -> str:
    """Return the YAML text of a configuration; a file is read now, and not again when it changes.

    Raises:
        LicorneError: A file cannot be read, or is refused; a mapping has what YAML has not; or it is neither
            of the three.
    """
    match given:
        case str():
            if given.endswith(_FILE_NAMES) and "\n" not in given and ":" not in given.removeprefix("C:"):
                raise RequestError(
                    f"configuration={given!r:.200} is the name of a file: give pathlib.Path({given!r:.200}), "
                    "or the text that is in it"
                )
            return given
        case os.PathLike():
            text = read_text(Path(given))
            load(text, source=str(given))  # Its errors name the file; those of a registration cannot.
            return text
        case Mapping():
            return yaml_of(given, "configuration")
        case _:
            raise RequestError(
                f"configuration: expected YAML text, a path or a mapping, "
                f"got {type(given).__name__} {given!r:.200}"
            )


def inspect_configuration(
    given: GivenConfiguration, source: str | None = None, *, node_types: Collection[str] | None = None
) -> Report:
    """Report everything about a configuration, as `licorne validate` does.

    Args:
        given: The configuration.
        source: Its name in messages; the path of a file unless it is given.
        node_types: The resource types that nodes have, if that is known; they are not spelling errors.

    Raises:
        LicorneError: As for `configuration_text`.
    """
    if source is None:
        source = os.fspath(given) if isinstance(given, os.PathLike) else DEFAULT_SOURCE
    text = read_text(Path(given)) if isinstance(given, os.PathLike) else configuration_text(given)
    return inspect(text, source, node_types=node_types)


def yaml_of(given: Mapping[str, object], name: str) -> str:
    """Return a mapping as YAML text; the errors of who reads it are in the lines of that text.

    Args:
        given: The mapping.
        name: Its name in an error.

    Raises:
        RequestError: It has what YAML has not, or is nested too deeply.
    """
    import yaml  # noqa: PLC0415 - it takes 20 ms, and most programs give a text

    text: str = yaml.safe_dump(_plain(given, name, 0), sort_keys=False, allow_unicode=True)
    return text


def _plain(value: object, place: str, depth: int) -> object:
    """Return a copy of a value that consists of what YAML has, so that nothing in it is an alias.

    Raises:
        RequestError: Something in it is of another type, or it is nested too deeply.
    """
    if depth > _DEPTH_MAX:
        raise RequestError(f"{place:.200}: nested more than {_DEPTH_MAX} deep")
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)
        case Mapping():
            return {
                _plain(key, place, depth + 1): _plain(entry, f"{place}.{key}", depth + 1)
                for key, entry in value.items()
            }
        case list() | tuple():
            return [_plain(entry, f"{place}[{number}]", depth + 1) for number, entry in enumerate(value)]
        case _:
            raise RequestError(
                f"{place:.200}: expected a text, a number, a list or a mapping, "
                f"got {type(value).__name__} {value!r:.100}"
            )


_FLAGS: Final = {"true": True, "false": False}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,40}")
_WITH_LAST_STEP: Final = re.compile(r"(.*)(\.[^.\[\]]*|\[[0-9]+\])", re.DOTALL)
_FLOAT: Final = re.compile(r"[-+]?[0-9]{1,40}\.[0-9]{1,40}")

YamlValue: TypeAlias = "bool | int | float | str | list[YamlValue] | dict[str, YamlValue] | None"


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """The value of a YAML file, and the place of everything in it.

    `positions` are found by path, such as `nodes[0].count`. `key_positions` are those of keys.
    """

    path: Path
    value: YamlValue
    positions: dict[str, Position]
    key_positions: dict[str, Position]

    def finding(self, way: Iterable[int | str], text: str, *, at_key: bool = False) -> RuleFinding:
        """Return a finding about the value at the end of a way, or about its key."""
        path = ""
        for step in way:
            path = item_path(path, step) if isinstance(step, int) else key_path(path, step)
        finding = self.finding_at(path, text)
        if not at_key or path not in self.key_positions:
            return finding
        position = self.key_positions[path]
        return RuleFinding(Position(position.line, position.column, path), text)

    def finding_at(self, path: str, text: str) -> RuleFinding:
        """Return a finding about the value with a path.

        A missing value has no place: the place is then the nearest mapping or list around it.
        """
        around = path
        while around and around not in self.positions:
            shorter = _WITH_LAST_STEP.fullmatch(around)
            around = shorter[1] if shorter is not None else ""
        position = self.positions.get(around, Position(1, 1))
        return RuleFinding(Position(position.line, position.column, path), text)

    def error(self, findings: Iterable[RuleFinding]) -> ConfigurationError:
        """Return the error that carries findings, in order of the file."""
        return ConfigurationError(self.problems(findings))

    def problems(self, findings: Iterable[RuleFinding]) -> tuple[Problem, ...]:
        """Return findings with the name of the file, in its order."""
        ordered = sorted(findings, key=lambda finding: (finding.position.line, finding.position.column))
        return tuple(Problem.of(finding, str(self.path)) for finding in ordered)


def read_located_yaml(path: Path, text: str | None = None) -> LocatedYaml:
    """Read the first document of a YAML file.

    Args:
        path: The file, or the name in messages of a text without a file.
        text: That text; `None` for the text of the file.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: It is not YAML, or has a key twice; the error has all problems.
    """
    findings: list[RuleFinding] = []
    top = compose(read_text(path) if text is None else text, findings)
    located = LocatedYaml(path, None, {}, {})
    if findings:
        raise located.error(findings)
    value = _value(top, "", located) if top is not None else None
    return LocatedYaml(path, value, located.positions, located.key_positions)


def _value(node: Node, path: str, located: LocatedYaml) -> YamlValue:
    """Return the plain value of a node, and note its place."""
    located.positions[path] = node.position
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, SequenceNode):
        return [_value(item, item_path(path, index), located) for index, item in enumerate(node.items)]
    values: dict[str, YamlValue] = {}
    for key, entry in node.entries.items():
        located.key_positions[key_path(path, key)] = entry.key_position
        values[key] = _value(entry.value, key_path(path, key), located)
    return values


def _scalar(node: ScalarNode) -> YamlValue:
    """Return a scalar by its tag; a number that Python does not read so stays text."""
    if node.tag is ScalarTag.NULL:
        return None
    if node.tag is ScalarTag.BOOLEAN and node.text.lower() in _FLAGS:
        return _FLAGS[node.text.lower()]
    if node.tag is ScalarTag.INTEGER and _INTEGER.fullmatch(node.text):
        return int(node.text)
    if node.tag is ScalarTag.FLOAT and _FLOAT.fullmatch(node.text):
        return float(node.text)
    return node.text
