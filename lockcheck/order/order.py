"""The declared order of lock classes, as a value: which may be requested while which are held.

A rule gets two different instances, the one that is held and the one that is requested, and returns the
error, or nothing. A rule that allows waiting has to be a strict order of the keys: then there is no
deadlock within the class.

A step is "holds a class in one mode, wants another class in a mode". Two steps join if a thread that wants a
class may have to wait for a thread that holds it:

* one of the two writes: they wait at once;
* both read: they wait as soon as a third one waits to write between them, unless readers of the class go
  before waiting writers.

A cycle of steps that join is a possible deadlock; one step a thread, and one more thread for each place where
two readers meet. Steps within one class are ordered by the rule of the class and are not a cycle by
themselves. The search includes them, since a cycle may pass through one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Final, Protocol, final

from ..findings.foreign import shown
from ..findings.terms import ClassEdge, Kind, Mode, OrderDeclarationError
from .text import parse_arrow, parse_chains, reject

_MODES: Final[tuple[Mode, Mode]] = ("R", "W")


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an edge is not allowed, and the clause that forbids it."""

    kind: Kind
    text: str
    clause: str


@final
class Order:
    """A declared order, proved free of deadlocks when it is made.

    Args:
        text: chains such as `partition < queue < application < node`, outermost first; several are
            separated by commas or new lines. Classes that no chain connects must not nest.
        same: the rule for two locks of one class; without one they are never held together.
        allow: edges besides the chains, such as `application[W] -> partition[R]`.
        forbid: edges that are not allowed although a chain or a clause of `allow` allows them.
        leaves: classes under which nothing may be taken at all, declared or not.
        readers_first: classes whose locks let readers in while a writer waits.
        exclusive: classes that are taken in one mode alone: locks that are not read/write locks, or are only
            ever written. They are never held or requested for reading.
        walks: edges, such as `queue -> application`, where members are visited one by one under a lock on
            purpose. They cannot deadlock unless the edge can, but others wait long for the outer lock.

    Raises:
        OrderDeclarationError: a clause cannot be read, names a class that no chain has, contradicts
            another one, or together they allow a cycle. The message names the clause.
    """

    def __init__(
        self,
        text: str,
        *,
        same: Mapping[str, SameRule] | None = None,
        allow: Iterable[str] = (),
        forbid: Iterable[str] = (),
        leaves: Collection[str] = (),
        readers_first: Collection[str] = (),
        exclusive: Collection[str] = (),
        walks: Iterable[str] = (),
    ) -> None:
        self.text = text
        self.chains = parse_chains(text)
        self.classes = tuple(dict.fromkeys(name for chain in self.chains for name in chain.names))
        self.same: Final = dict(same or {})
        self.allowed = tuple(parse_arrow(clause) for clause in allow)
        self.forbidden = tuple(parse_arrow(clause) for clause in forbid)
        self.walks = tuple(parse_arrow(clause) for clause in walks)
        self.leaves = tuple(leaves)
        self.readers_first = frozenset(readers_first)
        self.exclusive = frozenset(exclusive)
        self._before = self._close()
        self.ranks = {
            name: sum(name in self._before[other] for other in self.classes) for name in self.classes
        }
        self._check_names()
        self.steps = tuple(self._allowed_steps())
        self._check_allowed()
        self._check_walks()
        self._prove()

    def __repr__(self) -> str:
        return f"Order({self.text!r})"

    def check(
        self,
        held: tuple[str, Mode, object],
        wanted: tuple[str, Mode, object],
    ) -> Objection | None:
        """Return the objection to wanting a lock while another one is held; each is (class, mode, key).

        Classes that are not declared are checked by the learned graph only.
        """
        held_name, held_mode, held_key = held
        name, mode, key = wanted
        if held_name in self.leaves:
            text = f"{held_name} is a leaf: nothing is taken while it is held"
            return Objection(Kind.ORDER, text, f"leaves: {held_name}")
        if held_name not in self.ranks or name not in self.ranks:
            return None
        clause = self._prohibition(held_name, held_mode, name, mode)
        if clause is not None:
            class_edge = ClassEdge(held_name, held_mode, name, mode)
            return Objection(Kind.ORDER, f"{class_edge} is forbidden", clause)
        if held_name == name:
            objection = self.rule_of(name).objection(held_key, key)
            if objection is None:
                return None
            return Objection(Kind.SAME_CLASS, objection, self.rule_of(name).describe(name))
        if name in self._before[held_name] or any(
            arrow.covers(held_name, held_mode, name, mode) for arrow in self.allowed
        ):
            return None
        if held_name in self._before[name]:
            return Objection(Kind.ORDER, f"{name} comes before {held_name}", self._clause_of(name, held_name))
        return Objection(Kind.ORDER, f"no order is declared between {held_name} and {name}", self.text)

    def rule_of(self, name: str) -> SameRule:
        """Return the rule for two locks of a class."""
        return self.same.get(name, FORBID)

    def allows_walk(self, held: str, held_mode: Mode, wanted: str, wanted_mode: Mode) -> bool:
        """Return whether members of a class may be visited one by one under a lock."""
        return any(walk.covers(held, held_mode, wanted, wanted_mode) for walk in self.walks)

    def describe(self) -> str:
        """Return the declaration as prose, and the same as a Mermaid diagram."""
        return f"{prose(self)}\n\n```mermaid\n{diagram(self)}\n```"

    def _close(self) -> dict[str, frozenset[str]]:
        """Return the classes that come after each class, directly or not; refuse contradicting chains."""
        after: dict[str, set[str]] = {name: set() for name in self.classes}
        for chain in self.chains:
            for outer, inner in pairwise(chain.names):
                if outer in after[inner]:
                    column = chain.text.index(inner, chain.text.index(outer) + len(outer))
                    reject(chain.text, column, f"{inner} comes before {outer} by an earlier clause")
                reached = {inner} | after[inner]
                for name in self.classes:
                    if name == outer or outer in after[name]:
                        after[name] |= reached
        return {name: frozenset(names) for name, names in after.items()}

    def _check_names(self) -> None:
        """Refuse rules for classes that no chain has."""
        for name in [*self.same, *self.readers_first, *self.exclusive]:
            if name not in self.ranks:
                raise OrderDeclarationError(
                    f"there is a rule for {name!r}, but no chain has it: {self.text!r}"
                )
        for arrow in (*self.allowed, *self.forbidden, *self.walks):
            for name in (arrow.held, arrow.wanted):
                if name not in self.ranks:
                    reject(arrow.text, arrow.text.rindex(name), f"no chain has {name!r}")
            if arrow.held == arrow.wanted and arrow in self.allowed:
                reject(arrow.text, 0, "two locks of one class nest by a rule of `same`")

    def _allowed_steps(self) -> Iterable[OrderStep]:
        """Yield every edge of declared classes that the clauses allow."""
        for held, wanted, held_mode, mode in product(self.classes, self.classes, _MODES, _MODES):
            if held in self.leaves or self._prohibition(held, held_mode, wanted, mode) is not None:
                continue
            clause = self._reason(held, held_mode, wanted, mode)
            if clause is not None:
                yield OrderStep(held, held_mode, wanted, mode, clause)

    def _prohibition(self, held: str, held_mode: Mode, wanted: str, mode: Mode) -> str | None:
        """Return the clause that forbids an edge in spite of the chains, if there is one."""
        for name, its_mode in ((held, held_mode), (wanted, mode)):
            if its_mode == "R" and name in self.exclusive:
                return f"exclusive: {name}"
        covering = (arrow for arrow in self.forbidden if arrow.covers(held, held_mode, wanted, mode))
        return next((arrow.text for arrow in covering), None)

    def _reason(self, held: str, held_mode: Mode, wanted: str, mode: Mode) -> str | None:
        if held == wanted:
            return self.rule_of(held).describe(held) if self.rule_of(held).nests else None
        if wanted in self._before[held]:
            return self._clause_of(held, wanted)
        return next((a.text for a in self.allowed if a.covers(held, held_mode, wanted, mode)), None)

    def _check_allowed(self) -> None:
        """Refuse a clause of `allow` that changes nothing: it is a mistake."""
        for arrow in self.allowed:
            if arrow.wanted in self._before[arrow.held]:
                clause = self._clause_of(arrow.held, arrow.wanted)
                reject(arrow.text, 0, f"{clause!r} allows this already")
            if not any(step.clause == arrow.text for step in self.steps):
                reject(arrow.text, 0, "other clauses forbid all that this one allows")

    def _check_walks(self) -> None:
        """Refuse a walk along an edge that is not allowed."""
        for arrow in self.walks:
            if not any(
                arrow.covers(step.held, step.held_mode, step.wanted, step.wanted_mode) for step in self.steps
            ):
                reject(arrow.text, 0, "no clause allows this edge, so nobody walks along it")

    def _prove(self) -> None:
        path = find_strong_cycle(self.steps, self.readers_first)
        if not path:
            return
        path_text = ", then ".join(f"{step} by {step.clause!r}" for step in path)
        exception = next((step for step in path if any(step.clause == a.text for a in self.allowed)), path[0])
        error = OrderDeclarationError(
            f"the declaration allows a deadlock: {path_text}; the clause to change is {exception.clause!r}"
        )
        for step, following in zip(path, (*path[1:], path[0]), strict=True):
            if step.wanted_mode == "R" and following.held_mode == "R":
                error.add_note(
                    f"Two readers of {step.wanted} wait for each other there as soon as a writer of it waits "
                    f"between them."
                )
        raise error

    def _clause_of(self, outer: str, inner: str) -> str:
        """Return the chain by which one class comes before another, or all of them."""
        for chain in self.chains:
            if outer in chain.names and inner in chain.names[chain.names.index(outer) :]:
                return chain.text
        return self.text.strip()


