"""Runs the tests of published packages without and with checked locks: `make suites`.

Every suite runs several times without lockcheck and as often with `--lockcheck=full`, in turns, and more
often while a test deviates: with lockcheck it never ended as it did without. One that did so in some of the
runs is counted as unsteady. What lockcheck finds does not count as a failure. The command fails if a test
deviates, a run does not end, or a finding from R2 on has no judgement in docs/lockcheck-suites.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.lockcheck.published_suites import SUITES, Suite
from support.lockcheck.suite_environments import CACHE, ROOT, SuiteError, lockcheck_wheel, prepared
from support.lockcheck.suite_plugin import OUTCOMES_VARIABLE

PAGE: Final = ROOT / "docs" / "lockcheck-suites.md"
RUN_SECONDS_MAX: Final = 600
MORE_RUNS_MAX: Final = 2
"""While a test deviates: some have limits of time that a loaded machine exceeds."""
JUDGED: Final = ("R2", "R4", "R5")
CHECKED: Final = ("--lockcheck=full", "--lockcheck-adopt=program")
UNCHECKED: Final = ("-p", "no:licorne.lockcheck.pytest_plugin")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite."""

    outcomes: Mapping[str, str]
    """How each test ended, by name."""
    processor_seconds: float
    """Of all its processes."""
    findings: tuple[tuple[str, str, str], ...] = ()
    """Rung, fingerprint and text of each finding."""
    trouble: str | None = None
    """Why there are no outcomes."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What the runs of one suite say."""

    suite: str
    tests: int
    deviations: tuple[str, ...]
    unsteady: int
    """Tests that ended in several ways, but sometimes the same with and without lockcheck."""
    ratio: float
    """Processor time with lockcheck, as a multiple of that without."""
    findings: tuple[tuple[str, str, str], ...]

    def row(self) -> str:
        """Return the row of the table."""
        rungs = Counter(rung for rung, _, _ in self.findings)
        same = "same" if not self.deviations else f"{len(self.deviations)} differ"
        unsteady = f", {self.unsteady} unsteady" if self.unsteady else ""
        shown = ", ".join(f"{rungs[rung]} {rung}" for rung in sorted(rungs)) or "none"
        return f"| {self.suite} | {self.tests} | {same}{unsteady} | {self.ratio:.2f} | {shown} |"


def compared(suite: str, without: Sequence[Run], checked: Sequence[Run]) -> Compared:
    """Compare the runs of one suite by the names of its tests."""
    usual, new = _by_test(without), _by_test(checked)
    deviations = {f"the run: {run.trouble}" for run in (*without, *checked) if run.trouble is not None}
    if not any(run.trouble for run in checked):
        deviations |= {f"{name}: not run" for name in usual.keys() - new.keys()}
    unsteady = {name for name, outcomes in usual.items() if len(outcomes | new.get(name, set())) > 1}
    for name, outcomes in new.items():
        if not outcomes & usual.get(name, set()):
            before = " or ".join(sorted(usual.get(name, ()))) or "not run"
            deviations.add(f"{name}: {' or '.join(sorted(outcomes))}, without {before}")
            unsteady.discard(name)
    found = {
        fingerprint: (rung, fingerprint, text) for run in checked for rung, fingerprint, text in run.findings
    }
    seconds = min(run.processor_seconds for run in without)
    return Compared(
        suite,
        tests=len(usual),
        deviations=tuple(sorted(deviations)),
        unsteady=len(unsteady),
        ratio=min(run.processor_seconds for run in checked) / seconds,
        findings=tuple(sorted(found.values())),
    )


def _by_test(runs: Sequence[Run]) -> dict[str, set[str]]:
    """Return how each test ended in some of the runs."""
    outcomes: dict[str, set[str]] = {}
    for run in runs:
        for name, outcome in run.outcomes.items():
            outcomes.setdefault(name, set()).add(outcome)
    return outcomes


