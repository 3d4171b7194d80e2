"""A run of tests may be killed at any time; its cluster must not stay on the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.kubernetes.building import UnbuiltError
from support.kubernetes.cluster import installed_programs
from support.waiting import wait_until

pytestmark = pytest.mark.kubernetes

RUN = """
import sys, time
from pathlib import Path
from support.kubernetes.cluster import running
with running(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(100)
"""


def programs_with(argument: str) -> set[str]:
    """Return the first word of each process that has this text within its arguments, but not of Python."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            words = (folder / "cmdline").read_text().split("\0")
            if any(argument in word for word in words):
                found.add(Path(words[0]).name)
    return found - {Path(sys.executable).name}


def test_nothing_of_a_cluster_outlives_a_run_that_is_killed(tmp_path: Path) -> None:
    """The kernel ends the servers with the thread that started them."""
    try:
        installed_programs()
    except UnbuiltError as error:
        pytest.skip(str(error))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as run:  # noqa: S603
        assert run.stdout is not None
        assert "ready\n" == run.stdout.readline()
        before = programs_with(str(tmp_path))
        run.kill()

    wait_until(lambda: not programs_with(str(tmp_path)))

    assert {"etcd", "kube-apiserver"} == before
