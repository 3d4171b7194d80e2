"""What docs/lockcheck.md says of the code is so."""

from __future__ import annotations

import re
from pathlib import Path

from licorne.lockcheck import Order, tree

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lockcheck.md").read_text(encoding="utf-8")


def test_the_page_shows_the_order_as_it_describes_itself() -> None:
    """Whoever changes the words draws them again."""
    order = Order("partition < queue < application < node", same={"queue": tree("path")})
    (shown,) = re.findall(r"<!-- order -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)

    assert order.describe() == shown


def test_the_example_of_the_page_runs() -> None:
    """As it stands there."""
    example = PAGE.split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(example, names)  # noqa: S102 - our own page

    assert {"ORDER", "partition", "queue"} <= names.keys()


def test_every_module_is_named_on_the_page() -> None:
    """One that nobody mentions is one that nobody finds."""
    modules = {path.stem for path in (ROOT / "lockcheck").glob("*.py")} - {"__init__"}

    assert set() == {module for module in modules if f"`{module}`" not in PAGE}
