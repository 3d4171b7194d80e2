"""Entries of applications in a leaf, for tests of the orders that a queue keeps."""

from __future__ import annotations

from support.model.builders import START_NS, an_application

from licorne.model.applications.effects import ApplicationFacts, ApplicationState
from licorne.model.queues.application_entry import ApplicationEntry
from licorne.model.queues.queue import Queue
from licorne.model.resources.quantities import INT32_MIN
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.allocation import Ask


def a_leaf(properties: dict[str, str] | None = None, *, guaranteed: Resource | None = None) -> Queue:
    """Return the leaf `root.leaf`."""
    root = Queue("root", None, is_leaf=False, managed=True)
    leaf = Queue("leaf", root, is_leaf=True, managed=True)
    root.children["leaf"] = leaf
    leaf.apply_properties(properties or {})
    leaf.set_quota(guaranteed, None)
    return leaf


def facts_of(
    *,
    pending: Resource = EMPTY,
    allocated: Resource = EMPTY,
    placeholder_allocated: Resource = EMPTY,
    priority: int | None = 0,
    age: int = 0,
    reserved: int = 0,
    first: Ask | None = None,
) -> ApplicationFacts:
    """Return what a partition keeps of an application; the larger the age, the older it is."""
    return ApplicationFacts(
        ApplicationState.RUNNING,
        pending,
        allocated,
        placeholder_allocated,
        INT32_MIN if priority is None else priority,
        START_NS - age,
        reserved,
        first,
    )


def an_entry(
    leaf: Queue, application_id: str = "app", facts: ApplicationFacts | None = None
) -> ApplicationEntry:
    """Add the entry of an application to a leaf, in its place by its facts."""
    application = an_application(application_id)
    entry = ApplicationEntry(application, application_id, application.user, leaf, facts or facts_of())
    leaf.entries.add(entry)
    leaf.entries.refresh(entry)
    return entry
