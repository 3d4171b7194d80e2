"""What queue documents show of a guarantee that is lent in part."""

from __future__ import annotations

import pytest
from support.model.builders import a_resource
from support.model.harness import Harness

from licorne.model.queues import quota
from licorne.model.views.shown import queue_and_above
from licorne.proxy.core.documents.queues import QueueDocument, queue_document

QUEUES = """
- name: p
  parent: true
  childtemplate: {resources: {guaranteed: {memory: 3}, lend: {memory: 1}}}
  queues:
  - {name: a, resources: {guaranteed: {memory: 8}, lend: {memory: 2}}}
  - {name: b}
- {name: c}
"""


def document(h: Harness, path: str) -> QueueDocument:
    return queue_document(queue_and_above(h.queue(path)))


@pytest.mark.parametrize("path", ["root", "root.p", "root.p.a", "root.p.b", "root.c"])
def test_the_headroom_of_a_document_is_that_of_the_queue(path: str) -> None:
    """Without what others keep back."""
    h = Harness(QUEUES)
    h.nodes("node", capacity=a_resource(memory=20))
    h.submit("b", "root.p.b")
    h.ask_and_run("b1", application_id="b", resource=a_resource(memory=5))

    headroom = quota.headroom(h.queue(path))

    assert headroom is not None
    assert dict(headroom.items()) == document(h, path)["headroom"]


def test_what_is_lent_is_shown_where_it_is_configured() -> None:
    """Of a queue, and of the template of a parent."""
    h = Harness(QUEUES)

    assert {"memory": 2} == document(h, "root.p.a")["lendResource"]
    assert {"memory": 1} == document(h, "root.p")["template"]["lendResource"]
    assert "lendResource" not in document(h, "root.p.b")
