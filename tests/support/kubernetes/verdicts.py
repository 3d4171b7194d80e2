"""Compare filters and scores with those of kube-scheduler, on random clusters.

`make verdicts` does so, with the program that it builds of `tests/cluster/verdicts`. The option
`--record` also keeps cases with their verdicts and scores, for the tests that run everywhere.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import msgspec
from support.kubernetes.held_view import HeldView, view_of
from support.kubernetes.random_scenes import Scene, random_scene, with_preferences

from licorne.model.policies.interface import AskView, NodeView
from licorne.model.resources.resource import EMPTY
from licorne.proxy.kubernetes.objects import (
    KubernetesNode,
    Namespace,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
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
    refused_for_features,
)
from licorne.proxy.kubernetes.predicates.preference_policy import CurrentCluster, PreferencePolicy
from licorne.proxy.kubernetes.predicates.preferences import SCORE_WEIGHTS, PodPreferences, TermIndex
from licorne.proxy.kubernetes.predicates.volume_filters import refused_by_disks, users_of_exclusive_claims

_DATA: Final = Path(__file__).parents[2] / "data" / "kubernetes"
RECORDED: Final = _DATA / "verdicts.jsonl.gz"
RECORDED_SCORES: Final = _DATA / "scores.jsonl.gz"

Refusals: TypeAlias = dict[str, list[str]]
"""Per node, the plugins that refuse it, in the order of kube-scheduler."""
Scores: TypeAlias = dict[str, dict[str, int]]
"""Per plugin, the scores of the nodes that no plugin refuses."""

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
    view = view_of(nodes, pods, namespaces)
    for claim in msgspec.convert(scene.get("claims", []), list[PersistentVolumeClaim]):
        view.claims[f"{claim.metadata.namespace}/{claim.metadata.name}"] = claim
        volume = claim.spec.volume_name
        view.volumes[volume] = PersistentVolume(metadata=ObjectMeta(name=volume))
    return Asked(msgspec.convert(scene["pod"], Pod), view)


def refusals(asked: Asked) -> Refusals:
    """Ask each filter about each node, whatever the others say."""
    rules = [*own_rules(asked.pod, asked.view.namespaces), imposed_rule(asked.pod, asked.view)]
    counted = []
    for rule in rules:
        tally = TopologyTally(rule.contribution)
        tally.refresh(asked.view.nodes, asked.view.node_changes)
        counted.append((rule, tally))
    return {name: list(_refusing(asked, state, counted)) for name, state in asked.view.nodes.items()}


def _refusing(
    asked: Asked, state: NodeState, rules: list[tuple[NeighbourRule, TopologyTally]]
) -> Iterator[str]:
    pod = asked.pod
    for plugin, refused in (
        ("NodeName", refused_by_name),
        ("NodeUnschedulable", refused_for_cordon),
        ("TaintToleration", refused_by_taint),
        ("NodeAffinity", refused_by_affinity),
        ("NodeDeclaredFeatures", refused_for_features),
    ):
        if refused(pod, state.node) is not None:
            yield plugin
    if refused_by_ports(pod, state) is not None:
        yield "NodePorts"
    if refused_by_disks(pod, state.pods) is not None or users_of_exclusive_claims(pod, asked.view):
        yield "VolumeRestrictions"
    yield from dict.fromkeys(rule.plugin for rule, tally in rules if rule.refusal(state.node, tally))


def scores(asked: Asked, possible: Sequence[str]) -> Scores:
    """Return the scores of nodes."""
    view, terms = asked.view, TermIndex()
    terms.refresh(view.nodes, view.node_changes)
    imposed = terms.about(asked.pod, view.namespaces)
    preferences = PodPreferences(asked.pod, view.namespaces, imposed)
    preferences.refresh(view.nodes, view.node_changes)
    found = preferences.scores([view.nodes[name] for name in possible])
    return {plugin: dict(zip(possible, each, strict=True)) for plugin, each in found.items() if possible}


def choice(of_plugins: Scores, possible: Sequence[str]) -> list[str]:
    """Return the nodes with the highest weighted sum."""
    sums = {
        name: sum(SCORE_WEIGHTS[plugin] * each[name] for plugin, each in of_plugins.items())
        for name in possible
    }
    most = max(sums.values(), default=0)
    return [name for name, total in sums.items() if total == most]


def first_by_policy(asked: Asked, possible: Sequence[str]) -> str:
    """Return the possible node that the policy of preferences has first; all nodes have equal room."""
    asked.view.pods["asked"] = asked.pod
    cluster = CurrentCluster()
    cluster.view = asked.view
    policy = PreferencePolicy(cluster)
    ask_class = policy.ask_class(
        AskView("asked", "", EMPTY, 0, 0, {}, placeholder=False, task_group="", walltime_ns=None)
    )
    policy.class_version(ask_class)
    keys = {name: policy.node_key_for(ask_class, NodeView(name, {}, EMPTY, EMPTY)) for name in possible}
    return min(possible, key=lambda name: (keys[name], name))


def real_verdicts(program: Path, scenes: list[Scene]) -> list[tuple[Refusals, Scores]]:
    """Ask the real plugins."""
    asked = "".join(json.dumps(scene) + "\n" for scene in scenes)
    outcome = subprocess.run(  # noqa: S603 - our own program
        [str(program)], input=asked, capture_output=True, text=True, check=True
    )
    answers = map(json.loads, outcome.stdout.splitlines())
    return [(answer["refused"], answer["scores"]) for answer in answers]


def recorded(path: Path = RECORDED) -> list[tuple[Scene, Any]]:
    """Return the cases that were recorded, with what the real plugins said."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [(case["scene"], case.get("refused", case.get("scores"))) for case in map(json.loads, lines)]


