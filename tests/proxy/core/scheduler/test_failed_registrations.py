"""A registration or reload that fails, at whichever step and of whatever, leaves everything as it was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    configuration_request,
    node_request,
)

import licorne
from licorne import LicorneError, Scheduler

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

ROOT: Final = Path(licorne.__file__).parent
LOOKED_AT: Final = (f"{ROOT}/model/", f"{ROOT}/proxy/")
LIMIT: Final = "limits: [{limit: all, users: [%s], groups: [%s], maxresources: {memory: 50}}]"
BEFORE: Final = f"""
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - {{name: a, resources: {{max: {{memory: 80}}}}, {LIMIT % ("ada", "dev")}}}
          - {{name: b, properties: {{application.sort.policy: fair}}}}
  - name: second
    nodesortpolicy: {{type: binpacking}}
    queues: [{{name: root, submitacl: '*', queues: [{{name: a}}]}}]
"""
AFTER: Final = f"""
partitions:
  - name: default
    nodesortpolicy: {{type: binpacking}}
    placementrules: [{{name: provided}}]
    queues:
      - name: root
        submitacl: '*'
        queues:
          - {{name: a, resources: {{max: {{memory: 60}}}}, {LIMIT % ("bob", "ops")}}}
          - {{name: c, queues: [{{name: d}}], childtemplate: {{maxapplications: 3}}}}
  - name: third
    queues: [{{name: root, submitacl: '*', queues: [{{name: a}}]}}]
  - name: second
    queues: [{{name: root, submitacl: '*', queues: [{{name: e}}]}}]
"""
ENGINES: Final[tuple[EngineName, ...]] = ("direct", "actors", "threads")


class InjectedError(Exception):
    """What a step raises."""


class InjectedExit(SystemExit):
    """Likewise, and no `Exception`."""


def a_scheduler(engine: EngineName) -> Scheduler:
    """Return a stepped scheduler with something of everything."""
    scheduler = Scheduler(engine=engine, stepped=True)
    scheduler.register("rm", Listener(), configuration=BEFORE, extra_configuration={"log.level": "WARN"})
    for partition in ("default", "second"):
        scheduler.update_node(node_request(f"node-{partition}", memory=100, partition=partition))
        name = f"app-{partition}"
        scheduler.update_application(application_request(name, partition=partition, queue="root.a"))
        scheduler.update_allocation(ask_request("runs", application=name, memory=5, partition=partition))
        scheduler.update_allocation(ask_request("waits", application=name, memory=500, partition=partition))
    scheduler.run_until_idle()
    return scheduler


def state_of(scheduler: Scheduler) -> object:
    """Return all that can be seen."""
    scheduler.validate()
    try:
        waits = str(scheduler.explain("app-default"))
    except LicorneError as error:
        waits = str(error)
    levels = scheduler.extra_configuration("rm")
    return (scheduler.snapshot(), waits, levels, scheduler._managers.find("rm"))


def register(scheduler: Scheduler) -> None:
    scheduler.register("rm", Listener(), configuration=AFTER, extra_configuration={"log.level": "DEBUG"})


def reload(scheduler: Scheduler) -> None:
    scheduler.update_configuration(configuration_request(AFTER))


def prepare_and_commit(scheduler: Scheduler) -> None:
    scheduler.prepare_configuration(configuration_request(AFTER)).commit()


@contextmanager
def calls_seen(see: Callable[[CodeType], object]) -> Iterator[None]:
    """Show each function of the scheduler that is called, before it runs; what is raised is raised in it."""

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(LOOKED_AT) and code.co_flags & 0x20 == 0:
            see(code)

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def steps_of(act: Callable[[Scheduler], None], engine: EngineName) -> list[CodeType]:
    """Return the functions that take part, each once."""
    seen: dict[CodeType, None] = {}
    scheduler = a_scheduler(engine)
    with calls_seen(seen.setdefault):
        act(scheduler)
    return [code for code in seen if code.co_name != "_attempt"]  # It reports what fails.


# What no `except Exception` catches is injected on one engine only: the engines treat it alike. What a commit
# does is done by a reload as well.
@pytest.mark.parametrize(
    ("act", "engine", "error"),
    [
        *((act, engine, InjectedError) for act in (register, reload) for engine in ENGINES),
        *((act, "actors", InjectedExit) for act in (register, reload)),
        (prepare_and_commit, "actors", InjectedError),
    ],
)
def test_whatever_fails_all_is_as_before_or_all_has_happened(
    act: Callable[[Scheduler], None], engine: EngineName, error: type[BaseException]
) -> None:
    """A failure is injected at the first call of each function; only the last steps may fail in silence."""
    changed = a_scheduler(engine)
    act(changed)
    after = state_of(changed)
    scheduler = a_scheduler(engine)
    before = state_of(scheduler)
    failed = 0
    for code in steps_of(act, engine):
        if raises_at(code, scheduler, act, error):
            failed += 1
            assert before == state_of(scheduler), f"{code.co_qualname} has failed"
            continue
        assert without_managers(after) == without_managers(state_of(scheduler)), code.co_qualname
        scheduler = a_scheduler(engine)
        before = state_of(scheduler)

    assert failed > 50


def without_managers(state: object) -> object:
    """Leave out what is made anew each time."""
    assert isinstance(state, tuple)
    return state[:3]


def raises_at(
    code: CodeType, scheduler: Scheduler, act: Callable[[Scheduler], None], error: type[BaseException]
) -> bool:
    """Have a function fail when it is called first; return whether the caller hears of it."""
    left = [code]

    def see(called: CodeType) -> None:
        if left and called is code:
            left.clear()
            raise error("on purpose")

    try:
        with calls_seen(see):
            act(scheduler)
    except (error, LicorneError):
        return True
    return False
