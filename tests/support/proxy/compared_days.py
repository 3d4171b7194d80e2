"""Random days with 30 limits, of which one is changed, for the tests of what a comparison explains."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import NamedTuple

from licorne.proxy.play.comparison.comparison import TwoRuns, compared, with_why
from licorne.proxy.play.simulation.runs import run_each, run_settings
from licorne.proxy.play.simulation.workloads.inputs import InputOptions, load_input

from .simulation_builders import written

LIMITS = 30
_KINDS = ("resources.max.vcore", "resources.max.memory", 'limits.users ["*"].maxresources.vcore')


class Day(NamedTuple):
    """The files of A, B and the input, and the name of the setting that is changed."""

    a: Path
    b: Path
    input: Path
    changed: str


def a_day(folder: Path, seed: int) -> Day:
    """Write a day: ten queues with three limits each; B lowers one, and sets what has no effect in all."""
    random = Random(seed)  # noqa: S311 - a test is repeatable
    limits = [(random.randint(7, 12), random.randint(4, 12), random.randint(3, 6)) for _ in range(10)]
    queue, kind = random.randrange(10), random.randrange(3)
    lower = [list(each) for each in limits]
    # A user may not have more than the queue: the maximum of vcore stays at 6 or more.
    lower[queue][kind] = max((6, 1, 1)[kind], lower[queue][kind] - random.randint(1, 6))
    applications = [
        {
            "name": f"job{number}",
            "queue": f"root.q{random.randrange(10)}",
            "user": f"u{random.randrange(4)}",
            "submit": f"{random.randrange(60)}m",
            "tasks": [
                {
                    "count": random.randint(1, 6),
                    "resources": {"vcore": random.randint(1, 3), "memory": f"{random.randint(1, 3)}Gi"},
                    "duration": f"{random.randint(5, 40)}m",
                }
            ],
        }
        for number in range(40)
    ]
    day = {
        "name": "day",
        "nodes": [{"prefix": "n", "count": 6, "resources": {"vcore": 16, "memory": "16Gi"}}],
        "applications": applications,
    }
    return Day(
        written(folder / f"a{seed}.yaml", _queues(limits)),
        written(folder / f"b{seed}.yaml", _queues(lower, maxapplications=500)),
        written(folder / f"day{seed}.yaml", json.dumps(day)),
        f"{_KINDS[kind]} of root.q{queue}",
    )


def _queues(limits: list[tuple[int, int, int]] | list[list[int]], **more: int) -> str:
    leaves = [
        {
            "name": f"q{number}",
            "resources": {"max": {"vcore": vcore, "memory": f"{memory}Gi"}},
            "limits": [{"limit": "each", "users": ["*"], "maxresources": {"vcore": own}}],
            **more,
        }
        for number, (vcore, memory, own) in enumerate(limits)
    ]
    root = {"name": "root", "submitacl": "*", "queues": leaves}
    return json.dumps({"partitions": [{"name": "default", "queues": [root]}]}, indent=1)


def compared_with_reasons(a: Path, b: Path, input_path: Path) -> TwoRuns:
    """Compare two configurations, with the reasons."""
    work = load_input(InputOptions(path=input_path))
    settings = (run_settings(queues=a), run_settings(queues=b))
    runs = run_each(work, {"a": settings[0], "b": settings[1]})
    both = (runs["a"], runs["b"])
    return with_why(compared((str(a), str(b)), both, ()), work, settings, both, lambda: False)
