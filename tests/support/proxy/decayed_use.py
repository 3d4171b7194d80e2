"""A cluster in which the past counts, half after ten seconds, and a user who has used something so long."""

from __future__ import annotations

from typing import Final

from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import ResourceManager, Scheduler

_HALF_LIFE: Final = "    properties: {fair.half-life: 10s}\n"
DECAYING: Final = f"""
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
{_HALF_LIFE}    queues:
    - name: first
      properties: {{application.sort.policy: users}}
    - name: second
"""
PLAIN: Final = DECAYING.replace(_HALF_LIFE, "")
"""The same without a half-life."""


def use_for_ten_seconds(scheduler: Scheduler, configuration: str, *, memory: int) -> None:
    """Let bob use memory in `root.first` of a cluster that has a quarter more, and ten seconds pass."""
    scheduler.register("rm", ResourceManager(), configuration=configuration)
    scheduler.update_node(node_request("n1", memory=memory * 5 // 4))
    scheduler.update_application(application_request("app", queue="root.first"))
    scheduler.update_allocation(ask_request("ask", memory=memory))
    scheduler.run_until_idle()
    scheduler.advance_to(scheduler.now_ns() + 10 * 10**9)
