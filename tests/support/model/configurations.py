"""Texts of configurations for tests, and what is found in them."""

from __future__ import annotations

from textwrap import dedent, indent

from licorne.model.configuration.reader import inspect, load
from licorne.model.configuration.schema import PartitionConfig, QueueConfig

HEAD = "partitions:\n- name: default\n  queues:\n  - name: root\n"
"""The lines above the queues; a queue of `below_root` begins in line 6, in column 5."""

OPEN = "    submitacl: '*'\n"
"""The line below the queues: the root queue is open to all users."""

BELOW = "partitions[0].queues[0].queues"
"""The path of the list that `below_root` fills."""


def below_root(queues: str, partition: str = "") -> str:
    """Return a configuration with queues below the root queue, which is open, and lines for the partition."""
    text = HEAD
    if queues:
        text += "    queues:\n" + indent(dedent(queues).strip("\n"), "    ") + "\n"
    text += OPEN
    return text + indent(dedent(partition).strip("\n"), "  ") + "\n"


def errors_of(text: str) -> list[str]:
    """Return the errors of a text, without the name of the file."""
    return [str(problem).partition(":")[2] for problem in inspect(text).errors]


def warnings_of(text: str) -> list[str]:
    """Return the warnings of a text that has no errors, without the name of the file."""
    report = inspect(text)
    assert report.errors == ()
    return [str(problem).partition(":")[2] for problem in report.warnings]


def errors_at_marks(text: str) -> list[str]:
    """Return the texts of the errors, which stand exactly where the text has the sign `§`, in this order."""
    plain, places = _without_marks(text)
    errors = inspect(plain).errors
    assert places == [f"{problem.line}:{problem.column}" for problem in errors]
    return [problem.text for problem in errors]


def warnings_at_marks(text: str) -> list[str]:
    """Return the texts of the warnings, likewise; there are no errors."""
    plain, places = _without_marks(text)
    report = inspect(plain)
    assert report.errors == ()
    assert places == [f"{problem.line}:{problem.column}" for problem in report.warnings]
    return [problem.text for problem in report.warnings]


def _without_marks(text: str) -> tuple[str, list[str]]:
    """Take the marks out of a text; a mark counts once for each finding at its place."""
    places = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        parts = line.split("§")
        ends = [sum(map(len, parts[:index])) for index in range(1, len(parts))]
        places += [f"{number}:{end + 1}" for end in ends]
    return text.replace("§", ""), places


def the_partition(text: str) -> PartitionConfig:
    """Return the only partition of a text that has no errors."""
    (partition,) = load(text).partitions
    return partition


def the_queue(text: str) -> QueueConfig:
    """Return the only queue below the root queue of a text that has no errors."""
    (queue,) = the_partition(text).root.queues
    return queue
