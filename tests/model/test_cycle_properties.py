"""The scheduling cycle under whatever an RM may do: invariants, quotas, and that nothing is overlooked."""

from __future__ import annotations

from builders import a_resource
from harness import Harness
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from licorne.model.cycle import CycleOutcome, run_cycle
from licorne.model.messages import NodeAction, TerminationType
from licorne.model.resources import Resource, fits_undefined_unlimited

CONFIGURATIONS = (
    """
- name: a
  maxapplications: 2
  resources: {max: {memory: 40}}
- name: b
  resources: {guaranteed: {memory: 20}}
  properties: {application.sort.policy: fair, priority.offset: "1"}
- name: c
  parent: true
  childtemplate: {resources: {max: {memory: 15}}}
""",
    """
- name: a
  resources: {max: {memory: 60}}
- name: b
  properties: {application.unschedasks.backoff: "2", application.unschedasks.backoff.delay: 4s}
""",
)
LIMITS = (
    "limits: [{limit: bob, users: [bob], maxresources: {memory: 30}, maxapplications: 3}]",
    "limits: [{limit: all, users: ['*'], maxresources: {memory: 50}}]",
)
RULES = "placementrules: [{name: provided, create: true}]"
QUEUES = st.sampled_from(["root.a", "root.b", "root.c.x"])
NODES = st.integers(0, 4).map("node-{}".format)
APPLICATIONS = st.integers(0, 4).map("app-{}".format)
SIZES = st.integers(1, 12).map(lambda quantity: a_resource(memory=quantity))


