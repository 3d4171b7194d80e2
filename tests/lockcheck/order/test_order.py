"""The declared order: its language, its proof, its check and its description."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.lockcheck import Kind, Order, OrderDeclarationError, key, tree, try_only
from licorne.lockcheck.findings.terms import Mode
from licorne.lockcheck.order.order import OrderStep, find_strong_cycle

SCHEDULER = "partition < queue < application < node"


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("a < b << c", 8, "a class is expected before '<'"),
        ("a < b <", 8, "a class is missing at the end"),
        ("a b", 3, "`<` is expected before 'b'"),
        ("a < $b", 5, "'$' means nothing here"),
        ("a < b < a", 9, "a would come before itself"),
        ("a < b, c < d, b < a", 5, "a comes before b by an earlier clause"),
        ("a < b, b < c, c < a", 5, "a comes before c by an earlier clause"),
    ],
)
def test_a_chain_that_cannot_be_read_is_refused_with_its_column(text: str, column: int, what: str) -> None:
    """Columns count from one within the clause."""
    with pytest.raises(OrderDeclarationError) as caught:
        Order(text)

    assert what in str(caught.value)
    assert f"in column {column} of the clause" in str(caught.value)
    assert " " * (4 + column - 1) + "^" == caught.value.__notes__[0].splitlines()[1]


@pytest.mark.parametrize(
    ("clause", "column", "what"),
    [
        ("b[X] -> a", 3, "'X' is not a mode: R, W or *"),
        ("b[W -> a", 5, "`]` is missing"),
        ("b[W] a", 6, "`->` is expected before a"),
        ("b ->", 5, "a class is expected before the end"),
        ("b -> a a", 8, "the clause should end"),
        ("b -> c", 6, "no chain has 'c'"),
        ("a -> b", 1, "'a < b' allows this already"),
        ("b -> b", 1, "two locks of one class nest by a rule of `same`"),
    ],
)
def test_an_exception_that_means_nothing_is_refused_with_its_column(
    clause: str, column: int, what: str
) -> None:
    """So is one that changes nothing."""
    with pytest.raises(OrderDeclarationError) as caught:
        Order("a < b", allow=[clause])

    assert what in str(caught.value)
    assert f"in column {column} of the clause {clause!r}" in str(caught.value)


def test_a_rule_for_a_class_that_no_chain_has_is_refused() -> None:
    """It would never be asked."""
    with pytest.raises(OrderDeclarationError, match="there is a rule for 'c', but no chain has it"):
        Order("a < b", same={"c": key()})


def test_an_exception_against_the_order_is_refused_with_the_path_that_it_closes() -> None:
    """The message names every step and the clause to change."""
    with pytest.raises(OrderDeclarationError) as caught:
        Order("a < b < c", allow=["c[W] -> a[W]"])

    assert "a[R] -> c[R] by 'a < b < c', then c[W] -> a[W] by 'c[W] -> a[W]'" in str(caught.value)
    assert "the clause to change is 'c[W] -> a[W]'" in str(caught.value)


def test_two_readers_close_a_path_unless_readers_go_first() -> None:
    """A writer that waits between them stops the second one; the note says so."""

    def declare(*readers_first: str) -> Order:
        return Order(
            "partition < application",
            allow=["application[W] -> partition[R]"],
            forbid=["partition[W] -> application"],
            readers_first=readers_first,
        )

    with pytest.raises(OrderDeclarationError) as caught:
        declare()

    assert "as soon as a writer of it waits" in caught.value.__notes__[0]
    assert declare("partition").check(("application", "W", 1), ("partition", "R", 1)) is None


Asked: TypeAlias = tuple[str, "Mode", object]
"""Class, mode and key of a lock."""

WITH_EXCEPTION = Order(
    "partition < application",
    allow=["application[W] -> partition[R]"],
    forbid=["partition -> application"],
)
"""The exception is proved together with the ban of its opposite: nobody may hold the partition any more."""


READ: Asked = ("partition", "R", None)


@pytest.mark.parametrize(
    ("order", "held", "wanted", "fits"),
    [
        pytest.param(WITH_EXCEPTION, ("application", "W", 1), READ, True, id="an exception is allowed"),
        pytest.param(WITH_EXCEPTION, ("application", "R", 1), READ, False, id="in its mode alone"),
        pytest.param(WITH_EXCEPTION, READ, ("application", "R", 1), False, id="its opposite is forbidden"),
        pytest.param(Order(SCHEDULER), ("node", "W", 1), ("log", "W", None), True, id="unknown classes"),
    ],
)
def test_an_order_allows_what_it_declares(order: Order, held: Asked, wanted: Asked, *, fits: bool) -> None:
    """And forbids the rest of what its chains name."""
    assert fits == (order.check(held, wanted) is None)


def test_the_order_is_transitive_and_one_way() -> None:
    """Every pair of the chain, in both directions."""
    order = Order(SCHEDULER)
    for outer, inner in product(range(4), repeat=2):
        objection = order.check((order.classes[outer], "R", 1), (order.classes[inner], "W", 2))

        assert (outer < inner) == (objection is None)


def test_under_a_leaf_nothing_is_taken() -> None:
    """Declared or not."""
    objection = Order(SCHEDULER, leaves=["limits"]).check(("limits", "W", None), ("log", "W", None))

    assert objection is not None
    assert "leaves: limits" == objection.clause


@pytest.mark.parametrize(
    ("siblings", "held", "wanted", "fits"),
    [
        (False, "root", "root.a", True),
        (False, "root", "root.a.b", True),
        (False, "root.a", "root", False),
        pytest.param(False, "root.a", "root.ab", False, id="a name that begins alike is no descendant"),
        pytest.param(False, "root.a", "root.b", False, id="siblings are not ordered"),
        (False, "root.a", None, False),
        pytest.param(True, "root.a", "root.b", True, id="siblings may be ordered too"),
        pytest.param(True, "root.b", "root.a", False, id="by their paths, and only forwards"),
        (True, "root.a.z", "root.b", True),
    ],
)
def test_a_tree_is_taken_from_above(held: str, wanted: str | None, *, siblings: bool, fits: bool) -> None:
    """The ancestor's lock comes first, by the path in the key."""
    assert fits == (tree(siblings=siblings).objection(held, wanted) is None)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=3, max_size=3))
