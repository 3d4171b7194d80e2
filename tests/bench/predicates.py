"""The pace of a partition whose resource manager refuses half of 1,000 nodes, at once or 2 ms later.

Two cases: the same half of the nodes is refused to every ask, as by a taint; or another half to each ask. The
later answers are given in one piece for each batch, by a thread that sleeps for two milliseconds after it was
asked.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from figures import BenchError

from licorne.model.errors import LicorneError
from licorne.model.values.messages import PredicateQuestion, PreemptionQuestion
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager

DELAY_SECONDS: Final = 0.002
NODES: Final = 1_000
_WAIT_SECONDS_MAX: Final = 300.0
_SIZE: Final = {"resources": {"vcore": {"value": 1_000}, "memory": {"value": 1_000}}}
_CAPACITY: Final = {"resources": {"vcore": {"value": 100_000}, "memory": {"value": 100_000}}}
_QUEUES: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]"
)


def same_half(_: str, node_id: str) -> bool:
    """Refuse every other node."""
    return int(node_id[1:]) % 2 == 0


def other_halves(allocation_key: str, node_id: str) -> bool:
    """Refuse half of the nodes, others to the next ask."""
    return (int(node_id[1:]) + int(allocation_key[1:])) % 2 == 0


class _Manager(ResourceManager):
    """Counts its placements, and answers at once."""

    def __init__(self, asks: int, refuses: Callable[[str, str], bool]) -> None:
        self.done = threading.Event()
        self.refuses = refuses
        self._left = asks

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._left -= len(response.new)
        if not self._left:
            self.done.set()

    def close(self) -> None:
        """End what it runs."""


class _ImmediateManager(_Manager):
    def predicates(self, args: si.PredicatesArgs) -> None:
        if self.refuses(args.allocationKey, args.nodeID):
            raise LicorneError("not here")


class _DeferredManager(_Manager):
    """Answers on a thread of its own."""

    def __init__(self, asks: int, refuses: Callable[[str, str], bool]) -> None:
        super().__init__(asks, refuses)
        self._waiting: deque[Callable[[], None]] = deque()
        self._wanted = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask_predicates(
        self,
        questions: Sequence[PredicateQuestion],
        answer: Callable[[Mapping[int, Mapping[str, str] | None]], None],
    ) -> None:
        due = time.perf_counter() + DELAY_SECONDS

        def reply() -> None:
            time.sleep(max(0.0, due - time.perf_counter()))
            known: dict[int, dict[str, str]] = {}
            answer({position: self._refused(each, known) for position, each in enumerate(questions)})

        self._waiting.append(reply)
        self._wanted.release()

    def ask_preemption_predicates(
        self, questions: Sequence[PreemptionQuestion], answer: Callable[[Mapping[int, int | None]], None]
    ) -> None:
        answer({position: question.start_index for position, question in enumerate(questions)})

    def close(self) -> None:
        self._waiting.append(lambda: None)
        self._waiting.append(self._end)
        self._wanted.release(2)
        self._thread.join()

    def _refused(self, question: PredicateQuestion, known: dict[int, dict[str, str]]) -> dict[str, str]:
        """Return the refused nodes; if these are the same for each ask, questions share an answer."""
        key, refuses = question.allocation_key, self.refuses
        shared = known.get(id(question.node_ids)) if refuses is same_half else None
        if shared is None:
            shared = {node_id: "not here" for node_id in question.node_ids if refuses(key, node_id)}
            known[id(question.node_ids)] = shared
        return shared

    def _end(self) -> None:
        raise SystemExit

    def _run(self) -> None:
        while self._wanted.acquire():
            self._waiting.popleft()()


def measure(manager: _Manager, engine: EngineName, asks: int) -> float:
    """Return how many asks are placed a second, from the first request to the last callback.

    Raises:
        BenchError: They are not placed in time.
    """
    with Scheduler(engine=engine) as scheduler:
        scheduler.register("rm", manager, configuration=_QUEUES)
        nodes = [
            {"nodeID": f"n{number:04}", "action": "CREATE", "schedulableResource": _CAPACITY}
            for number in range(NODES)
        ]
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=nodes))
        application = {"applicationID": "app", "queueName": "root.leaf", "ugi": {"user": "ada"}}
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[application]))
        scheduler.snapshot()
        requests = [
            si.AllocationRequest(
                rmID="rm",
                allocations=[
                    {"allocationKey": f"k{number}", "applicationID": "app", "resourcePerAlloc": _SIZE}
                    for number in range(start, min(start + 100, asks))
                ],
            )
            for start in range(0, asks, 100)
        ]
        began = time.perf_counter()
        for request in requests:
            scheduler.update_allocation(request)
        if not manager.done.wait(_WAIT_SECONDS_MAX):
            raise BenchError(f"not all of {asks} asks were placed in {_WAIT_SECONDS_MAX:g} s")
        seconds = time.perf_counter() - began
    manager.close()
    return asks / seconds


def main() -> None:
    """Print the pace of each case and engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asks", type=int, default=5_000, help="how many asks are placed (default: 5000)")
    parser.add_argument("--repeat", type=int, default=3, help="how often; the middle counts (default: 3)")
    arguments = parser.parse_args()
    engines: tuple[EngineName, ...] = ("actors", "threads")
    for refuses in (same_half, other_halves):
        for engine in engines:
            for kind in (_DeferredManager, _ImmediateManager):
                asks = arguments.asks
                if kind is _ImmediateManager and refuses is same_half:
                    asks = min(asks, 500)  # Each takes some hundred calls.
                paces = sorted(measure(kind(asks, refuses), engine, asks) for _ in range(arguments.repeat))
                name = f"{refuses.__name__}, {engine}, {kind.__name__.strip('_')}"
                print(f"{name:45} {paces[len(paces) // 2]:8,.0f} a second")


if __name__ == "__main__":
    main()
