"""Jobs over HTTP: each waits for its place in the cluster, but not longer than its client allows.

    pip install fastapi uvicorn
    uvicorn --app-dir examples web_service:app
    curl -X POST 'localhost:8000/jobs/report?wanted=2&patience_seconds=5'
    curl -X DELETE localhost:8000/jobs/report

The scheduler runs in the process of the service. To use one that `licorne serve` runs, pass
`AsyncScheduler(scheduler=lambda: RemoteScheduler("127.0.0.1:3333"))`; nothing else changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException

from licorne import AsyncScheduler, LicorneError, Placed, Refused, si

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: web}]}]}]"


def cores(count: int) -> si.Resource:
    """Return a number of cores, for a node or for a job."""
    return si.Resource(resources={"vcore": si.Quantity(value=1000 * count)})


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run the scheduler, with two nodes of four cores, for as long as the service runs."""
    async with AsyncScheduler(QUEUES) as scheduler:
        for node_id in ("n1", "n2"):
            node = si.NodeInfo(nodeID=node_id, action=si.NodeInfo.CREATE, schedulableResource=cores(4))
            await scheduler.add_nodes(node)
        app.state.scheduler, app.state.jobs = scheduler, {}
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/jobs/{name}", status_code=201)
async def begin(name: str, wanted: int = 1, patience_seconds: float = 30.0) -> dict[str, str]:
    """Wait for a place for a job; a timeout cancels the wait, which withdraws the ask."""
    scheduler: AsyncScheduler = app.state.scheduler
    application = si.AddApplicationRequest(applicationID=name, queueName="root.web")
    application.ugi.user = "web"
    ask = si.Allocation(allocationKey=name, applicationID=name, resourcePerAlloc=cores(wanted))
    try:
        await scheduler.add_applications(application)
    except LicorneError as error:
        raise HTTPException(409, str(error)) from error
    try:
        async with asyncio.timeout(patience_seconds):
            placed = app.state.jobs[name] = await scheduler.place(ask)
    except TimeoutError as error:
        raise HTTPException(503, f"no room for {name} within {patience_seconds:g} s") from error
    except Refused as error:
        raise HTTPException(422, error.reason) from error
    finally:
        if name not in app.state.jobs:
            await scheduler.send(si.ApplicationRequest(remove=[{"applicationID": name}]))
    return {"job": name, "node": placed.node_id}


@app.delete("/jobs/{name}")
async def end(name: str) -> dict[str, str]:
    """End a job; its resources become free for others."""
    placed: Placed | None = app.state.jobs.pop(name, None)
    if placed is None:
        raise HTTPException(404, f"no job {name} runs")
    await app.state.scheduler.send(si.ApplicationRequest(remove=[{"applicationID": name}]))
    await placed.released
    return {"job": name, "node": placed.node_id}