def prose(order: Order) -> str:
    """Return the order as a list of sentences, in Markdown."""
    lines = [
        f"- Take {' before '.join(chain.names)}; never the other way round."
        for chain in order.chains
        if len(chain.names) > 1
    ]
    class_edge = {name for chain in order.chains if len(chain.names) > 1 for name in chain.names}
    class_edge.update(name for arrow in order.allowed for name in (arrow.held, arrow.wanted))
    alone = [name for name in order.classes if name not in class_edge]
    single = [name for name in order.classes if order.rule_of(name) is FORBID]
    lines += _listed("Never together with a lock of another class", alone)
    lines += _listed("Never two of one class", single)
    lines += [f"- {order.rule_of(name).describe(name)}" for name in order.classes if name not in single]
    lines += _listed("Nothing is taken while one of these is held", list(order.leaves))
    lines += [f"- Besides, `{arrow.text}` is allowed." for arrow in order.allowed]
    lines += _listed("But never", [f"`{arrow.text}`" for arrow in order.forbidden])
    lines += _listed("Never read", [name for name in order.classes if name in order.exclusive])
    lines += _listed("Taken one by one, many under one lock", [f"`{walk.text}`" for walk in order.walks])
    lines += [f"- Readers of {name} go before waiting writers." for name in sorted(order.readers_first)]
    return "\n".join(lines)


