"""A declared order as prose and as a diagram, so that documents are generated from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .same_class import FORBID

if TYPE_CHECKING:
    from .order import Order

__all__ = ["diagram", "prose"]


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
    """Return the order as a Mermaid flow chart: from what is held to what may be wanted.

    What is forbidden for one mode alone is not drawn; it is in the text.
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
