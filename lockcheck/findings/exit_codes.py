"""The exit codes of the commands, and of a process that a session ends."""

from __future__ import annotations

from typing import Final

CLEAN: Final = 0
FOUND: Final = 1
"""Something that fails was found."""
USAGE: Final = 2
"""A command was called wrongly, or a file could not be read or written."""
FAULT: Final = 3
"""The checker itself had an error."""
