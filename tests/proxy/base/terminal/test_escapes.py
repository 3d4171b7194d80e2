"""What others have written reaches the terminal as text: never as a sequence that the terminal obeys."""

from __future__ import annotations

import io
import json

import pytest
from rich.table import Table
from rich.text import Text

from licorne.proxy.base.terminal.escaping_console import EscapingConsole
from licorne.proxy.base.terminal.standard_output import escaped, write_error, write_line

EVIL = "a\x1b]0;pwned\x07\x1b[31mRED\x9b32m\u202eb\r"
SHOWN = r"a\u001b]0;pwned\u0007\u001b[31mRED\u009b32m\u202eb\u000d"


def test_lines_have_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """On both outputs; lines and tabs stay."""
    write_line(f"{EVIL}\n\tnext")
    write_error(EVIL)

    assert (f"{SHOWN}\n\tnext\n", f"{SHOWN}\n") == tuple(capsys.readouterr())


def test_a_document_stays_what_it_is() -> None:
    """The escapes are those of JSON, which has others only where it must."""
    text = json.dumps({"reason": EVIL, EVIL: "\x7f"}, ensure_ascii=False)

    assert {"reason": EVIL, EVIL: "\x7f"} == json.loads(escaped(text))
    assert escaped(text).isprintable()


def test_texts_in_tables_have_escapes_and_styles_do_not() -> None:
    """The sequences of styles are written by the console itself."""
    stream = io.StringIO()
    console = EscapingConsole(file=stream, width=200, force_terminal=True, color_system="standard")
    table = Table(title=EVIL)
    table.add_column(EVIL)
    table.add_row(Text(EVIL, style="red"))
    console.print(table)
    console.print(Text(EVIL, style="bold"), soft_wrap=True)

    written = stream.getvalue()
    assert "\x1b[31m" in written
    assert written.count(r"\u001b]0;pwned") == 4
    assert not {"\x07", "\x9b", "\u202e", "\r"} & set(written)
    assert "\x1b]" not in written
    assert "\x1b[31mRED" not in written