def unjudged(findings: Sequence[tuple[str, str, str]], page: str) -> list[str]:
    """Return the findings that need a judgement and have none on the page."""
    return [
        f"{rung} {fingerprint}: {text}"
        for rung, fingerprint, text in findings
        if rung in JUDGED and fingerprint not in page
    ]


def run_suite(suite: Suite, interpreter: Path | str, source: Path, options: Sequence[str], log: Path) -> Run:
    """Run the tests of a package once."""
    empty = source / "lockcheck-suites.ini"
    empty.write_text("[pytest]\n", encoding="utf-8")
    outcomes, report = log.with_suffix(".outcomes.json"), log.with_suffix(".report.json")
    for old in (outcomes, report):
        old.unlink(missing_ok=True)
    command = [
        str(interpreter), "-m", "pytest", "-q", "-p", "suite_plugin", "-p", "no:cacheprovider",
        "--continue-on-collection-errors", "-o", "addopts=",
        "-c", suite.configuration or empty.name, "-o", "faulthandler_timeout=100",
        *(f"--ignore={path}" for path in suite.ignored), *suite.options, *options, *suite.tests,
    ]  # fmt: skip
    if "--lockcheck=full" in options:
        command.append(f"--lockcheck-json={report}")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("LOCKCHECK", "PYTEST"))
    }
    environment |= {"PYTHONPATH": str(Path(__file__).parent), OUTCOMES_VARIABLE: str(outcomes)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    trouble = _ended(command, source, environment, log)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not outcomes.exists():
        trouble = trouble or f"no test was run, see {log}"
    return Run(_json(outcomes) or {}, seconds, _findings(report), trouble)


def _ended(command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> str | None:
    """Run a command in a session of its own; return why it did not end."""
    with log.open("wb") as output, subprocess.Popen(  # noqa: S603 - our own words only
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            process.wait(RUN_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"not ended after {RUN_SECONDS_MAX} s, see {log}"
    return None


def _json(path: Path) -> dict[str, str] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _findings(report: Path) -> tuple[tuple[str, str, str], ...]:
    if not report.exists():
        return ()
    document = json.loads(report.read_text(encoding="utf-8"))
    return tuple((one["rung"], one["fingerprint"], one["text"]) for one in document["findings"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen suites, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("packages", nargs="*", help="only these packages")
    parser.add_argument("--runs", type=int, default=2, help="how often a suite runs, without and with (2)")
    given = parser.parse_args(arguments)
    chosen = [suite for suite in SUITES if not given.packages or suite.package in given.packages]
    wheel, page = lockcheck_wheel(), PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    rows, complaints = [], []
    for suite in chosen:
        try:
            result = _result(suite, wheel, given.runs)
        except SuiteError as error:
            complaints.append(f"{suite.name}: {error}")
            continue
        print(result.row(), flush=True)  # noqa: T201 - a command
        rows.append(result.row())
        complaints += [
            f"{suite.name}: {line}" for line in (*result.deviations, *unjudged(result.findings, page))
        ]
    (CACHE / "table.md").write_text("\n".join([*rows, "", *complaints, ""]), encoding="utf-8")
    print("\n".join(complaints) or f"{len(rows)} suites end as without lockcheck")  # noqa: T201
    return 1 if complaints else 0


def _result(suite: Suite, wheel: Path, runs: int) -> Compared:
    interpreter, source = prepared(suite, wheel)
    logs = CACHE / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    without: list[Run] = []
    checked: list[Run] = []
    for number in range(runs + MORE_RUNS_MAX):
        if number >= runs and not compared(suite.name, without, checked).deviations:
            break
        for options, into, word in ((UNCHECKED, without, "without"), (CHECKED, checked, "with")):
            log = logs / f"{suite.package}-{word}-{number}.log"
            into.append(run_suite(suite, interpreter, source, options, log))
    return compared(suite.name, without, checked)


if __name__ == "__main__":
    sys.exit(main())
