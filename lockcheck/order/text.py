"""The small language of declarations: `a < b < c`, and `a[W] -> b[R]`. Errors name clause and column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn, cast

from ..findings.terms import Mode, OrderDeclarationError

_TOKEN: Final = re.compile(r"\s*(?:(?P<name>[A-Za-z_][\w.]*(?:-\w+)*)|(?P<sign>->|[<\[\]*]))")
_SPLIT: Final = re.compile(r"[,;\n]")


@dataclass(frozen=True, slots=True)
class Chain:
    """Classes in order, the first one taken first."""

    names: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge: the held class and the requested one; a mode of `None` stands for both."""

    held: str
    held_mode: Mode | None
    wanted: str
    wanted_mode: Mode | None
    text: str

    def covers(self, held: str, held_mode: Mode, wanted: str, wanted_mode: Mode) -> bool:
        """Return whether the clause applies to an edge."""
        return (
            (self.held, self.wanted) == (held, wanted)
            and self.held_mode in {None, held_mode}
            and self.wanted_mode in {None, wanted_mode}
        )


def reject(clause: str, column: int, what: str) -> NoReturn:
    """Refuse a declaration, with the clause and a mark below the column."""
    error = OrderDeclarationError(f"{what}, in column {column + 1} of the clause {clause!r}")
    error.add_note(f"    {clause}\n    {' ' * column}^")
    raise error


def parse_chains(text: str) -> tuple[Chain, ...]:
    """Parse `a < b < c`; several are separated by commas, semicolons or new lines."""
    chains = tuple(_parse_chain(part.strip()) for part in _SPLIT.split(text) if part.strip())
    if not chains:
        raise OrderDeclarationError(f"the order {text!r} names no class; write `outer < inner`")
    return chains


def _parse_chain(clause: str) -> Chain:
    names: list[str] = []
    wants_name = True
    for column, name, sign in _tokens(clause):
        if wants_name and not name:
            reject(clause, column, f"a class is expected before {sign!r}")
        if not wants_name and sign != "<":
            reject(clause, column, f"`<` is expected before {name or sign!r}")
        if name in names:
            reject(clause, column, f"{name} would come before itself")
        if name:
            names.append(name)
        wants_name = not wants_name
    if wants_name:
        reject(clause, len(clause), "a class is missing at the end")
    return Chain(tuple(names), clause)


def parse_arrow(text: str) -> Arrow:
    """Parse `held[W] -> wanted[R]`; without a mode, or with `*`, a side stands for both."""
    clause = text.strip()
    tokens = [*_tokens(clause), (len(clause), "", "")]
    held, held_mode, rest = _side(clause, tokens)
    column, name, sign = rest[0]
    if sign != "->":
        reject(clause, column, f"`->` is expected before {name or sign or 'the end'}")
    wanted, wanted_mode, rest = _side(clause, rest[1:])
    if len(rest) > 1:
        reject(clause, rest[0][0], "the clause should end")
    return Arrow(held, held_mode, wanted, wanted_mode, clause)


def _side(
    clause: str, tokens: list[tuple[int, str, str]]
) -> tuple[str, Mode | None, list[tuple[int, str, str]]]:
    """Parse one class with its mode; return them and the rest."""
    column, name, sign = tokens[0]
    if not name:
        reject(clause, column, f"a class is expected before {sign or 'the end'}")
    if len(tokens) == 1 or tokens[1][2] != "[":
        return name, None, tokens[1:]
    column, mode, sign = tokens[2] if len(tokens) > 2 else tokens[-1]
    if (mode or sign) not in {"R", "W", "*"}:
        reject(clause, column, f"{mode or sign or 'the end'!r} is not a mode: R, W or *")
    closing = tokens[3] if len(tokens) > 3 else tokens[-1]
    if closing[2] != "]":
        reject(clause, closing[0], "`]` is missing")
    return name, cast("Mode", mode) if mode else None, tokens[4:]


def _tokens(clause: str) -> Iterator[tuple[int, str, str]]:
    """Yield column, name and sign; one of the two is empty."""
    at = 0
    while at < len(clause.rstrip()):
        found = _TOKEN.match(clause, at)
        if found is None:
            column = at + len(clause[at:]) - len(clause[at:].lstrip())
            reject(clause, column, f"{clause[column]!r} means nothing here")
        yield found.start(found.lastgroup or 0), found["name"] or "", found["sign"] or ""
        at = found.end()
