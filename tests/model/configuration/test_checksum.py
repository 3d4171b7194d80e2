"""The fingerprint of a configuration."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from licorne.model.configuration.reader import checksum

TEXT = "partitions:\n- name: default\n"
WRITTEN = "A" * 64
RECORDED = Path(__file__).parents[2] / "conformance" / "rest"


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest().upper()


def test_the_fingerprint_is_a_hash_in_capitals() -> None:
    """SHA-256 over the bytes of the text."""
    assert fingerprint(TEXT) == checksum(TEXT)


def test_any_change_of_the_text_changes_the_fingerprint() -> None:
    """A comment is a change too."""
    assert checksum(TEXT) != checksum(TEXT + "# x\n")


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        (f"checksum: {WRITTEN}\n{TEXT}", f"\n{TEXT}"),
        (f"{TEXT}checksum: {WRITTEN}\n", f"{TEXT}\n"),
        (f"{TEXT}checksum: {WRITTEN}", TEXT),
        (f"{TEXT}checksum: \n", f"{TEXT}\n"),
        (f"{TEXT}checksum: {WRITTEN}\n{TEXT}checksum: {WRITTEN}\n", f"{TEXT}\n{TEXT}\n"),
    ],
    ids=["at the front", "at the end", "last of all", "empty", "twice"],
)
def test_a_checksum_in_the_text_takes_no_part(text: str, hashed: str) -> None:
    """The line break after it stays."""
    assert fingerprint(hashed) == checksum(text)


def test_a_text_that_is_no_text_has_a_fingerprint_too() -> None:
    """Refusing it is the business of the reader."""
    assert len(checksum("\ud800é")) == 64


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded REST answers are not in this checkout")
def test_the_fingerprint_is_that_of_the_recorded_core() -> None:
    """The last configuration of the recorded scenario has the checksum that was recorded with it."""
    lines = (RECORDED / "scenario.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line) for line in lines if line.startswith("{")]
    text = [message["configuration"]["config"] for message in messages if "configuration" in message][-1]
    recorded = json.loads((RECORDED / "config_json.json").read_text(encoding="utf-8"))["Checksum"]

    assert recorded == checksum(text)
