"""Random transcripts in which much is preempted: for a guarantee, for a required node, and for a quota.

Queues are nested and have guarantees, fences and offsets stand between them, nodes are full, and now and then
all maxima are lowered. A seed gives the same transcript on every machine.
"""

from __future__ import annotations

import json
import random
from typing import Final

from support.transcripts.transcript_lines import RM_ID, Json, resource

_TREE: Final = {"a": ("a1", "a2"), "b": ("b1", "b2"), "c": ("c1",)}
_LEAVES: Final = tuple(f"root.{top}.{leaf}" for top, below in _TREE.items() for leaf in below)
_WAITS: Final = ("10ms", "1s", "4s", "16s", "31s")
_STEPS: Final = 30
_WIDE, _TIGHT = 30, 8


def preemption_transcript(seed: int) -> list[str]:
    """Make the lines of a transcript."""
    story = _PreemptionTranscript(seed)
    story.register()
    story.create_nodes()
    first = story.dice.sample(_LEAVES, 2)
    for leaf in (*first, *first):
        story.ask(leaf, 8)
    story.say("schedule", "all")
    steps = [story.ask_somewhere, story.wait, story.wait, story.wait, story.release, story.odd_step]
    for _ in range(_STEPS):
        story.dice.choice(steps)()
        story.say("schedule", story.dice.choice((1, 2, "all")))
    story.say("snapshot", body=True)
    return story.lines


class _PreemptionTranscript:
    """The lines that were said so far, and dice."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - nothing is secret
        self.lines: list[str] = []
        self._keys: list[tuple[str, str]] = []
        self._nodes = self.dice.randint(2, 4)
        self._of_one_size = self.dice.random() < 0.7
        """Then a full cluster has no room left on any node, and no ask reserves one."""
        self._shape = self.dice.getrandbits(32)
        """The queues are the same after each reload, but for their maxima."""

    def say(self, verb: str, body: object) -> None:
        self.lines.append(json.dumps({verb: body}))

    # --------------------------------------------------------------------------------- configuration

    def _configuration(self, maximum: int) -> str:
        dice = random.Random(self._shape)  # noqa: S311 - nothing is secret
        queues = [_parent(dice, name, below, maximum) for name, below in _TREE.items()]
        root: Json = {"name": "root", "submitacl": "*", "queues": [*queues]}
        partition: Json = {
            "name": "default",
            "preemption": {"quotapreemptionenabled": True},
            "queues": [root],
        }
        return json.dumps({"partitions": [partition]})

    def register(self) -> None:
        self.say("register", {"rmID": RM_ID, "policyGroup": "queues", "config": self._configuration(_WIDE)})

    def _reload(self) -> None:
        maximum = self.dice.choice((_TIGHT, _WIDE))
        self.say("configuration", {"rmID": RM_ID, "config": self._configuration(maximum)})

    # --------------------------------------------------------------------------------------- the rest

    def create_nodes(self) -> None:
        for number in range(self._nodes):
            size = 2 * self.dice.randint(4, 8)
            node = {
                "nodeID": f"n{number}",
                "action": "CREATE",
                "schedulableResource": resource({"memory": size, "vcore": size}),
            }
            self.say("node", {"rmID": RM_ID, "nodes": [node]})
        applications = [
            {"applicationID": leaf, "queueName": leaf, "ugi": {"user": "ada"}} for leaf in _LEAVES
        ]
        self.say("application", {"rmID": RM_ID, "new": applications})

    def ask(self, leaf: str, count: int) -> None:
        """Ask for some allocations of one size and one kind, each a moment after the other."""
        dice = self.dice
        size = {"memory": 2, "vcore": 2}
        if not self._of_one_size:
            size = {"memory": dice.randint(1, 3), "vcore": dice.randint(1, 3)}
        body: dict[str, Json] = {
            "applicationID": leaf,
            "resourcePerAlloc": resource(size),
            "priority": dice.choice((0, 0, 0, 1, 2)),
            "preemptionPolicy": {
                "allowPreemptSelf": dice.random() < 0.7,
                "allowPreemptOther": dice.random() < 0.8,
            },
            "originator": dice.random() < 0.1,
        }
        if dice.random() < 0.04:
            node = f"n{dice.randrange(self._nodes)}"
            body["allocationTags"] = {"yunikorn.apache.org/requiredNode": node}
        for _ in range(count):
            key = f"t{len(self._keys)}"
            self._keys.append((leaf, key))
            self.say("allocation", {"rmID": RM_ID, "allocations": [{"allocationKey": key, **body}]})
            self.say("advance", "10ms")

    def ask_somewhere(self) -> None:
        self.ask(self.dice.choice(_LEAVES), self.dice.randint(1, 4))

    def wait(self) -> None:
        self.say("advance", self.dice.choice(_WAITS))

    def release(self) -> None:
        leaf, key = self.dice.choice(self._keys)
        ends = ("STOPPED_BY_RM", "STOPPED_BY_RM", "PREEMPTED_BY_SCHEDULER")
        release = {"applicationID": leaf, "allocationKey": key, "terminationType": self.dice.choice(ends)}
        self.say("allocation", {"rmID": RM_ID, "releases": {"allocationsToRelease": [release]}})

    def odd_step(self) -> None:
        """Reload, drain a node, let the RM refuse some, or let it confirm late."""
        self.dice.choice((self._reload, self._reload, self._drain, self._refuse, self._confirm))()

    def _drain(self) -> None:
        action = self.dice.choice(("DRAIN_NODE", "DRAIN_TO_SCHEDULABLE", "DRAIN_TO_SCHEDULABLE"))
        node = {"nodeID": f"n{self.dice.randrange(self._nodes)}", "action": action}
        self.say("node", {"rmID": RM_ID, "nodes": [node]})

    def _refuse(self) -> None:
        pairs = [
            {"allocationKey": key, "nodeID": f"n{self.dice.randrange(self._nodes)}"}
            for _, key in self.dice.sample(self._keys, min(6, len(self._keys)))
        ]
        self.say("predicates", {"deny": pairs})

    def _confirm(self) -> None:
        self.say("confirm", self.dice.choice(("auto", "manual")))


def _amount(memory: int, vcore: int) -> Json:
    return {"memory": str(memory), "vcore": f"{vcore}m"}


def _parent(dice: random.Random, name: str, below: tuple[str, ...], maximum: int) -> Json:
    """Make a queue with leaves; it is guaranteed what they are together, and some more."""
    shares = [(dice.randint(2, 6), dice.randint(2, 6)) if dice.random() < 0.8 else (0, 0) for _ in below]
    leaves = [_queue(dice, leaf, share, maximum) for leaf, share in zip(below, shares, strict=True)]
    own = dice.choice((0, 0, 3))
    total = (sum(share[0] for share in shares) + own, sum(share[1] for share in shares) + own)
    return {**_queue(dice, name, total, 2 * maximum), "queues": [*leaves]}


def _queue(dice: random.Random, name: str, guaranteed: tuple[int, int], maximum: int) -> dict[str, Json]:
    properties: dict[str, Json] = {
        "preemption.delay": dice.choice(("1s", "5s")),
        "quota.preemption.delay": "3s",
        "priority.offset": str(dice.choice((0, 0, -1, 1))),
    }
    if dice.random() < 0.1:
        properties["preemption.policy"] = dice.choice(("fence", "disabled"))
    if dice.random() < 0.1:
        properties["priority.policy"] = "fence"
    resources: dict[str, Json] = {"max": _amount(maximum, maximum)}
    if any(guaranteed):
        resources["guaranteed"] = _amount(*guaranteed)
    return {"name": name, "properties": properties, "resources": resources}
