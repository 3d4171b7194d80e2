"""`python -m licorne.lockcheck`."""

from __future__ import annotations

import sys

from .commands.command import main

if __name__ == "__main__":
    sys.exit(main())