def _record(path: Path, what: str, cases: Iterable[tuple[Scene, object]]) -> None:
    lines = "".join(
        json.dumps({"scene": scene, what: found}, separators=(",", ":")) + "\n" for scene, found in cases
    )
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def _differs(of_nodes: Mapping[str, int]) -> bool:
    """Return whether a plugin prefers one node to another."""
    return len(set(of_nodes.values())) > 1


class Comparison:
    """What is counted of the pairs of a pod and a node."""

    def __init__(self) -> None:
        self.pairs = self.scored = self.pods = self.choices = self.first = self.differences = 0
        """`scored` are the scores of plugins that prefer one node to another."""
        self.refused_pairs: Counter[str] = Counter()

    def add(self, scene: Scene, refused: Refusals, real_scores: Scores) -> None:
        """Compare a scene, and print the differences."""
        asked = asked_of(scene)
        ours = refusals(asked)
        self.pairs += len(refused)
        self.refused_pairs.update(plugin for plugins in refused.values() for plugin in plugins)
        for name, plugins in refused.items():
            if plugins != ours[name]:
                self._print(scene, name, plugins, ours[name])
        possible = [name for name, plugins in refused.items() if not plugins]
        found = scores(asked, possible)
        for plugin in SCORE_WEIGHTS:
            expected, actual = (
                each.get(plugin) or dict.fromkeys(possible, 0) for each in (real_scores, found)
            )
            self.scored += len(possible) * _differs(expected)
            for name in possible:
                if expected[name] != actual[name]:
                    self._print(scene, name, {plugin: expected[name]}, {plugin: actual[name]})
        self.pods += bool(possible)
        best = choice(real_scores, possible)
        self.choices += bool(possible) and best == choice(found, possible)
        self.first += bool(possible) and first_by_policy(asked, possible) in best

    def _print(self, scene: Scene, name: str, real: object, ours: object) -> None:
        self.differences += 1
        sys.stdout.write(json.dumps({"node": name, "real": real, "ours": ours, "scene": scene}) + "\n")

    def __str__(self) -> str:
        by_plugin = ", ".join(f"{plugin} {count}" for plugin, count in self.refused_pairs.most_common())
        return (
            f"{self.pairs} pairs, {self.scored} scores, {self.differences} differences; "
            f"the same nodes are best for {self.choices} of {self.pods} pods, "
            f"one of them is the first of the policy for {self.first}; refused by {by_plugin}\n"
        )


def compare(program: Path, pairs_min: int, seed: int, record: int) -> int:
    """Compare until so many pairs are done, print the counts, and return the number of differences."""
    random = Random(seed)  # noqa: S311 - no secret
    comparison = Comparison()
    kept: list[tuple[Scene, Refusals, Scores]] = []
    while comparison.pairs < pairs_min:
        scenes = [with_preferences(random, random_scene(random)) for _ in range(_SCENES_AT_ONCE)]
        for scene, verdict in zip(scenes, real_verdicts(program, scenes), strict=True):
            comparison.add(scene, *verdict)
            kept.append((scene, *verdict))
    if record:
        _record(RECORDED, "refused", ((scene, refused) for scene, refused, _ in kept[:record]))
        scored = [(scene, found) for scene, _, found in kept if sum(map(_differs, found.values())) > 1]
        _record(RECORDED_SCORES, "scores", scored[:record])
    sys.stdout.write(str(comparison))
    return comparison.differences


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
