"""Mutants of how the engine `threads` takes its locks: each has one acquisition swapped, moved or dropped.

An acquisition is an item of a `with`, or a call that acquires or releases. Each operator makes at most one
mutant of each. Two acquisitions that nest stand in different functions here, so that no operator exchanges
them; `exchanged` does that where they run. Which mutants can deadlock is judged in `lock_mutant_table`.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
SOURCES: Final = (
    "actors/locks/guards.py",
    "actors/locks/guarded_partition.py",
    "actors/locks/threads_engine.py",
    "actors/services/rm_link.py",
    "actors/services/clocks.py",
    "proxy/core/scheduler/managers/registrations.py",
    "proxy/core/resolvers/cached.py",
    "proxy/core/resolvers/partition_resolvers.py",
)
REENTRANT: Final = "self._changed"
"""Conditions have re-entrant locks."""
GUARDS: Final = SOURCES[0]
NESTED: Final = (
    ("cluster", "partition"),
    *(("partition", inner) for inner in ("queue", "application", "node", "limits", "node-order", "counts")),
)
MAKING: Final = ("RWLock(self.lock_class, key=key)", 'RWLock(lock_class, key=getattr(self, "path", None))')
"""How the locks of entities, and of instrumented objects, are made."""
_LOCK: Final = re.compile(r"(_changed|_registering|_guard|\block\.(write|read)\(\).*)$")
_CALL: Final = re.compile(r"\block\.(acquire|release)_(read|write)\(\)$")
_Block = list[ast.stmt]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A source with one change."""

    path: str
    function: str
    operator: str
    lock: str
    source: str

    @property
    def name(self) -> str:
        """What it is called; line numbers have no part in it."""
        return f"{self.function}: {self.operator} {self.lock}"


def mutants() -> Iterator[Mutant]:
    """Yield all mutants, file by file."""
    for path in SOURCES:
        yield from mutants_of((ROOT / path).read_text(encoding="utf-8"), path)
    source = (ROOT / GUARDS).read_text(encoding="utf-8")
    for outer, inner in NESTED:
        yield Mutant(
            GUARDS, f"{outer} and {inner}", "exchange", "as they nest", exchanged(source, outer, inner)
        )


def mutants_of(source: str, path: str) -> Iterator[Mutant]:
    """Yield the mutants of one source; those that change nothing are left out."""
    original = ast.unparse(ast.parse(source))
    for number, (function, lock) in enumerate(_sites(ast.parse(source))):
        for operator, change in OPERATORS.items():
            tree = ast.parse(source)
            block, index = _place(tree, number)
            if not change(block, index):
                continue
            changed = ast.unparse(ast.fix_missing_locations(tree))
            if changed != original:
                yield Mutant(path, function, operator, lock, changed + "\n")


def exchanged(source: str, outer: str, inner: str) -> str:
    """Return the guards with two classes of locks taken the other way round wherever they nest."""
    exchanging = source.replace(
        "import annotations\n", "import annotations\nimport contextlib, threading\n", 1
    )
    for made in MAKING:
        assert made in source, "guards make their locks in some other way"
        exchanging = exchanging.replace(made, f"_Exchanged({made})")
    return exchanging.replace(
        "class Guard:", _EXCHANGED.format(outer=outer, inner=inner) + "\n\nclass Guard:", 1
    )


_EXCHANGED: Final = """
class _Exchanged:
    mine = threading.local()

    def __init__(self, lock):
        self.plain = lock

    def __getattr__(self, name):
        return getattr(self.plain, name)

    def read(self):
        return self.take("read")

    def write(self):
        return self.take("write")

    @contextlib.contextmanager
    def take(self, mode):
        held = self.mine.__dict__.setdefault("held", [])
        outer, how = held[-1] if held else (self, mode)
        exchange = (outer.name, self.name) == ("{outer}", "{inner}")
        if exchange:
            getattr(outer, "release_" + how)()
        with getattr(self.plain, mode)():
            if exchange:
                getattr(outer, "acquire_" + how)()
            held.append((self, mode))
            try:
                yield
            finally:
                held.pop()
"""


# ------------------------------------------------------------------------------------ acquisitions


def _sites(tree: ast.Module) -> list[tuple[str, str]]:
    """Return function and lock of each acquisition, in order."""
    return [(function, _lock_of(block[index])) for function, block, index in _walk(tree, "")]


def _place(tree: ast.Module, number: int) -> tuple[_Block, int]:
    """Return the block that the acquisition of that number stands in, and where."""
    _, block, index = list(_walk(tree, ""))[number]
    return block, index


def _walk(node: ast.AST, function: str) -> Iterator[tuple[str, _Block, int]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}" if function else node.name
    for field in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(node, field, [])
        for index, below in enumerate(block if isinstance(block, list) else []):
            if _lock_of(below):
                yield function, block, index
            yield from _walk(below, function)


def _lock_of(statement: ast.AST) -> str:
    """Return the text of the lock that a statement takes or releases, nothing if it does neither."""
    if isinstance(statement, ast.With):
        return next((ast.unparse(item) for item in statement.items if _is_lock(item)), "")
    if isinstance(statement, ast.Expr) and _CALL.search(ast.unparse(statement)):
        return ast.unparse(statement)
    return ""


