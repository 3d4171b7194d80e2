"""How fluid the page is with a large cluster, and what its live data costs the scheduler: `make page-frames`.

Frames are measured in chromium, as the time between two calls of `requestAnimationFrame`, while tasks end and
begin all the time. Those of a document that does nothing, in the same browser, say what the machine itself
delays; the time of the page's own scripts and its tasks of more than 50 ms say what the page does. The cost
is the pace of the scheduler with a viewer, in a process of its own, and without.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import CDPSession, Page
from support.proxy.browsing import chromium
from support.proxy.page_cluster import GIB, QUEUES, ask, node, serving_page, submit
from support.waiting import wait_until

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

NODES: Final = 10_000
APPLICATIONS: Final = 5_000
MEASURED_SECONDS: Final = 12
TASKS_A_BATCH: Final = 200
PACE_TASKS: Final = 10_000
ROUNDS: Final = 5
SWITCH_SECONDS: Final = 0.001
"""As `licorne serve` sets it."""
FRAMES: Final = """
(seconds) => new Promise((resolve) => {
  const frames = [];
  const tasks = [];
  new PerformanceObserver((list) => tasks.push(...list.getEntries())).observe({ entryTypes: ["longtask"] });
  const began = performance.now();
  let last = began;
  const step = (now) => {
    frames.push(now - last);
    last = now;
    if (now - began < seconds * 1000) requestAnimationFrame(step);
    else resolve([frames.slice(1), tasks.map((task) => task.duration)]);
  };
  requestAnimationFrame(step);
})
"""
MESSAGES: Final = "async () => (await import('/store.js')).store.messages"
VIEWER: Final = """
import sys, urllib.request
for line in urllib.request.urlopen(sys.argv[1]):
    if line.startswith(b"event: full"):
        print("looks", flush=True)
"""


class Cluster(ResourceManager):
    """Ten thousand nodes and five thousand applications; it counts what is placed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.placed = 0
        self.scheduler = scheduler
        self._serial = 0
        self._running: list[tuple[str, str]] = []
        scheduler.register("rm", self, configuration=QUEUES.replace("vcore: 600", "vcore: 600k"))
        for start in range(0, NODES, 500):
            infos = [node(f"node-{at}") for at in range(start, start + 500)]
            scheduler.update_node(si.NodeRequest(rmID="rm", nodes=infos))
        for at in range(APPLICATIONS):
            submit(scheduler, f"app-{at}", "root.batch", user=f"user-{at % 100}")
            self.begin(f"app-{at}", 2)
        wait_until(lambda: self.placed == 2 * APPLICATIONS, "everything is placed", seconds=300)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.placed += len(response.new)

    def begin(self, application: str, tasks: int) -> None:
        keys = [f"t{self._serial + at}" for at in range(tasks)]
        self._serial += tasks
        self._running += [(application, key) for key in keys]
        ask(self.scheduler, application, *keys, memory=4 * GIB, vcore=500)

    def end(self, tasks: int) -> None:
        ended, self._running = self._running[:tasks], self._running[tasks:]
        request = si.AllocationRequest(rmID="rm")
        for application, key in ended:
            request.releases.allocationsToRelease.add(
                applicationID=application, allocationKey=key, terminationType=si.STOPPED_BY_RM
            )
        self.scheduler.update_allocation(request)

    def churn(self, round_number: int, tasks: int) -> None:
        """End some tasks, and begin as many in other applications."""
        self.end(tasks)
        for at in range(0, tasks, 2):
            self.begin(f"app-{(round_number * tasks + at) * 7 % APPLICATIONS}", 2)


@contextmanager
def churning(cluster: Cluster) -> Iterator[None]:
    """Change some hundred nodes and applications a second."""
    stop = threading.Event()

    def run() -> None:
        number = 0
        while not stop.wait(0.05):
            cluster.churn(number, 20)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure_frames(page: Page, origin: str, view: str) -> dict[str, float | str]:
    """Return how long the frames of a view take, in milliseconds; without a view, of an empty document."""
    page.goto(f"{origin}/#{view}" if view else f"{origin}/icon.svg")
    if view:
        page.wait_for_selector('#connection[data-state="live"]')
    page.wait_for_timeout(2000)
    before = page.evaluate(MESSAGES) if view else 0
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    scripts_before = script_seconds(session)
    frames, tasks = page.evaluate(FRAMES, MEASURED_SECONDS)
    frames.sort()
    scripts = script_seconds(session) - scripts_before
    session.detach()
    messages = page.evaluate(MESSAGES) - before if view else 0
    return {
        "view": view or "(empty document)",
        "updates a second": round(messages / MEASURED_SECONDS, 1),
        "scripts %": round(scripts / MEASURED_SECONDS * 100, 1),
        "longest task ms": round(max(tasks, default=0)),
        "frames": len(frames),
        "median ms": round(statistics.median(frames), 1),
        "p95 ms": round(frames[int(len(frames) * 0.95)], 1),
        "p99 ms": round(frames[int(len(frames) * 0.99)], 1),
        "most ms": round(frames[-1], 1),
    }


def script_seconds(session: CDPSession) -> float:
    """Return for how long the scripts of a document have run."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "ScriptDuration"))


def pace(cluster: Cluster) -> float:
    """Return how many tasks a second end and are placed."""
    began, before = time.monotonic(), cluster.placed
    for number in range(PACE_TASKS // TASKS_A_BATCH):
        cluster.churn(number, TASKS_A_BATCH)
    wait_until(lambda: cluster.placed == before + PACE_TASKS, "everything is placed", seconds=300)
    return PACE_TASKS / (time.monotonic() - began)


def measure_cost(cluster: Cluster, origin: str) -> dict[str, float]:
    """Return the pace without and with a viewer, in turns."""
    without, with_viewer = [], []
    for _ in range(ROUNDS):
        without.append(pace(cluster))
        command = [sys.executable, "-c", VIEWER, f"{origin}/licorne/v1/live"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as viewer:  # noqa: S603 - ourselves
            assert viewer.stdout is not None
            viewer.stdout.readline()
            with_viewer.append(pace(cluster))
            viewer.kill()
    plain, looked_at = statistics.median(without), statistics.median(with_viewer)
    return {"without": round(plain), "with a viewer": round(looked_at), "ratio": round(looked_at / plain, 3)}


def main() -> None:
    """Print the figures as JSON."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with Scheduler() as scheduler:
        cluster = Cluster(scheduler)
        with serving_page(scheduler) as origin:
            with chromium() as browser, churning(cluster):
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                for view in ("", "queues", "nodes", "applications", "usage"):
                    print(json.dumps(measure_frames(page, origin, view)), flush=True)  # noqa: T201
            print(json.dumps({"tasks a second": measure_cost(cluster, origin)}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
