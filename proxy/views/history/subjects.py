"""The subjects of questions to a history, and whose use is added up: options of `licorne usage`."""

from __future__ import annotations

from enum import StrEnum


class HistorySubject(StrEnum):
    """The subject of a question."""

    USAGE = "usage"
    WAITS = "waits"
    ENDED = "ended"
    PREEMPTED = "preempted"
    CONFIGURATIONS = "configurations"


class Grouping(StrEnum):
    """The holders whose use is added up."""

    QUEUE = "queue"
    USER = "user"
    GROUP = "group"
    PROJECT = "project"
    PARTITION = "partition"
