"""What a partition is given back when a reload cannot be done everywhere."""

from __future__ import annotations

from typing import Final

from support.model.attributes import attributes_of
from support.model.builders import a_configuration
from support.model.harness import Harness

from licorne.model.configuration.documents import YamlQueue

LEAF: Final = """\
- name: a
  parent: false
  resources: {guaranteed: {memory: 1}, max: {memory: 2}}
  maxapplications: 3
  properties: {application.sort.policy: fair}
  adminacl: ada
  submitacl: bob
  limits: [{users: [ada], maxapplications: 2}]
"""
PARENT: Final = """\
- name: b
  parent: true
  childtemplate: {maxapplications: 1}
  queues: [{name: c}]
"""


def settings_of(partition: Harness) -> dict[str, dict[str, object]]:
    """Return the attributes of the queues, by path; what a queue owns is compared by identity."""
    return {path: attributes_of(partition.queue(path)) for path in ("root.a", "root.b", "root.b.c")}


def test_every_key_of_a_queue_is_given_back() -> None:
    """Each is at something other than its default, and the reload that is undone changes it."""
    partition = Harness(LEAF + PARENT)
    before = settings_of(partition)

    savepoint = partition.partition.reconfigure(a_configuration("- name: a\n- name: b"))
    changed = settings_of(partition)
    partition.partition.restore(savepoint)

    assert [] == [key for key in YamlQueue.model_fields if f"{key}: " not in LEAF + PARENT]
    assert before != changed
    assert before == settings_of(partition)
