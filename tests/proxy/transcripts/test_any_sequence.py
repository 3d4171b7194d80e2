"""Any valid configuration, and anything said in any order: every invariant after every step, on two engines.

Hypothesis draws the configuration and then, step by step, what the resource manager says. Each step is one
line of a transcript and goes to a scheduler on `direct` and to one on `actors`. After it

* `validate()` finds every invariant of the design kept, on both;
* the documents of the snapshot agree with each other, and are the same on both;
* both have sent the RM the same callbacks, byte for byte;
* the RM's own book agrees: nothing placed twice, nothing announced after its end, every ask waiting, placed
  or answered, every wanted release confirmed or still counted, every state as it was reported;
* nothing has grown above its maximum but by the RM's own doing.

At the end nothing may be left. A sequence that fails is printed as a transcript, for `tests/found`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.transcripts.configuration_strategies import broken, configurations
from support.transcripts.limit_strategies import GROUPS
from support.transcripts.sequence_strategies import (
    APPLICATIONS,
    NODES,
    ODD_QUEUES,
    TERMINATIONS,
    allocation,
    application,
    applications,
    capacities,
    group_lists,
    key_of,
    keys,
    nodes,
    odd_sizes,
    one_in_ten,
    partition_of,
    priorities,
    sizes,
    tag_sets,
    users,
)
from support.transcripts.snapshot_checks import tree
from support.transcripts.transcript_lines import (
    RM_ID,
    allocations_line,
    line,
    node_line,
    releases_line,
    removal_line,
    resource,
)
from support.transcripts.transcript_witness import ContractError, Witness, make_replay

from licorne.proxy.transcripts.transcript import read_transcript

if TYPE_CHECKING:
    from support.transcripts.limit_strategies import Quantities
    from support.transcripts.transcript_lines import Json


class AnySequence(RuleBasedStateMachine):
    """A resource manager that may say anything, and two schedulers that hear it."""

    def __init__(self) -> None:
        super().__init__()
        self._witness = Witness("direct")
        self._outputs: list[str] = []
        self._actors = make_replay("actors", self._outputs, check_direction=True)
        self._broken = False
        self._text = ""

    def say(self, *lines: str) -> None:
        """Say some lines to both, with every check after each."""
        for text in lines:
            note(text)
            self._broken = True
            heard = len(self._outputs)
            self._witness.watch([text])
            self._actors.run(read_transcript(text, "transcript"))
            self._actors.scheduler.validate()
            direct, actors = self._witness.output[heard:], self._outputs[heard:]
            if direct != actors:
                raise ContractError(f"direct says {direct}, actors say {actors}")
            if self._witness.snapshot() != self._actors.scheduler.snapshot():
                raise ContractError("the documents differ between direct and actors")
            self._broken = False

    def teardown(self) -> None:
        """Release and remove everything; nothing may be left."""
        try:
            if not self._broken and self._witness.output:
                self._end()
        finally:
            self._witness.__exit__()
            self._actors.scheduler.stop()

    def _end(self) -> None:
        self.say(line("confirm", "auto"))
        for name in APPLICATIONS:
            self.say(releases_line(name, partition_of(name), [("", "STOPPED_BY_RM")]))
            self.say(removal_line(name, partition_of(name)))
        self.say(releases_line("", "default", [("f1", "STOPPED_BY_RM"), ("f2", "STOPPED_BY_RM")]))
        for name in NODES:
            self.say(node_line(name, partition_of(name), "DECOMISSION"))
        self.say(line("advance", "1s"))
        self._witness.check_empty()

    # --------------------------------------------------------------------------------- configuration

    @initialize(data=st.data(), text=configurations(), first=capacities, second=capacities)
    def begin(self, *, data: st.DataObject, text: str, first: Quantities, second: Quantities) -> None:
        """Register, with two nodes and two applications."""
        self._text = text
        self.say(line("register", {"rmID": RM_ID, "policyGroup": "queues", "config": text}))
        if "registered" not in self._outputs[-1]:
            raise ContractError(f"a valid configuration is refused: {self._outputs}")
        for name, capacity in (("n1", first), ("n2", second)):
            self.say(node_line(name, "default", "CREATE", capacity))
        for name, user in (("a1", "ada"), ("a2", "bob")):
            body = application(name, self._leaf(data, odd=False), user, [GROUPS[0]], {})
            self.say(line("application", {"rmID": RM_ID, "new": [body]}))

    @rule(text=configurations())
    def reload(self, *, text: str) -> None:
        """Load another configuration while everything runs; it is valid, so it must be taken."""
        errors = self._configure(text)
        if errors:
            raise ContractError(f"a valid configuration is refused: {errors}")
        self._text = text

    @rule(data=st.data())
    def reload_broken(self, *, data: st.DataObject) -> None:
        """Try to load what is not valid; the watch sees to it that nothing changes."""
        if not self._configure(data.draw(broken(self._text))):
            raise ContractError("a configuration that is not valid is taken")

    def _configure(self, text: str) -> list[str]:
        """Load a configuration and return why it is refused, if it is."""
        heard = len(self._outputs)
        self.say(line("configuration", {"rmID": RM_ID, "config": text}))
        return [row for row in self._outputs[heard:] if "error" in json.loads(row)]

    # ----------------------------------------------------------------------------------------- nodes

    @rule(
        node=nodes,
        capacity=capacities,
        action=st.sampled_from(["CREATE", "CREATE", "CREATE_DRAIN", "UPDATE"]),
    )
    def size_node(self, *, node: str, capacity: Quantities, action: str) -> None:
        self.say(node_line(node, partition_of(node), action, capacity))

    @rule(node=nodes, action=st.sampled_from(["DRAIN_NODE", "DRAIN_TO_SCHEDULABLE", "DECOMISSION"]))
    def change_node(self, *, node: str, action: str) -> None:
        self.say(node_line(node, partition_of(node), action))

    @rule(
        key=st.sampled_from(["f1", "f2"]),
        node=nodes,
        size=sizes | odd_sizes,
        tag=st.sampled_from(["static", "default", "ends"]),
    )
    def name_foreign(self, *, key: str, node: str, size: Quantities, tag: str) -> None:
        """Tell of something that another scheduler runs, perhaps elsewhere than before, or that it ended."""
        if tag == "ends":
            self.say(releases_line("", partition_of(node), [(key, "STOPPED_BY_RM")]))
            return
        body = allocation("", key, size) | {"nodeID": node, "allocationTags": {"foreign": tag}}
        self.say(allocations_line([body | {"partitionName": partition_of(node)}]))

    # ---------------------------------------------------------------------------------- applications

    def _leaf(self, data: st.DataObject, *, odd: bool) -> str:
        """Draw a queue for an application: mostly a leaf that there is."""
        trees = self._witness.snapshot()["queues"].values()
        leaves = [queue["queuename"] for root in trees for queue in tree(root) if queue["isLeaf"]]
        drawn: str = data.draw(st.sampled_from(ODD_QUEUES if odd or not leaves else leaves))
        return drawn

    def _newcomer(self, data: st.DataObject, *, odd: bool) -> str:
        """Draw an application to submit: mostly one that does not live."""
        living = self._witness.book.living
        names = [name for name in APPLICATIONS[:3] if name not in living]
        return data.draw(applications if odd or not names else st.sampled_from(names))

    @rule(
        data=st.data(),
        odd=one_in_ten,
        user=users,
        groups=group_lists,
        tags=tag_sets,
        lasting_ms=st.sampled_from([0, 0, 0, 1500, 5000]),
    )
    def submit(
        self,
        *,
        data: st.DataObject,
        odd: bool,
        user: str,
        groups: list[str],
        tags: dict[str, str],
        lasting_ms: int,
    ) -> None:
        """Submit an application, perhaps one that was there before, or that may last a while only."""
        name = self._newcomer(data, odd=odd)
        body = application(name, self._leaf(data, odd=odd), user, groups, tags)
        body["executionTimeoutMilliSeconds"] = str(lasting_ms)
        self.say(line("application", {"rmID": RM_ID, "new": [body]}))

    @rule(
        data=st.data(),
        user=users,
        count=st.integers(1, 3),
        style=st.sampled_from(["Soft", "Hard"]),
        seconds=st.sampled_from([0, 2, 5]),
        member=st.sampled_from([None, 8, 10, 14]),
    )
    def start_gang(
        self,
        *,
        data: st.DataObject,
        user: str,
        count: int,
        style: str,
        seconds: int,
        member: int | None,
    ) -> None:
        """Submit a gang with its placeholders, perhaps with a member that fits or does not."""
        name = self._newcomer(data, odd=False)
        size = {"memory": 10, "vcore": 500}
        body = application(name, self._leaf(data, odd=False), user, [], {})
        body["placeholderAsk"] = resource({kind: count * each for kind, each in size.items()})
        body |= {"gangSchedulingStyle": style, "executionTimeoutMilliSeconds": str(seconds * 1000)}
        self.say(line("application", {"rmID": RM_ID, "new": [body]}))
        group: dict[str, Json] = {"taskGroupName": "tg"}
        holders = [allocation(name, f"{name}-ph{number}", size) | group for number in range(count)]
        self.say(allocations_line([holder | {"placeholder": True} for holder in holders]))
        self.say(line("schedule", "all"))
        if member is not None:
            size = size | {"memory": member}
            self.say(allocations_line([allocation(name, key_of(name, "k1"), size) | group]))

    # ----------------------------------------------------------------------------------- allocations

    def _living(self, data: st.DataObject) -> str:
        """Draw an application: one that lives, if there is one."""
        return data.draw(st.sampled_from([*self._witness.book.living] or APPLICATIONS))

    _asks = rule(
        data=st.data(),
        chosen=st.lists(keys, unique=True, min_size=1, max_size=4),
        size=sizes,
        priority=priorities,
        group=st.sampled_from(["", "", "tg"]),
        policy=st.fixed_dictionaries(
            {}, optional={"allowPreemptSelf": st.booleans(), "allowPreemptOther": st.booleans()}
        ),
        originator=one_in_ten,
        scheduled=st.booleans(),
    )

    def _ask(
        self,
        *,
        data: st.DataObject,
        chosen: list[str],
        size: Quantities,
        priority: int,
        group: str,
        policy: dict[str, bool],
        originator: bool,
        scheduled: bool,
    ) -> None:
        """Ask for some allocations; of those that are known already, this changes the size."""
        name = self._living(data)
        more: dict[str, Json] = {"priority": priority, "taskGroupName": group, "originator": originator}
        more["preemptionPolicy"] = {**policy}
        self.say(allocations_line([allocation(name, key_of(name, key), size) | more for key in chosen]))
        if scheduled:
            self.say(line("schedule", "all"))

    # Rules are drawn evenly; without asks nothing else comes to much.
    ask = _asks(_ask)
    ask_more = _asks(_ask)
    ask_once_more = _asks(_ask)

    @rule(data=st.data(), key=keys, size=sizes, node=nodes, priority=priorities)
    def ask_on_node(
        self, *, data: st.DataObject, key: str, size: Quantities, node: str, priority: int
    ) -> None:
        """Ask for a place on one node alone, as daemon sets do."""
        name = self._living(data)
        tags: Json = {"yunikorn.apache.org/requiredNode": node}
        body = allocation(name, key_of(name, key), size) | {
            "allocationTags": tags,
            "priority": priority,
        }
        self.say(allocations_line([body]))

    @rule(data=st.data(), key=keys, size=sizes, lasting_ms=st.sampled_from([0, 500, 4000, 60_000]))
    def ask_in_older_words(self, *, data: st.DataObject, key: str, size: Quantities, lasting_ms: int) -> None:
        """Ask as RMs of the older generation do, for an allocation that may last a while only."""
        name = self._living(data)
        body = allocation(name, key_of(name, key), size)
        body |= {"resourceAsk": body.pop("resourcePerAlloc"), "maxAllocations": 1}
        body["executionTimeoutMilliSeconds"] = str(lasting_ms)
        self.say(line("allocation", {"rmID": RM_ID, "asks": [body]}))

    @rule(name=applications, owner=applications, key=keys, size=odd_sizes | sizes)
    def ask_oddly(self, *, name: str, owner: str, key: str, size: Quantities) -> None:
        """Ask for nonsense, or under a key of another application."""
        self.say(allocations_line([allocation(name, key_of(owner, key), size)]))

    @rule(data=st.data(), key=keys, size=sizes, node=nodes, group=st.sampled_from(["", "tg"]))
    def place_externally(
        self, *, data: st.DataObject, key: str, size: Quantities, node: str, group: str
    ) -> None:
        """Say that something runs: a waiting ask, or something new as after a restart."""
        name = self._living(data)
        body = allocation(name, key_of(name, key), size) | {"nodeID": node, "taskGroupName": group}
        self.say(allocations_line([body]))

    @rule(
        data=st.data(),
        key=keys,
        kind=st.sampled_from(TERMINATIONS),
        odd=st.sampled_from(["", "", "ph0", "all"]),
    )
    def release(self, *, data: st.DataObject, key: str, kind: str, odd: str) -> None:
        """End something, whatever has become of it."""
        name = self._living(data)
        ended = {"": key_of(name, key), "ph0": f"{name}-ph0", "all": ""}[odd]
        self.say(releases_line(name, partition_of(name), [(ended, kind)]))

    @precondition(lambda self: self._witness.book.to_confirm)
    @rule(data=st.data(), times=st.sampled_from([1, 1, 2]), late=st.booleans())
    def confirm_release(self, *, data: st.DataObject, times: int, late: bool) -> None:
        """Confirm what the scheduler wants ended, perhaps after something else has happened, or twice."""
        (name, key), kind = data.draw(st.sampled_from(sorted(self._witness.book.to_confirm.items())))
        if late:
            self.say(line("schedule", 2))
        self.say(*times * [releases_line(name, partition_of(name), [(key, kind)])])

    # ------------------------------------------------------------------------------- time and cycles

    @rule(cycles=st.sampled_from([1, 2, "all"]))
    def schedule(self, *, cycles: int | str) -> None:
        self.say(line("schedule", cycles))

    @rule()
    def schedule_all(self) -> None:
        self.say(line("schedule", "all"))

    @rule(wait=st.sampled_from(["10ms", "1s", "2s", "3s", "6s", "16s", "31s"]))
    def let_time_pass(self, *, wait: str) -> None:
        self.say(line("advance", wait))

    @rule(number=st.integers(0, 9), name=applications)
    def turn_a_page(self, *, number: int, name: str) -> None:
        """Do, now and then, what ends most of what there is."""
        if number == 9:
            self.say(line("register", {"rmID": RM_ID, "policyGroup": "queues", "config": self._text}))
        elif number == 8:
            self.say(line("advance", "2h1s"))  # More than a reservation waits.
        elif number > 5:
            self.say(removal_line(name, partition_of(name)))

    @rule(mode=st.sampled_from(["auto", "manual", "manual"]))
    def change_confirmation(self, *, mode: str) -> None:
        self.say(line("confirm", mode))

    @rule(pairs=st.lists(st.tuples(applications, keys, nodes), max_size=3), everything=one_in_ten)
    def change_predicates(self, *, pairs: list[tuple[str, str, str]], everything: bool) -> None:
        denied: list[Json] = [
            {"allocationKey": key_of(name, key), "nodeID": node} for name, key, node in pairs
        ]
        self.say(line("predicates", {"deny": denied, "denyAll": everything and not pairs}))


_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

TestAnySequence = AnySequence.TestCase
# The same examples on every run: a test that fails by chance does not show which change broke it. New
# examples are for the soak, which keeps what it finds in `.hypothesis` until it is mended.
TestAnySequence.settings = settings(
    _COMMON, derandomize=True, database=None, max_examples=10, stateful_step_count=30
)


@pytest.mark.soak
def test_many_sequences_keep_every_invariant() -> None:
    """New sequences each time, and longer ones: about half an hour."""
    many = settings(_COMMON, derandomize=False, max_examples=2_000, stateful_step_count=80)
    run_state_machine_as_test(AnySequence, settings=many)
