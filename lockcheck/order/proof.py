"""The proof that a declaration allows no deadlock: there is no strong cycle in what it allows.

A step is "holds a class in one mode, wants another class in a mode". Two steps join if a thread that wants a
class may have to wait for a thread that holds it:

* one of the two writes: they wait at once;
* both read: they wait as soon as a third one waits to write between them, unless readers of the class go
  before waiting writers.

A cycle of steps that join is a possible deadlock; one step a thread, and one more thread for each place where
two readers meet. Steps within one class are ordered by the rule of the class and are no cycle by themselves.
The search includes them, since a cycle may pass through one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..findings.class_edges import ClassEdge
from ..findings.evidence import Mode


@dataclass(frozen=True, slots=True)
class OrderStep(ClassEdge):
    """An edge that a declaration allows, and the clause that allows it."""

    clause: str


def joins(wanted_mode: Mode, held_mode: Mode, *, readers_first: bool) -> bool:
    """Return whether a thread that wants a lock may have to wait for one that holds it."""
    return wanted_mode == "W" or held_mode == "W" or not readers_first


def find_strong_cycle(steps: Sequence[OrderStep], readers_first: Collection[str]) -> tuple[OrderStep, ...]:
    """Return a shortest strong cycle of steps, or nothing if there is none."""
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
