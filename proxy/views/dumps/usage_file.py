"""The usage file: what queues and users have used, kept over a restart for their fair share.

It is the document of `proxy.core.scheduler.answering.kept_use` as JSON.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self, final

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ....model.queues.use_order import KeptUse
from ....model.values.documents import Document
from ....model.values.messages import short_partition_name
from ...base.files.input_files import InputError, read_text
from ...base.files.json_text import JsonError, parse_json
from ...base.files.output_files import check_writable, write_whole
from ...core.scheduler.answering.questions import QuestionSide
from ...core.scheduler.answering.state_documents import moved_use, not_ahead, read_use, use_document

INTERVAL_SECONDS: Final = 300.0
"""From one writing to the next."""
HALF_LIVES_MAX: Final = 20
"""So many half-lives leave a millionth."""


def usage_text(usage: Mapping[str, KeptUse], now_ns: int) -> str:
    """Return the text of a usage file.

    Args:
        usage: What is kept, by the full name of the partition.
        now_ns: The moment of writing, nanoseconds since 1970.
    """
    return _text_of(use_document(usage, now_ns))


def _text_of(document: Document) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read_usage(path: Path) -> tuple[int, dict[str, KeptUse]]:
    """Return when a usage file was written, and what is kept in it by the full name of the partition.

    Raises:
        InputError: The file cannot be read, or is not of this version.
    """
    try:
        return read_use(parse_json(read_text(path)))
    except JsonError as error:
        raise InputError(path, f"is no JSON: {error}") from error
    except InputError:
        raise
    except LicorneError as error:
        raise InputError(path, str(error)) from error


def usage_from(path: Path, now_ns: int) -> Mapping[str, KeptUse]:
    """Return what is kept in a usage file, by the full name of the partition, to go on from now.

    Where the clock of the file is ahead by less than a half-life, as after a clock was set right or the host
    was changed, what was used until then counts as if it had been until now.

    Raises:
        InputError: The file cannot be read, is not of this version, is older than 20 of its longest
            half-life, or ahead by one.
    """
    at_ns, usage = read_usage(path)
    half_lives = [use.half_life_ns for kept in usage.values() for use in kept.uses.values()]
    if half_lives and at_ns - now_ns >= max(half_lives):
        raise InputError(path, f"is from the future: its time is {at_ns}, and now is {now_ns}")
    if half_lives and now_ns - at_ns > HALF_LIVES_MAX * max(half_lives):
        age, longest = (now_ns - at_ns) // 10**9, max(half_lives) // 10**9
        raise InputError(path, f"is {age} s old, more than {HALF_LIVES_MAX} half-lives of {longest} s")
    return not_ahead(usage, now_ns)


def begun_at(begin_ns: int, at_ns: int, usage: Mapping[str, KeptUse]) -> dict[str, KeptUse]:
    """Return what is kept as if the file had been written when a simulation begins.

    A partition has it by its name within its resource manager as well, if no other one has the same.

    Args:
        begin_ns: The beginning of the simulation, nanoseconds since 1970.
        at_ns: When the file was written.
        usage: What is kept, by the full name of the partition.
    """
    begun = {name: moved_use(kept, at_ns, begin_ns) for name, kept in usage.items()}
    short = Counter(short_partition_name(name) for name in usage)
    for name, kept in list(begun.items()):
        if short[short_partition_name(name)] == 1:
            begun[short_partition_name(name)] = kept
    return begun


@final
class UsageFile:
    """Writes what was used into a file, every five minutes; `with` starts and ends that.

    Args:
        scheduler: It is asked what was used.
        path: The file; it is replaced as a whole.
        interval_seconds: From one writing to the next.

    Raises:
        UnwritableFileError: the file cannot be written.
    """

    def __init__(
        self, scheduler: QuestionSide, path: Path, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        check_writable(path)
        self._scheduler = scheduler
        self._path = path
        self._interval_seconds = interval_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-usage", daemon=True)
        self._writing = threading.Lock()
        self._log = Log()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def write(self) -> None:
        """Write the file now; what cannot be written is logged, and the file stays as it was."""
        try:
            with self._writing:
                write_whole(self._path, _text_of(self._scheduler.kept_use()))
        except LicorneError as error:
            self._log.warning("the use of queues was not written to {}: {}", self._path, error)

    def _run(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            self.write()
