"""A real Prometheus scrapes a real server, and expressions of dashboards have answers."""

from __future__ import annotations

from pathlib import Path

from support.proxy.listening import Listener
from support.proxy.manager_requests import ask_request
from support.proxy.prometheus import needs_prometheus, scraping
from support.proxy.running_scheduler import begin, running

from licorne.proxy.views.rest.running import RestServer

RATE = 'sum(rate(yunikorn_scheduler_container_allocation_attempt_total{state="allocated"}[10s]))'
USE = (
    'sum by (queue) (yunikorn_queue_resource{queue="root",resource="memory",state="allocated"})'
    ' / sum by (queue) (yunikorn_queue_resource{queue="root",resource="memory",state="max"})'
)
LATENCY = (
    "histogram_quantile(0.99, "
    "sum(rate(yunikorn_scheduler_scheduling_latency_milliseconds_bucket[10s])) by (le))"
)


@needs_prometheus
def test_prometheus_answers_the_expressions_of_dashboards(tmp_path: Path) -> None:
    """The rate of allocations, the use of a queue over its maximum, and the 99th percentile of latency."""
    with running() as scheduler, RestServer(scheduler) as server:
        listener = Listener()
        begin(scheduler, listener, memory=1000)
        with scraping(tmp_path, f"127.0.0.1:{server.port}", "/ws/v1/metrics") as prometheus:
            prometheus.wait_for(USE, lambda values: list(values.values()) == [0])
            for number in range(10):
                scheduler.update_allocation(ask_request(f"ask-{number}", memory=50))
            listener.wait_for_count("placed", 10)
            prometheus.wait_for(USE, lambda values: list(values.values()) == [0.5])
            (rate,) = prometheus.wait_for(RATE, lambda values: sum(values.values()) > 0).values()
            (latency,) = prometheus.wait_for(LATENCY, lambda values: sum(values.values()) > 0).values()

    assert rate <= 10 / 0.2
    assert latency <= 1000
