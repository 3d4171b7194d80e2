"""A cluster for the page to show, and the page of its scheduler, served over HTTP on a free port."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp
from support.waiting import WAIT_SECONDS

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.rest.application import rest_app

GIB: Final = 1 << 30
QUEUES: Final = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        limits:
          - {limit: staff, groups: [staff], maxresources: {vcore: 600}}
        queues:
          - name: production
            resources:
              guaranteed: {memory: 400Gi, vcore: 300}
              max: {memory: 900Gi, vcore: 400}
            properties: {preemption.delay: 1s}
            queues:
              - name: web
                resources:
                  guaranteed: {memory: 200Gi}
              - name: billing
                resources:
                  max: {memory: 256Gi}
                limits:
                  - {limit: ada, users: [ada], maxresources: {memory: 128Gi}, maxapplications: 4}
          - name: research
            resources:
              guaranteed: {memory: 150Gi}
              max: {memory: 700Gi}
            queues:
              - {name: biology, resources: {max: {memory: 300Gi, vcore: 120}}}
              - {name: physics}
          - name: batch
            resources:
              guaranteed: {memory: 80Gi}
"""


def node(name: str, *, memory: int = 64 * GIB, vcore: int = 16000, drained: bool = False) -> si.NodeInfo:
    action = si.NodeInfo.CREATE_DRAIN if drained else si.NodeInfo.CREATE
    info = si.NodeInfo(nodeID=name, action=action)
    info.attributes["si/rackname"] = f"rack-{sum(map(ord, name)) % 8}"
    quantities = {"memory": memory, "vcore": vcore, "pods": 110}
    for kind, quantity in quantities.items():
        info.schedulableResource.resources[kind].value = quantity
    return info


def submit(
    scheduler: Scheduler, name: str, queue: str, *, user: str = "ada", groups: tuple[str, ...] = ("staff",)
) -> None:
    request = si.ApplicationRequest(rmID="rm")
    new = request.new.add(applicationID=name, queueName=queue)
    new.ugi.user = user
    new.ugi.groups.extend(groups)
    scheduler.update_application(request)


def ask(
    scheduler: Scheduler,
    application: str,
    *keys: str,
    memory: int = 4 * GIB,
    vcore: int = 1000,
    preempts: bool = False,
) -> None:
    request = si.AllocationRequest(rmID="rm")
    for key in keys:
        each = request.allocations.add(allocationKey=key, applicationID=application)
        for kind, quantity in {"memory": memory, "vcore": vcore, "pods": 1}.items():
            each.resourcePerAlloc.resources[kind].value = quantity
        each.preemptionPolicy.allowPreemptOther = preempts
        each.preemptionPolicy.allowPreemptSelf = True
    scheduler.update_allocation(request)


def fill(scheduler: Scheduler, manager: ResourceManager, *, nodes: int = 24) -> None:
    """Register a manager whose cluster has queues that are full, half full, and owed something."""
    scheduler.register("rm", manager, configuration=QUEUES)
    infos = [node(f"node-{at}", drained=at % 11 == 5) for at in range(nodes)]
    scheduler.update_node(si.NodeRequest(rmID="rm", nodes=infos))
    users = ("ada", "bob", "eve", "joe")
    leaves = ("production.web", "production.billing", "research.biology", "research.physics", "batch")
    for at in range(30):
        name = f"{leaves[at % 5].rpartition('.')[2]}-{at}"
        submit(scheduler, name, f"root.{leaves[at % 5]}", user=users[at % 4])
        keys = [f"{name}-{each}" for each in range(3 + at % 7 * 2)]
        ask(scheduler, name, *keys, memory=(2 + at % 5 * 2) * GIB, vcore=500 + at % 4 * 750)
    submit(scheduler, "lost", "root.nowhere")
    submit(scheduler, "genome", "root.research.biology", user="eve")
    ask(scheduler, "genome", "genome-1", memory=48 * GIB, vcore=90000, preempts=True)


class Answer(NamedTuple):
    """What a server answers; the names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def document(self) -> Any:
        return json.loads(self.text)


def fetch(origin: str, path: str, **headers: str) -> Answer:
    """Ask for a path as it is written: no client mends it on its way."""
    connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=WAIT_SECONDS)
    try:
        connection.request(
            "GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        response = connection.getresponse()
        known = {name.lower(): text for name, text in response.getheaders()}
        return Answer(response.status, known, response.read().decode())
    finally:
        connection.close()


@contextmanager
def serving(app: ASGIApp, *, port: int = 0, tls: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Serve an application on a port of this machine, a free one unless told; the value is its origin.

    Args:
        app: The application.
        port: The port.
        tls: The files with a certificate and its key.
    """
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", ws="none", access_log=False)
    config.ssl_certfile, config.ssl_keyfile = tls or (None, None)
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    ready: threading.Event = threading.Event()
    startup = server.startup

    async def started(sockets: list[object] | None = None) -> None:
        await startup(sockets)  # type: ignore[arg-type] # handed on as it came
        ready.set()

    server.startup = started  # type: ignore[assignment,method-assign] # the one way to learn that it listens
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), name="page-server")
    thread.start()
    try:
        assert ready.wait(WAIT_SECONDS), "the server did not start"
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive(), "the server did not end"


@contextmanager
def serving_page(scheduler: Scheduler, *, ui_dir: Path | None = None, port: int = 0) -> Iterator[str]:
    """Serve the page of a scheduler; the value is its origin."""
    with serving(rest_app(scheduler, ui_dir=ui_dir), port=port) as origin:
        yield origin