def diagram(order: Order) -> str:
    """Return the order as a Mermaid flow chart: from the held class to those that may be requested.

    Edges that are forbidden for one mode alone are not drawn; they are in the text.
    """
    lines = ["flowchart LR"]
    lines += [f"    {' --> '.join(chain.names)}" for chain in order.chains]
    for arrow in order.allowed:
        modes = f"{arrow.held_mode or '*'} to {arrow.wanted_mode or '*'}"
        lines.append(f"    {arrow.held} -. {modes} .-> {arrow.wanted}")
    for arrow in order.forbidden:
        if arrow.held_mode is None and arrow.wanted_mode is None:
            lines.append(f"    {arrow.held} -. never .-x {arrow.wanted}")
    lines += [f"    {name} --> {name}" for name in order.classes if order.rule_of(name).nests]
    return "\n".join(lines)


def _listed(what: str, names: list[str]) -> list[str]:
    return [f"- {what}: {', '.join(names)}."] if names else []


class SameRule(Protocol):
    """A rule for locks of one class that are held together."""

    @property
    def nests(self) -> bool:
        """Whether one instance may be waited for while another one is held."""

    def describe(self, name: str) -> str:
        """Return the rule of a class as one sentence."""

    def objection(self, held: object, wanted: object) -> str | None:
        """Return what is wrong with holding one key and wanting another, or `None`."""


@dataclass(frozen=True, slots=True)
class _TreeRule:
    what: str
    separator: str
    siblings: bool
    nests: bool = True

    def describe(self, name: str) -> str:
        others = f"unrelated ones by {self.what}" if self.siblings else "unrelated ones never together"
        return f"Of two {name} locks the ancestor's comes first, by {self.what}; {others}."

    def objection(self, held: object, wanted: object) -> str | None:
        if not isinstance(held, str) or not isinstance(wanted, str):
            return _missing(self.what, held, wanted)
        if wanted.startswith(held + self.separator):
            return None
        outer, inner = held.split(self.separator), wanted.split(self.separator)
        if outer[: len(inner)] == inner:
            return f"{wanted} is above {held}, not below it"
        if not self.siblings:
            return f"{wanted} is not below {held}"
        return None if outer < inner else f"{wanted} comes before {held}"


