"""A program that runs tests of CPython itself, and writes the outcome of each to a file, as JSON."""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path


class _Outcomes(unittest.TestResult):
    """What became of each test."""

    def __init__(self) -> None:
        super().__init__()
        self.by_test: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - as in unittest
        """Take it for ended only when it says so."""
        self.by_test[test.id()] = "began"
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - as in unittest
        """Note success, unless something else was noted."""
        if self.by_test[test.id()] == "began":
            self.by_test[test.id()] = "passed"
        super().stopTest(test)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - as in unittest
        """Note that it was skipped."""
        self.by_test[test.id()] = "skipped"
        super().addSkip(test, reason)

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802 - as in unittest
        """Note that it failed, and how."""
        super().addFailure(test, err)  # type: ignore[arg-type] # passed on
        self.by_test[test.id()] = f"failed: {self.failures[-1][1]}"

    def addError(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802 - as in unittest
        """Note that it failed, and how."""
        super().addError(test, err)  # type: ignore[arg-type] # passed on
        self.by_test[test.id()] = f"failed: {self.errors[-1][1]}"


def main(file: str, *names: str) -> None:
    """Run the tests of these names; write what became of them."""
    outcomes = _Outcomes()
    unittest.TestLoader().loadTestsFromNames(names).run(outcomes)
    Path(file).write_text(json.dumps(outcomes.by_test), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
