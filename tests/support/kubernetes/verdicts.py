"""Compare the filters with those of kube-scheduler, on random clusters.

`make verdicts` does so, with the program that it builds of `tests/cluster/verdicts`. The option
`--record` also keeps cases with their verdicts, for the test that runs everywhere.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

import msgspec
from support.kubernetes.held_view import HeldView, view_of
from support.kubernetes.random_scenes import Scene, random_scene

from licorne.proxy.kubernetes.objects import KubernetesNode, Namespace, Pod
from licorne.proxy.kubernetes.predicates.cluster_view import NodeState, TopologyTally
from licorne.proxy.kubernetes.predicates.neighbour_filters import (
    NeighbourRule,
    imposed_rule,
    own_rules,
    refused_by_ports,
)
from licorne.proxy.kubernetes.predicates.node_filters import (
    refused_by_affinity,
    refused_by_name,
    refused_by_taint,
    refused_for_cordon,
)

RECORDED: Final = Path(__file__).parents[2] / "data" / "kubernetes" / "verdicts.jsonl.gz"

Refusals: TypeAlias = dict[str, list[str]]
"""Per node, the plugins that refuse it, in the order of kube-scheduler."""

_SCENES_AT_ONCE = 500


@dataclass(frozen=True)
class Asked:
    """A scene as the filters read it."""

    pod: Pod
    view: HeldView


def asked_of(scene: Scene) -> Asked:
    """Read a scene."""
    nodes = msgspec.convert(scene["nodes"], list[KubernetesNode])
    pods = msgspec.convert(scene["pods"], list[Pod])
    namespaces = msgspec.convert(scene["namespaces"], list[Namespace])
    return Asked(msgspec.convert(scene["pod"], Pod), view_of(nodes, pods, namespaces))


def refusals(asked: Asked) -> Refusals:
    """Ask each filter about each node, whatever the others say."""
    rules = [*own_rules(asked.pod, asked.view.namespaces), imposed_rule(asked.pod, asked.view)]
    counted = []
    for rule in rules:
        tally = TopologyTally(rule.contribution)
        tally.refresh(asked.view.nodes)
        counted.append((rule, tally))
    return {name: list(_refusing(asked.pod, state, counted)) for name, state in asked.view.nodes.items()}


def _refusing(pod: Pod, state: NodeState, rules: list[tuple[NeighbourRule, TopologyTally]]) -> Iterator[str]:
    for plugin, refused in (
        ("NodeName", refused_by_name),
        ("NodeUnschedulable", refused_for_cordon),
        ("TaintToleration", refused_by_taint),
        ("NodeAffinity", refused_by_affinity),
    ):
        if refused(pod, state.node) is not None:
            yield plugin
    if refused_by_ports(pod, state) is not None:
        yield "NodePorts"
    yield from dict.fromkeys(rule.plugin for rule, tally in rules if rule.refusal(state.node, tally))


def real_refusals(program: Path, scenes: list[Scene]) -> list[Refusals]:
    """Ask the real plugins."""
    asked = "".join(json.dumps(scene) + "\n" for scene in scenes)
    outcome = subprocess.run(  # noqa: S603 - our own program
        [str(program)], input=asked, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def recorded() -> list[tuple[Scene, Refusals]]:
    """Return the cases that were recorded, with what the real plugins said."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        return [(case["scene"], case["refused"]) for case in map(json.loads, lines)]


def _record(cases: list[tuple[Scene, Refusals]]) -> None:
    lines = "".join(
        json.dumps({"scene": scene, "refused": refused}, separators=(",", ":")) + "\n"
        for scene, refused in cases
    )
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_bytes(gzip.compress(lines.encode(), mtime=0))


def compare(program: Path, pairs_min: int, seed: int, record: int) -> int:
    """Compare until so many pairs are done, print the counts, and return the number of differences."""
    random = Random(seed)  # noqa: S311 - no secret
    pairs = differences = 0
    refused_pairs: Counter[str] = Counter()
    kept: list[tuple[Scene, Refusals]] = []
    while pairs < pairs_min:
        scenes = [random_scene(random) for _ in range(_SCENES_AT_ONCE)]
        for scene, expected in zip(scenes, real_refusals(program, scenes), strict=True):
            actual = refusals(asked_of(scene))
            pairs += len(expected)
            refused_pairs.update(plugin for plugins in expected.values() for plugin in plugins)
            for name, plugins in expected.items():
                if plugins != actual[name]:
                    differences += 1
                    difference = {"node": name, "real": plugins, "ours": actual[name], "scene": scene}
                    sys.stdout.write(json.dumps(difference) + "\n")
            if len(kept) < record:
                kept.append((scene, expected))
    if record:
        _record(kept)
    by_plugin = ", ".join(f"{plugin} {count}" for plugin, count in refused_pairs.most_common())
    sys.stdout.write(f"{pairs} pairs, {differences} differences; refused by {by_plugin}\n")
    return differences


def main() -> int:
    """Compare as the command line says; the status is 1 if there are differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="the program of tests/cluster/verdicts")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=int, default=0, help="how many cases to keep for the tests")
    options = parser.parse_args()
    return 1 if compare(options.program, options.pairs, options.seed, options.record) else 0


if __name__ == "__main__":
    sys.exit(main())