@dataclass(frozen=True, slots=True)
class _Key:
    what: str
    nests: bool = True

    def describe(self, name: str) -> str:
        return f"Of two {name} locks the one with the smaller {self.what} comes first."

    def objection(self, held: object, wanted: object) -> str | None:
        if held is None or wanted is None:
            return _missing(self.what, held, wanted)
        try:
            smaller = bool(held < wanted)  # type: ignore[operator] # what cannot be compared is reported
        except TypeError:
            return f"{shown(held, repr)} and {shown(wanted, repr)} cannot be compared"
        return None if smaller else f"{shown(wanted, repr)} does not come after {shown(held, repr)}"


@dataclass(frozen=True, slots=True)
class _Never:
    advice: str
    nests: bool = False

    def describe(self, name: str) -> str:
        return f"While one {name} lock is held, {self.advice}."

    def objection(self, held: object, wanted: object) -> str | None:
        return f"{shown(held, repr)} is held and {shown(wanted, repr)} is requested, but {self.advice}"


FORBID: Final[SameRule] = _Never("no other one is taken")
TRY_ONLY: Final[SameRule] = _Never("another one is only tried, never waited for")


def tree(what: str = "path", *, separator: str = ".", siblings: bool = False) -> SameRule:
    """Return the rule "ancestor before descendant"; the keys of the locks are their paths.

    Args:
        what: the name of the paths in messages.
        separator: the text between the names of a path.
        siblings: whether unrelated ones may be held together too, in the order of their paths.
    """
    return _TreeRule(what, separator, siblings)


def key(what: str = "key") -> SameRule:
    """Return the rule "smaller key first"."""
    return _Key(what)


def try_only() -> SameRule:
    """Return the rule that a second one may be tried but never waited for."""
    return TRY_ONLY


def forbid() -> SameRule:
    """Return the rule that two are never held together; it is the default."""
    return FORBID


def _missing(what: str, held: object, wanted: object) -> str:
    return f"a {what} is missing: {shown(held, repr)} is held, {shown(wanted, repr)} is requested"


@dataclass(frozen=True, slots=True)
class OrderStep(ClassEdge):
    """An edge that a declaration allows, and the clause that allows it."""

    clause: str


def joins(wanted_mode: Mode, held_mode: Mode, *, readers_first: bool) -> bool:
    """Return whether a thread that wants a lock may have to wait for one that holds it."""
    return wanted_mode == "W" or held_mode == "W" or not readers_first


def find_strong_cycle(steps: Sequence[OrderStep], readers_first: Collection[str]) -> tuple[OrderStep, ...]:
    """Return a shortest strong cycle of steps, or nothing without one."""
    steps = _in_cycles_of_classes(steps)
    following = {
        step: [
            other
            for other in steps
            if other.held == step.wanted
            and joins(step.wanted_mode, other.held_mode, readers_first=step.wanted in readers_first)
        ]
        for step in steps
    }
    found = [path for step in steps if step.held != step.wanted for path in [_round(step, following)] if path]
    return min(found, key=len, default=())


def _in_cycles_of_classes(steps: Sequence[OrderStep]) -> list[OrderStep]:
    """Return the steps that may be part of a cycle: of most orders, none.

    The others begin at a class that no other class leads to, or end at one that leads to no other one,
    once those of such classes are left out.
    """
    left = list(steps)
    while True:
        between = [step for step in left if step.held != step.wanted]
        classes = {step.held for step in between} & {step.wanted for step in between}
        kept = [step for step in left if step.held in classes and step.wanted in classes]
        if len(kept) == len(left):
            return left
        left = kept


def _round(start: OrderStep, following: dict[OrderStep, list[OrderStep]]) -> tuple[OrderStep, ...]:
    """Return a shortest path of steps from a step back to itself, by breadth."""
    paths: dict[OrderStep, tuple[OrderStep, ...]] = {start: (start,)}
    layer = [start]
    while layer:
        following_layer: list[OrderStep] = []
        for step in layer:
            for other in following[step]:
                if other == start:
                    return paths[step]
                if other not in paths:
                    paths[other] = (*paths[step], other)
                    following_layer.append(other)
        layer = following_layer
    return ()
