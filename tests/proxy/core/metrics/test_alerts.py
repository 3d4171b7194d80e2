"""The dashboard and the alerts that are shipped: the real Prometheus runs them, and each metric exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml
from support.programs import run_python
from support.proxy.preempted_work import preempt, start_victim
from support.proxy.prometheus import needs_prometheus, scraping

from licorne import Scheduler
from licorne.proxy.core.metrics.exporter import registry_of
from licorne.proxy.views.rest.running import RestServer

ROOT: Final = Path(__file__).parents[4]
MONITORING: Final = ROOT / "deploy" / "monitoring"
PAGE: Final = ROOT / "docs" / "monitoring.md"
DASHBOARD: Final = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
RULES: Final = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))
ALERTS: Final[list[dict[str, Any]]] = RULES["groups"][0]["rules"]
EXPRESSIONS: Final = [
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *(alert["expr"] for alert in ALERTS),
]
_METRIC: Final = re.compile(r"\b(?:licorne|yunikorn|process)_\w+")


@needs_prometheus
def test_the_alerts_fire_when_they_should() -> None:
    """Each for its cause, and not before."""
    promtool = shutil.which("promtool", path="/usr/bin:/usr/local/bin")
    assert promtool is not None, "promtool is part of prometheus: make prometheus"
    ran = subprocess.run(  # noqa: S603 - no shell
        [promtool, "test", "rules", "alerts.tests.yaml"],
        cwd=MONITORING,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == ran.returncode, ran.stdout + ran.stderr
    tested = (MONITORING / "alerts.tests.yaml").read_text(encoding="utf-8")
    assert (6, []) == (len(ALERTS), [each["alert"] for each in ALERTS if each["alert"] not in tested])


def test_each_metric_in_them_is_one_of_a_scheduler() -> None:
    """A name that is misspelled would never fire."""
    with Scheduler(engine="direct") as scheduler:
        start_victim(scheduler)
        preempt(scheduler, after_seconds=1)
        families = list(registry_of(scheduler).collect())
    known = {sample.name for family in families for sample in family.samples}
    known |= {family.name for family in families}
    known |= {f"{family.name}_bucket" for family in families if family.type == "histogram"}

    assert set() == {name for text in EXPRESSIONS for name in _METRIC.findall(text)} - known


@needs_prometheus
def test_prometheus_reads_each_expression(tmp_path: Path) -> None:
    """Of the dashboard and of the alerts, on a scheduler that has preempted; the first panel has values."""
    with Scheduler(engine="direct") as scheduler:
        start_victim(scheduler)
        preempt(scheduler, after_seconds=1)
        with (
            RestServer(scheduler) as server,
            scraping(tmp_path, f"127.0.0.1:{server.port}", "/ws/v1/metrics") as prometheus,
        ):
            prometheus.wait_for(EXPRESSIONS[0], lambda values: list(values.values()) == [0.9])
            answers = [prometheus.values(text) for text in EXPRESSIONS]
            prometheus.wait_for(ALERTS[0]["expr"], lambda values: list(values.values()) == [1])

    assert len(EXPRESSIONS) == len(answers)


def test_the_lines_for_logging_pass_the_log_on(tmp_path: Path) -> None:
    """As the page has them, in a program of its own."""
    lines = PAGE.read_text(encoding="utf-8").partition("```python\nimport logging\n")[2].partition("```")[0]
    program = tmp_path / "program.py"
    program.write_text(
        f"import logging\n{lines}"
        "logging.basicConfig(level=logging.INFO, format='%(name)s %(levelname)s %(message)s')\n"
        "from licorne import ResourceManager, Scheduler\n"
        "with Scheduler(engine='direct') as scheduler:\n"
        "    scheduler.register('rm', ResourceManager())\n",
        encoding="utf-8",
    )
    ran = run_python(str(program))

    assert 0 == ran.returncode, ran.stderr
    assert "licorne INFO RM 'rm' has registered" in ran.stderr
