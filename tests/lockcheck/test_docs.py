"""What docs/lockcheck.md says of the code is so."""

from __future__ import annotations

import re
from pathlib import Path

from support.programs import run_lockcheck, written

from licorne import lockcheck
from licorne.lockcheck import Order, tree
from licorne.lockcheck.reports.writing import FORMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lockcheck.md").read_text(encoding="utf-8")


def test_the_page_shows_the_order_as_it_describes_itself() -> None:
    """Whoever changes the words draws them again."""
    order = Order("partition < queue < application < node", same={"queue": tree("path")})
    (shown,) = re.findall(r"<!-- order -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)

    assert order.describe() == shown


def test_the_example_of_the_page_runs() -> None:
    """As it stands there."""
    example = PAGE.split("```python\n")[2].split("```")[0]
    names: dict[str, object] = {}
    exec(example, names)  # noqa: S102 - our own page

    assert {"ORDER", "partition", "queue"} <= names.keys()


def test_the_unchanged_program_of_the_page_gives_its_report(tmp_path: Path) -> None:
    """A cycle, or the deadlock itself, between the two lines that the page shows."""
    written(tmp_path, PAGE.split("```python\n")[1].split("```")[0], "transfer.py")
    done = run_lockcheck(tmp_path, "run", "transfer.py")

    assert 1 == done.returncode
    assert re.search(r"\[R[25] ", done.stderr, re.MULTILINE)
    assert "transfer.py:11 in move: with source.lock:" in done.stderr
    assert "transfer.py:12 in move: with target.lock:" in done.stderr


def test_every_room_is_named_on_the_page_from_the_top_down() -> None:
    """One that nobody mentions is one that nobody finds."""
    rooms = {path.parent.name for path in (ROOT / "lockcheck").glob("*/__init__.py")}

    assert rooms == set(re.findall(r"^\| `lockcheck/(\w+)/` \|", PAGE, re.MULTILINE))


def test_the_functions_that_write_reports_are_reached_from_the_package() -> None:
    """Whatever room their modules are in."""
    shown = re.findall(r"`(\w+)\.(\w+)\(", PAGE.split("## Reports")[1].split("## Declaring")[0])

    assert len(shown) > 5
    assert [] == [names for names in shown if names[0] != "session" and not _is_callable(*names)]


def test_each_form_of_report_is_named_with_its_options() -> None:
    """Of the command and of pytest."""
    command = PAGE.split("## On the command line")[1].split("## How it is built")[0]
    plugin = PAGE.split("## Under pytest")[1].split("## On the command line")[0]

    assert [] == [name for name in FORMS if f"`--{name}`" not in command]
    assert [] == [name for name in FORMS if f"-{name}`" not in plugin]


def _is_callable(module: str, function: str) -> bool:
    return callable(getattr(getattr(lockcheck, module), function))
