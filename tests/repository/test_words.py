"""The pages are written in the words of the field: those that left do not come back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LEFT: Final = {
    r"charge[sd]? back": "release",
    r"circles?": "cycle, deadlock",
    r"closed (strong )?paths?": "cycle",
    r"fruitless|in vain": "failed, without result",
    r"furnish\w*": "apply_template",
    r"let(s|ting)? go": "release, drop, stop",
    r"nobody|somebody|whoever": "the subject itself: a thread, an ask, a queue",
    r"owed|owes?|spoken for": "entitled, committed",
    r"seats?": "entry",
    r"surroundings": "host",
    r"told": "message, reported",
    r"wove|woven|weav(e|es|ing)": "instrument",
}
"""What a page does not say -> what it says instead."""

_CODE: Final = re.compile(r"^(```|~~~).*?^\1|^ {4}[^ *|-].*?$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def left_words(text: str) -> list[str]:
    """Return the words in a page that left, as they occur in its prose; code is passed over."""
    return [match[0] for match in re.finditer(rf"\b({'|'.join(LEFT)})\b", _CODE.sub("", text), re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    """A reader of this field understands it without learning words of ours."""
    assert [] == left_words(page.read_text(encoding="utf-8"))


def test_words_are_found_in_prose_alone() -> None:
    """Names of code, and what programs print, change with the code."""
    page = "It lets go of\n\n    let go\n\n`seat`\n```text\ntold\n```\n* a list\n    told\nA Seat, seated\n"

    assert ["lets go", "Seat"] == left_words(page)
