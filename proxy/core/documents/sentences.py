"""The documents of explanations in sentences: what the page and `licorne top` show."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from .fields import ApplicationStateName


class SettingDocument(TypedDict):
    """The line of the configuration behind something."""

    line: int
    column: int
    path: str
    text: str


class LineDocument(TypedDict):
    """A sentence, with the line of the configuration behind it."""

    text: str
    setting: SettingDocument | None


class BlockerLineDocument(TypedDict):
    """A blocker, in sentences."""

    text: str
    setting: SettingDocument | None
    lacks: list[LineDocument]
    changes: list[str]


class WaitingDocument(TypedDict):
    """Asks that wait for the same reasons."""

    key: str
    text: str
    free: bool
    """Nothing blocks them."""
    reserved: str
    """The node that is reserved for it; empty for none."""
    ending: NotRequired[str]
    """For which victims it waits, and since when; absent if for none."""
    blockers: list[BlockerLineDocument]
    nodes: list[str]
    start: NotRequired[str]
    """When they are expected to start, or why that cannot be said; absent where nothing is planned."""
    noted: list[str]


class VictimLineDocument(TypedDict):
    """A victim, in sentences."""

    title: str
    why: str


class ProspectLinesDocument(TypedDict):
    """What would be preempted for an ask, in sentences."""

    text: str
    why: str
    victims: list[VictimLineDocument]


class PreemptionLinesDocument(TypedDict):
    """A preemption, in sentences."""

    text: str
    lines: list[str]


class SentencesDocument(TypedDict):
    """An explanation in sentences."""

    applicationID: str
    headline: str
    state: ApplicationStateName
    rejection: str
    draining: bool
    rules: list[LineDocument]
    blockers: list[BlockerLineDocument]
    places: list[LineDocument]
    waiting: list[WaitingDocument]
    """Asks that wait, those with one answer together."""
    more: int
    """How many groups of asks are not shown."""
    victims: list[ProspectLinesDocument]
    others: list[str]
    preemptions: list[PreemptionLinesDocument]
    loops: int