def _is_lock(item: ast.withitem) -> bool:
    return _LOCK.search(ast.unparse(item)) is not None


# --------------------------------------------------------------------------------------- operators


def _drop(block: _Block, index: int) -> bool:
    """Do not take the lock; do not release it."""
    statement = block[index]
    if not isinstance(statement, ast.With):
        block[index] = ast.Pass()
        return True
    statement.items = [item for item in statement.items if not _is_lock(item)]
    if not statement.items:
        block[index : index + 1] = statement.body
    return True


def _twice(block: _Block, index: int) -> bool:
    """Take the lock once more while it is held, unless it is re-entrant: that would change nothing."""
    statement = block[index]
    if not isinstance(statement, ast.With):
        block.insert(index, copy.deepcopy(statement))
        return True
    (lock,) = [item for item in statement.items if _is_lock(item)]
    if ast.unparse(lock) == REENTRANT:
        return False
    statement.items.insert(statement.items.index(lock) + 1, copy.deepcopy(lock))
    return True


def _upgrade(block: _Block, index: int) -> bool:
    """Read-lock what is write-locked right afterwards."""
    statement = block[index]
    if not isinstance(statement, ast.With):
        return False
    for item in statement.items:
        text = ast.unparse(item)
        if _is_lock(item) and ".write()" in text:
            reading = ast.parse(re.sub(r"(\block)\.write\(\).*", r"\1.read()", text), mode="eval").body
            statement.items.insert(statement.items.index(item), ast.withitem(reading))
            return True
    return False


def _exchange(block: _Block, index: int) -> bool:
    """Exchange a lock and its neighbour; exchange acquire and release as well."""
    statement = block[index]
    if isinstance(statement, ast.With):
        statement.items.reverse()
        return len(statement.items) > 1
    text = ast.unparse(statement)
    other = {"acquire": "release", "release": "acquire"}
    block[index] = ast.parse(re.sub("acquire|release", lambda found: other[found[0]], text)).body[0]
    return True


def _other_mode(block: _Block, index: int) -> bool:
    """Read in place of write and the other way round."""
    before = ast.unparse(block[index])
    head, newline, rest = before.partition("\n")
    other = {"read": "write", "write": "read"}
    head = re.sub(r"(?<=[._])(read|write)(?=\(\))", lambda found: other[found[0]], head)
    block[index] = ast.parse(head + newline + rest).body[0] if rest else ast.parse(head).body[0]
    return True


def _always(mode: str) -> Callable[[_Block, int], bool]:
    def change(block: _Block, index: int) -> bool:
        """Take a lock that is taken in either mode in one alone."""
        statement = block[index]
        if not isinstance(statement, ast.With):
            return False
        for item in statement.items:
            if isinstance(item.context_expr, ast.IfExp):
                both = (item.context_expr.body, item.context_expr.orelse)
                item.context_expr = next(one for one in both if mode in ast.unparse(one))
                return True
        return False

    return change


def _take_earlier(block: _Block, index: int) -> bool:
    """Hold the lock also during what comes before in the block; release it one step earlier."""
    statement = block[index]
    if isinstance(statement, ast.Expr):
        return _swap(block, index - 1)
    first = 1 if isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant) else 0
    if not isinstance(statement, ast.With) or index == first:
        return False
    given = {name for item in statement.items for name in _names(item, ast.Load)}
    if given & {name for before in block[first:index] for name in _names(before, ast.Store)}:
        return False
    statement.body = [*block[first:index], *statement.body]
    del block[first:index]
    return True


def _swap(block: _Block, index: int) -> bool:
    """Exchange a step with the one after it."""
    if not 0 <= index < len(block) - 1:
        return False
    block[index : index + 2] = [block[index + 1], block[index]]
    return True


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}


def _hold_longer(block: _Block, index: int) -> bool:
    """Hold the lock also during what comes after in the block."""
    statement = block[index]
    if not isinstance(statement, ast.With) or index == len(block) - 1:
        return False
    statement.body = [*statement.body, *block[index + 1 :]]
    del block[index + 1 :]
    return True


def _take_later(block: _Block, index: int) -> bool:
    """Take the lock only after the first step under it; release it one step later."""
    statement = block[index]
    if isinstance(statement, ast.Expr):
        return _swap(block, index)
    if not isinstance(statement, ast.With) or len(statement.body) < 2:
        return False
    block.insert(index, statement.body.pop(0))
    return True


def _hold_shorter(block: _Block, index: int) -> bool:
    """Release the lock before the last step under it."""
    statement = block[index]
    if not isinstance(statement, ast.With) or len(statement.body) < 2:
        return False
    block.insert(index + 1, statement.body.pop())
    return True


OPERATORS: Final[dict[str, Callable[[_Block, int], bool]]] = {
    "drop": _drop,
    "twice": _twice,
    "upgrade": _upgrade,
    "exchange": _exchange,
    "other mode of": _other_mode,
    "always read": _always("read"),
    "always write": _always("write"),
    "take earlier": _take_earlier,
    "hold longer": _hold_longer,
    "take later": _take_later,
    "hold shorter": _hold_shorter,
}
