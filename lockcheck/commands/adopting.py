"""The option `--adopt` of the commands that run a program."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..adoption.installation import Adoption
from ..adoption.scope import HELP, VARIABLE, Scope
from .describing import described
from .settings import project_settings


def add_adopt_option(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--adopt", metavar="WHOSE", help=HELP)


@contextmanager
def adopting(options: argparse.Namespace) -> Iterator[None]:
    """Adopt what the options or the environment say while the body runs, in processes that it starts too.

    The locks of other libraries that the project describes are checked meanwhile, in this process.

    Raises:
        LockUsageError: they name nothing, or a description is wrong.
    """
    scope = Scope.of_environment(getattr(options, "adopt", None), "--adopt")
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = scope.text
    try:
        with Adoption(scope, awaits_session=True), described(project_settings(Path.cwd()).descriptions):
            yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