def test_a_tree_with_siblings_is_a_strict_order(paths: list[list[str]]) -> None:
    """Otherwise three queues could wait for each other in a cycle."""
    rule = tree(siblings=True)
    one, two, three = (".".join(path) for path in paths)

    def comes_first(held: str, wanted: str) -> bool:
        return rule.objection(held, wanted) is None

    assert not comes_first(one, one)
    assert not (comes_first(one, two) and comes_first(two, one))
    assert not (comes_first(one, two) and comes_first(two, three)) or comes_first(one, three)


def test_keys_that_cannot_be_compared_are_an_objection() -> None:
    """Not an error of the checker."""
    assert "'a' and 1 cannot be compared" == key().objection("a", 1)


def test_a_second_lock_may_be_tried_only_where_the_class_says_so() -> None:
    """Waiting for it is an objection; trying never gets here."""
    objection = Order("a", same={"a": try_only()}).check(("a", "W", 1), ("a", "W", 2))

    assert objection is not None
    assert Kind.SAME_CLASS is objection.kind


def closes(steps: Sequence[OrderStep]) -> bool:
    """Tell, by trying all walks, whether steps close a path; two readers never wait for each other here."""
    walks = [[step] for step in steps]
    for _ in range(len(steps)):
        longer = []
        for walk in walks:
            for step in steps:
                last = walk[-1]
                if step.held == last.wanted and "W" in {step.held_mode, last.wanted_mode}:
                    if step == walk[0]:
                        return True
                    if step not in walk:
                        longer.append([*walk, step])
        walks = longer
    return False


MODES: tuple[Mode, ...] = ("R", "W")
STEPS = [
    OrderStep(held, first, wanted, second, "")
    for held, wanted in product("abc", repeat=2)
    for first, second in product(MODES, repeat=2)
    if held != wanted
]


@given(st.lists(st.sampled_from(STEPS), max_size=6, unique=True))
def test_the_proof_finds_a_closed_path_exactly_where_one_is(steps: list[OrderStep]) -> None:
    """Compared with walking all of them, where readers go first."""
    assert closes(steps) == bool(find_strong_cycle(steps, {"a", "b", "c"}))


def test_an_order_describes_itself_as_prose_and_as_a_picture() -> None:
    """The documents are drawn from this."""
    order = Order(
        SCHEDULER, same={"queue": tree()}, leaves=["limits"],
        allow=["application[W] -> partition[R]"], forbid=["partition -> application", "partition -> queue"],
    )  # fmt: skip
    text = order.describe()

    assert "- Take partition before queue before application before node; never the other way round." in text
    assert "- Of two queue locks the ancestor's comes first, by path" in text
    assert "    application -. W to R .-> partition" in text
    assert "```mermaid\nflowchart LR\n    partition --> queue --> application --> node" in text


def test_classes_alone_never_read_or_walked_are_described() -> None:
    """Each kind in one line."""
    order = Order("queue < application, clock", exclusive=["clock"], walks=["queue -> application"])
    text = order.describe()

    assert "- Never together with a lock of another class: clock." in text
    assert "- Never read: clock." in text
    assert "- Taken one by one, many under one lock: `queue -> application`." in text


def test_a_class_that_nobody_reads_has_one_mode() -> None:
    """Edges in the other one are not declared, and are objected to."""
    order = Order("a < b", exclusive=["a"])
    objection = order.check(("a", "R", None), ("b", "W", None))

    assert ["a[W] -> b[R]", "a[W] -> b[W]"] == list(map(str, order.steps))
    assert objection is not None
    assert "exclusive: a" == objection.clause
    assert order.check(("a", "W", None), ("b", "R", None)) is None


@pytest.mark.parametrize("walk", ["b -> a", "a[R] -> b", "a -> c"])
def test_a_walk_that_no_clause_allows_is_refused(walk: str) -> None:
    """Nobody walks along it."""
    with pytest.raises(OrderDeclarationError, match=re.escape(walk)):
        Order("a < b", exclusive=["a"], walks=[walk])
