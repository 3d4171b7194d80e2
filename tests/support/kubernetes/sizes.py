"""Compare what pods need with what Kubernetes counts, on random pods, also such that are resized.

`make sizes` does so, with the program that it builds of `tests/cluster/sizes`. The option `--record` also
keeps pods with their sizes, for the test that runs everywhere.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
from support.kubernetes.stub_store import Document

from licorne.proxy.kubernetes.mapping.pod_sizes import pod_resource
from licorne.proxy.kubernetes.objects import Pod

RECORDED: Final = Path(__file__).parents[2] / "data" / "kubernetes" / "sizes.jsonl.gz"
_AT_ONCE: Final = 5_000
_QUANTITIES: Final = {
    "cpu": ("1", "500m", "2", "1500m", "0.5m", "100u", "3", "0"),
    "memory": ("1Gi", "64Mi", "1G", "1.5Gi", "100k"),
    "x.io/a": ("1", "2"),
    "hugepages-2Mi": ("2Mi", "64Mi"),
    "ephemeral-storage": ("1Gi", "10M"),
}
_REASONS: Final = ("Infeasible", "Deferred")


def random_pod(random: Random) -> tuple[str, Document]:
    """Return a pod, and in words what is special about it."""
    spec: dict[str, Any] = {"containers": [_container(random, f"c{i}") for i in range(random.randint(1, 3))]}
    status: dict[str, Any] = {}
    kinds = [name for name in ("level", "resize", "pending", "whole") if random.random() < 0.4]
    if random.random() < 0.5:
        spec["initContainers"] = [
            _container(random, f"i{i}", may_stay=True) for i in range(random.randint(1, 3))
        ]
    if random.random() < 0.3:
        spec["overhead"] = {"cpu": random.choice(_QUANTITIES["cpu"]), "memory": "10Mi"}
    if "level" in kinds:
        spec["resources"] = {"requests": _requests(random)}
    if "resize" in kinds:
        status["containerStatuses"] = _statuses(random, spec["containers"])
        status["initContainerStatuses"] = _statuses(random, spec.get("initContainers", []))
    if "pending" in kinds:
        types = random.choices(("PodResizePending", "PodResizeInProgress", "Ready"), k=random.randint(1, 3))
        status["conditions"] = [
            {"type": each, "status": "True", "reason": random.choice(_REASONS)} for each in types
        ]
        status["resize"] = random.choice(("", *_REASONS))
    if "whole" in kinds:
        status |= _given(random)
    return " ".join(kinds) or "plain", {"metadata": {"name": "p"}, "spec": spec, "status": status}


def _requests(random: Random) -> dict[str, str]:
    likely = {"cpu": 0.8, "memory": 0.8}
    return {
        name: random.choice(texts)
        for name, texts in _QUANTITIES.items()
        if random.random() < likely.get(name, 0.25)
    }


def _container(random: Random, name: str, *, may_stay: bool = False) -> Document:
    made: Document = {"name": name, "resources": {"requests": _requests(random)}}
    if may_stay and random.random() < 0.5:
        made["restartPolicy"] = "Always"
    return made


def _given(random: Random) -> Document:
    """Return what a kubelet says that it has promised and carried out, or one of the two, or neither."""
    found: Document = {}
    if random.random() < 0.7:
        found["allocatedResources"] = _requests(random)
    if random.random() < 0.7:
        found["resources"] = {"requests": _requests(random)} if random.random() < 0.9 else {}
    return found


def _statuses(random: Random, containers: list[Document]) -> list[Document]:
    return [{"name": each["name"], **_given(random)} for each in containers if random.random() < 0.8]


def sizes_of(pod: Document) -> dict[str, int]:
    """Return what a pod needs, without what is zero, and without its one of `pods`."""
    found = pod_resource(msgspec.convert(pod, Pod))
    del found["pods"]
    return {name: amount for name, amount in found.items() if amount}


def real_sizes(program: Path, pods: list[Document]) -> list[dict[str, int]]:
    """Ask the function of Kubernetes."""
    asked = "".join(json.dumps(pod) + "\n" for pod in pods)
    outcome = subprocess.run(  # noqa: S603 - our own program
        [str(program)], input=asked, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def recorded() -> list[tuple[Document, dict[str, int]]]:
    """Return the pods that were recorded, with what Kubernetes counts of each."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return [(case["pod"], case["sizes"]) for case in map(json.loads, lines)]


def _record(cases: list[tuple[Document, dict[str, int]]]) -> None:
    lines = "".join(
        json.dumps({"pod": pod, "sizes": sizes}, separators=(",", ":")) + "\n" for pod, sizes in cases
    )
    RECORDED.write_bytes(gzip.compress(lines.encode(), mtime=0))


def compare(program: Path, count: int, seed: int, record: int) -> int:
    """Compare a number of pods, print the counts, and return the number of differences."""
    random = Random(seed)  # noqa: S311 - no secret
    kinds: Counter[str] = Counter()
    kept: list[tuple[Document, dict[str, int]]] = []
    differences = 0
    for begin in range(0, count, _AT_ONCE):
        made = [random_pod(random) for _ in range(min(_AT_ONCE, count - begin))]
        kinds.update(kind for kind, _ in made)
        pods = [pod for _, pod in made]
        for pod, expected in zip(pods, real_sizes(program, pods), strict=True):
            actual = sizes_of(pod)
            if expected != actual:
                differences += 1
                sys.stdout.write(json.dumps({"real": expected, "ours": actual, "pod": pod}) + "\n")
            if len(kept) < record:
                kept.append((pod, expected))
    if record:
        _record(kept)
    by_kind = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    sys.stdout.write(f"{count} pods, {differences} differ; {by_kind}\n")
    return differences


def main() -> int:
    """Compare as the command line says; the status is 1 if there are differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="the program of tests/cluster/sizes")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=int, default=0, help="how many pods to keep for the tests")
    options = parser.parse_args()
    return 1 if compare(options.program, options.count, options.seed, options.record) else 0


if __name__ == "__main__":
    sys.exit(main())