class PartitionMachine(RuleBasedStateMachine):
    """A partition that anything may happen to that an RM may say; the harness validates each step."""

    def __init__(self) -> None:
        super().__init__()
        self.serial = 0
        self.unlimited = True

    @initialize(number=st.integers(0, 1), policy=st.sampled_from(["fair", "binpacking"]))
    def begin(self, number: int, policy: str) -> None:
        """Start with one of two configurations and some nodes."""
        self.policy = policy
        self.h = Harness(CONFIGURATIONS[number], root=LIMITS[number], partition=self.partition_lines)
        self.h.nodes("node-0", "node-1", capacity=a_resource(memory=20))

    @property
    def partition_lines(self) -> str:
        return f"{RULES}\nnodesortpolicy: {{type: {self.policy}}}"

    def key(self) -> str:
        self.serial += 1
        return f"key-{self.serial}"

    # ---------------------------------------------------------------------------------------- nodes

    @rule(
        node_id=NODES,
        action=st.sampled_from([action for action in NodeAction if action is not NodeAction.DECOMISSION] * 2)
        | st.just(NodeAction.DECOMISSION),
        quantity=st.integers(8, 30),
    )
    def change_node(self, node_id: str, action: NodeAction, quantity: int) -> None:
        """Create, change, drain or remove a node, known or not."""
        self.h.update_node(node_id, action, a_resource(memory=quantity))

    @rule(node_id=NODES, quantity=st.integers(0, 6), key=st.integers(0, 2))
    def foreign(self, node_id: str, quantity: int, key: int) -> None:
        """Have something foreign run on a node, or another node, or change its size."""
        tags = {"foreign": "default"}
        resource = a_resource(memory=quantity)
        self.h.ask(f"foreign-{key}", application_id="", node_id=node_id, resource=resource, tags=tags)

    @rule(key=st.integers(0, 2))
    def end_foreign(self, key: int) -> None:
        """End something foreign."""
        self.h.release(f"foreign-{key}", application_id="")

    # --------------------------------------------------------------------------------- applications

    @rule(
        name=APPLICATIONS,
        queue=QUEUES,
        user=st.sampled_from(["bob", "eve"]),
        gang=st.integers(0, 3),
        style=st.sampled_from(["Soft", "Hard"]),
    )
    def submit(self, name: str, queue: str, user: str, gang: int, style: str) -> None:
        """Submit an application; a gang asks for its placeholders at once."""
        announced = a_resource(memory=5 * gang) if gang else None
        rejected = self.h.submit(
            name, queue, user=user, placeholder_ask=announced, style=style, timeout_seconds=20
        )
        if rejected is None and gang:
            keys = [self.key() for _ in range(gang)]
            size = a_resource(memory=5)
            self.h.ask(*keys, application_id=name, resource=size, task_group_name="g", placeholder=True)

    @rule(name=APPLICATIONS)
    def withdraw(self, name: str) -> None:
        """Take an application away."""
        self.h.withdraw(name)

    # ---------------------------------------------------------------------------------- allocations

    @rule(
        name=APPLICATIONS,
        count=st.integers(1, 3),
        size=SIZES,
        priority=st.integers(0, 2),
        group=st.sampled_from(["", "", "g"]),
    )
    def ask(self, name: str, count: int, size: Resource, priority: int, group: str) -> None:
        """Ask for something, maybe as members of the gang."""
        keys = [self.key() for _ in range(count)]
        self.h.ask(*keys, application_id=name, resource=size, priority=priority, task_group_name=group)

    @rule(name=APPLICATIONS, size=SIZES, node_id=NODES)
    def require(self, name: str, size: Resource, node_id: str) -> None:
        """Ask for something on one node."""
        self.h.ask(self.key(), application_id=name, resource=size, required_node=node_id)

    @rule(name=APPLICATIONS, size=SIZES, node_id=NODES)
    def recover(self, name: str, size: Resource, node_id: str) -> None:
        """Say that something runs already, whatever the quotas."""
        self.unlimited = False
        self.h.ask(self.key(), application_id=name, resource=size, node_id=node_id)

    @rule(place=st.integers(0, 200), size=SIZES)
    def resize(self, place: int, size: Resource) -> None:
        """Give something that is known another size."""
        self.unlimited = False
        known = self.known()
        if known:
            name, key = known[place % len(known)]
            self.h.ask(key, application_id=name, resource=size)

    @rule(place=st.integers(0, 200), termination=st.sampled_from(TerminationType))
    def release(self, place: int, termination: TerminationType) -> None:
        """End something that is known, for whatever reason."""
        known = self.known()
        if known:
            name, key = known[place % len(known)]
            self.h.release(key, application_id=name, termination=termination)

    @rule(name=APPLICATIONS)
    def release_all(self, name: str) -> None:
        """End everything of an application."""
        self.h.release("", application_id=name)

    @rule()
    def confirm(self) -> None:
        """Confirm what the scheduler has asked for."""
        self.h.confirm()

    def known(self) -> list[tuple[str, str]]:
        rows = []
        for name in sorted(self.h.state.seats):
            application = self.h.application(name)
            keys = dict.fromkeys(entry.allocation.allocation_key for entry in application.allocations())
            keys.update(dict.fromkeys(record.ask.allocation_key for record in application.waiting_asks()))
            rows += [(name, key) for key in keys]
        return rows

    # ----------------------------------------------------------------------------- time and cycles

    @rule(milliseconds=st.sampled_from([1, 1500, 2500, 21_000, 31_000]))
    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        self.h.advance(milliseconds=milliseconds)

    @rule(number=st.integers(0, 1))
    def reload(self, number: int) -> None:
        """Load another configuration."""
        self.unlimited = False
        self.h.reload(CONFIGURATIONS[number], root=LIMITS[number], partition=self.partition_lines)

    @rule(count=st.integers(1, 3))
    def run(self, count: int) -> None:
        """Run some cycles."""
        for _ in range(count):
            self.h.cycle()

    @rule()
    def settle(self) -> None:
        """Run cycles to the end: whoever looks again at everything finds nothing either."""
        h = self.h
        h.settle()
        for queue in h.state.tree:
            queue.seats.rest = None
        h.state.reserved_rest = None
        h.state.nodes.closed.clear()
        for block in h.state.nodes._blocks:
            block.room = None
        before = len(h.announcements)
        assert CycleOutcome.NOTHING is run_cycle(h.state)
        assert before == len(h.announcements)

    # ----------------------------------------------------------------------------------- invariants

    @precondition(lambda self: hasattr(self, "h") and self.unlimited)
    @invariant()
    def quotas_hold(self) -> None:
        """What the scheduler has placed by itself is within the maximum of every queue, and of bob."""
        for queue in self.h.state.tree:
            if queue.parent is not None:
                assert fits_undefined_unlimited(queue.maximum, queue.allocated)


TestWhateverHappens = PartitionMachine.TestCase
TestWhateverHappens.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
