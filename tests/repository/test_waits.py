"""Tests wait by `support.waiting`: what decides by a time of its own fails some day on a busy machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from support.sources import ROOT, modules_of, parsed, text_of
from support.waiting import WAIT_SECONDS

METHODS: Final = {"acquire", "alarm", "communicate", "join", "result", "settimeout", "timeout"} | {
    *("wait", "wait_for"),
}
FUNCTIONS: Final = {"happens", "wait_until"}
"""What has a limit among its arguments; other calls have one by name."""

WORDS: Final = re.compile(
    r"\.(acquire|alarm|monotonic|perf_counter|result|sleep|wait)\(|(?<!['\"])\.join\(|happens|timeout|wait_"
)
"""What a file has that waits; the others need not be parsed."""

COUNTING: Final = {"changes", "manager", "timers"}
"""Names of what waits for a number of things, or in virtual time."""

CLOCKS: Final = {"monotonic", "perf_counter"}

ELSEWHERE: Final = (
    *("bench/", "conformance/", "support/fuzz/", "support/kubernetes/kill_rounds.py"),  # run by hand
    *("support/kubernetes/kubelet.py", "support/proxy/page_frames.py"),  # likewise, and does work at its time
    *("lockcheck/corpus/", "support/lockcheck/hooked_program.py"),  # to wait is what is found in them
    "support/waiting.py",
    *("model/", "proxy/fuzz/test_thread_control.py"),  # in virtual time
)

ALLOWED: Final[Mapping[str, set[str]]] = {
    # To sleep is what is found.
    "actors/test_checked_asks.py": {"time.sleep(0.0001)"},
    "lockcheck/findings/test_fingerprints.py": {"time.sleep(1e-09)"},
    # Nobody is there, and that is said after the time.
    "proxy/wire/client/test_reconnecting.py": {"RemoteScheduler(address, timeout=2)"},
    "proxy/wire/door/test_worker_checks.py": {"RemoteScheduler('127.0.0.1:1', timeout=0.1)"},
    # A lease that is handed over is taken before it has expired.
    "proxy/kubernetes/deploy/test_replicas.py": {
        "happens(lambda: 'nodeName' in api.ok('GET', f'{pods}/meanwhile')['spec'], HANDOVER_SECONDS)",
        "happens(lambda: holder(api) not in {'', before}, HANDOVER_SECONDS)",
    },
    # In virtual time.
    "proxy/core/explanation/test_text.py": {"scene.wait(31)"},
    "proxy/views/page/test_reasons.py": {"scene.wait(31)"},
    # They set a pace, and decide nothing.
    "support/door/cluster_program.py": {"cluster.all_placed.wait(_TICK_SECONDS)"},
    "proxy/wire/server/test_watchdog.py": {"threading.Event().wait(0.01)", "process.wait(5)"},
    "support/proxy/listening.py": {"self._meeting.wait_for(lambda: self._inside > 1, _MOMENT_SECONDS)"},
}


def own_waits(source: str) -> Iterator[str]:
    """Find what decides by a time of its own, as it is written."""
    if not WORDS.search(source):
        return
    tree = parsed(source)
    constants = {
        ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0]): node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_short(node, constants):
            yield ast.unparse(node)
        elif isinstance(node, ast.While | ast.Assert) and any(map(is_bound_of_time, ast.walk(node.test))):
            yield ast.unparse(node.test)


def is_short(call: ast.Call, constants: Mapping[str, object]) -> bool:
    """Return whether a call is a sleep, or waits for less than what all tests wait for."""
    if isinstance(call.func, ast.Attribute):
        owner, name = getattr(call.func.value, "id", ""), call.func.attr
        is_wait = name in METHODS and owner not in COUNTING
    else:
        owner, name = "", getattr(call.func, "id", "")
        is_wait = name in FUNCTIONS
    if name == "sleep" and owner in {"time", "asyncio"}:
        return ast.unparse(call.args[0]) != "0"
    limits = [
        each.value for each in call.keywords if each.arg == "timeout" or (is_wait and each.arg == "seconds")
    ]
    limits += call.args if is_wait else []
    return any(0 < seconds_of(each, constants) < WAIT_SECONDS for each in limits)


def seconds_of(limit: ast.expr, constants: Mapping[str, object]) -> float:
    """Return the number that a limit is, written here or above; 0 where that is not known."""
    if isinstance(limit, ast.BinOp) and isinstance(limit.op, ast.Mult):
        return seconds_of(limit.left, constants) * seconds_of(limit.right, constants)
    value = constants.get(limit.id) if isinstance(limit, ast.Name) else getattr(limit, "value", None)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def is_bound_of_time(node: ast.AST) -> bool:
    """Return whether a comparison holds only for some time; that some time has passed may be compared."""
    if not isinstance(node, ast.Compare):
        return False
    has_passed = isinstance(node.ops[0], ast.Gt | ast.GtE)
    return not has_passed and any(getattr(each, "attr", "") in CLOCKS for each in ast.walk(node))


def test_no_test_waits_by_a_time_of_its_own() -> None:
    """It uses `wait_until` and `WAIT_SECONDS`, `EXPIRING_SECONDS` for what never comes, or is named above."""
    paths = {path.relative_to(ROOT / "tests").as_posix(): path for path in modules_of("tests")}
    found = {
        name: set(own_waits(text_of(path))) for name, path in paths.items() if not name.startswith(ELSEWHERE)
    }

    assert len(found) > 500
    assert dict(ALLOWED) == {name: waits for name, waits in found.items() if waits}


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(0.1)",
        "await asyncio.sleep(0.1)",
        "thread.join(2)",
        "assert done.wait(timeout=1)",
        "SOON = 5\nfuture.result(2 * SOON)",
        "subprocess.run(command, timeout=5)",
        "wait_until(is_there, 'it is there', seconds=20)",
        "while time.monotonic() < ends:\n    pass",
        "assert time.monotonic() - began < 2",
    ],
)
def test_a_wait_of_its_own_is_found(line: str) -> None:
    """Whatever it waits for."""
    assert 1 == len(list(own_waits(line)))


@pytest.mark.parametrize(
    "line",
    [
        "await asyncio.sleep(0)",
        "lock.acquire(timeout=0)",
        "thread.join(WAIT_SECONDS)",
        "assert not lock.acquire(timeout=EXPIRING_SECONDS)",
        "', '.join(names)",
        "assert time.monotonic() - began >= 0.2",
        "manager.wait(3)",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    """Those of the one helper, and those that only make it longer."""
    assert [] == list(own_waits(line))
