"""The recorded answers of the REST interface: the requests, and how an answer is compared with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[2] / "conformance" / "rest"
_SCENARIO: Final = FOLDER / "scenario.jsonl"
_NAMES: Final = (
    *("allocationKey", "applicationID", "nodeID", "queuename", "queuePath", "userName", "groupName"),
    *("type", "taskGroupName", "message", "name"),
)
"""By which of its fields an element of a list is found: lists are in no order."""


@dataclass(frozen=True, slots=True)
class GoldenAnswer:
    """A request, and how it was answered."""

    name: str
    method: str
    url: str
    accept: str
    body: str
    status: int
    content_type: str
    allow: str
    location: str
    file: Path

    def document(self) -> Any:
        """Return the recorded document: of JSON or YAML, else the text."""
        text = self.file.read_text(encoding="utf-8")
        return parsed(text, self.content_type)


def parsed(text: str, content_type: str) -> Any:
    """Return what a text means, by its type."""
    if content_type.startswith("application/json"):
        return json.loads(text)
    return yaml.safe_load(text) if content_type.startswith("application/x-yaml") else text


def golden_answers() -> Iterator[GoldenAnswer]:
    """Yield all recorded answers."""
    config = json.loads(_SCENARIO.read_text(encoding="utf-8").splitlines()[1])["register"]["config"]
    for row in json.loads((FOLDER / "index.json").read_text(encoding="utf-8")):
        body = config if row["body"].startswith("<the configuration") else row["body"]
        yield GoldenAnswer(
            name=row["name"],
            method=row["method"],
            url=row["url"],
            accept=row["accept"],
            body=body,
            status=row["status"],
            content_type=row["contentType"],
            allow=row["allow"],
            location=row["location"],
            file=FOLDER / row["file"],
        )


def differences(wanted: Any, found: Any, where: str = "") -> list[str]:
    """Return where two documents differ: in keys, types or values; times need only be numbers."""
    if wanted == "<unstable>":
        return []
    if wanted == "<time>":
        return (
            [] if isinstance(found, int) and not isinstance(found, bool) else [f"{where}: no time: {found!r}"]
        )
    if isinstance(wanted, dict) and isinstance(found, dict):
        keys = [f"{where}.{key}: missing" for key in wanted if key not in found]
        keys += [f"{where}.{key}: not recorded: {found[key]!r}" for key in found if key not in wanted]
        both = (key for key in wanted if key in found)
        return keys + [
            text for key in both for text in differences(wanted[key], found[key], f"{where}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return [f"{where}: {len(found)} entries, recorded {len(wanted)}"]
        pairs = zip(_in_order(wanted), _in_order(found), strict=True)
        return [
            text
            for number, (one, other) in enumerate(pairs)
            for text in differences(one, other, f"{where}[{number}]")
        ]
    if type(wanted) is type(found) and wanted == found:
        return []
    return [f"{where}: {found!r}, recorded {wanted!r}"]


def _in_order(entries: list[Any]) -> list[Any]:
    def key(entry: Any) -> str:
        if isinstance(entry, dict):
            return next((str(entry[name]) for name in _NAMES if name in entry), "")
        return str(entry)

    return sorted(entries, key=key)
