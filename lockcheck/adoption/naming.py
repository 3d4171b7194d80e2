"""Which new locks are adopted, and their names: the targets of their assignments, or the places of calls.

The expression that makes a lock is found in the source by its position. If it only returns the lock, the
place that called the function names it: a helper that makes locks does not name all of them.
"""

from __future__ import annotations

import ast
import linecache
import os
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import CodeType, FrameType
from typing import Final, Self, TypeAlias, final

from ..environment.settings import level_for
from ..findings.terms import Level, LockUsageError
from ..holding.runtime import local
from ..holding.stacks import is_of_library

_CLIMB_MAX: Final = 5
"""How many callers are asked for the name at most."""
_FILES_MAX: Final = 1000
_PARSES_MAX: Final = 5
_RETURNED: Final = ""
"""The target of an expression whose value is returned."""
_Position: TypeAlias = tuple[int, int]
_Targets: TypeAlias = dict[_Position, str]
_targets_by_file: Final[dict[str, _Targets]] = {}
"""For each file that made a lock: by line and column of an expression, what its value is assigned to."""
_found: Final[dict[tuple[CodeType, int], str | None]] = {}
"""The name at a place; `None` if its caller has it."""
_libraries: Final[dict[str, bool]] = {}
"""Whether each file belongs to the standard library."""
PROGRAM: Final = "program"
ALL: Final = "all"
NONE: Final = "none"
VARIABLE: Final = "LOCKCHECK_ADOPT"
"""The variable of the environment that has the default."""
_OF_PROGRAM: Final = frozenset({"logging", "concurrent", "queue"})
"""Packages of the standard library whose locks programs meet with theirs: of handlers, pools and queues."""
_RUNNERS: Final = frozenset({"_pytest", "pytest", "pluggy", "xdist", "execnet"})
"""Packages that run the tests of a program, and are not of it."""


def name_at(frame: FrameType) -> str:
    """Return the name of a lock that a frame of the program makes now."""
    at: FrameType | None = frame
    for _ in range(_CLIMB_MAX):
        if at is None:
            break
        place = at.f_code, at.f_lasti
        if place not in _found:
            _found[place] = _name_in(at)
        name = _found[place]
        if name is not None:
            return name
        at = at.f_back
    return _place(frame)


def _name_in(frame: FrameType) -> str | None:
    """Return the name of a lock by the target in this frame; `None` if the value is returned from it."""
    code = frame.f_code
    position = _position(code, frame.f_lasti)
    target = _targets(frame).get(position) if position is not None else None
    if target is None:
        owner = frame.f_locals.get("self")
        if code.co_name == "__init__" and owner is not None:  # written by a tool, as that of a dataclass
            return f"{type(owner).__name__}.{_field(owner)}"
        return _place(frame)
    if target == _RETURNED:
        return None
    function = (
        code.co_qualname.replace(".<locals>", "").removesuffix(".<listcomp>").removesuffix(".<dictcomp>")
    )
    owner_name = function.rpartition(".")[0].rpartition(".")[2]
    if target.startswith("self."):
        return f"{owner_name}.{target[5:]}" if owner_name else target
    if target.startswith("cls."):
        return f"{owner_name}.{target[4:]}" if owner_name else target
    if "." in target:
        return target
    if not function or function.startswith("<"):
        module = str(frame.f_globals.get("__name__", ""))
        return target if module in {"", "__main__"} else f"{module.rpartition('.')[2]}.{target}"
    return f"{function.rpartition('.')[2]}.{target}"


def _position(code: CodeType, instruction: int) -> _Position | None:
    for number, (line, _, column, _) in enumerate(code.co_positions()):
        if number == instruction // 2:
            return (line, column) if line is not None and column is not None else None
    return None


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


def _field(owner: object) -> str:
    """Return the field of a dataclass that is a lock; which of several is not known."""
    fields = getattr(type(owner), "__dataclass_fields__", {})
    made = [name for name, field in fields.items() if "lock" in str(field.default_factory).lower()]
    return made[0] if made else "lock"


def _targets(frame: FrameType) -> _Targets:
    file = frame.f_code.co_filename
    found = _targets_by_file.get(file)
    if found is None:
        found = {}
        with suppress(SyntaxError, ValueError, RecursionError):
            _Finder(found).visit(_parsed("".join(linecache.getlines(file, frame.f_globals))))
        if len(_targets_by_file) < _FILES_MAX:
            _targets_by_file[file] = found
    return found


def _parsed(source: str) -> ast.Module:
    """Return the tree of a source; CPython 3.11 fails sometimes where another thread does that too.

    Raises:
        SyntaxError, ValueError, RecursionError: it is not one, or nests too deep.
    """
    for _ in range(_PARSES_MAX):
        with suppress(SystemError):
            return ast.parse(source)
    raise ValueError("no tree could be made")


class _Finder(ast.NodeVisitor):
    """Notes what the value of each call is assigned to."""

    def __init__(self, found: _Targets) -> None:
        self._found = found

    def visit_Assign(self, node: ast.Assign) -> None:
        """Note the values of one target, or of several in a tuple."""
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for one, value in zip(target.elts, node.value.elts, strict=False):
                self._note(value, _text(one))
        else:
            self._note(node.value, _text(target))
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Note the value of a target with a type."""
        if node.value is not None:
            self._note(node.value, _text(node.target))
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Note the value of a target inside of an expression."""
        self._note(node.value, _text(node.target))
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Note the value of an argument by name."""
        if node.arg is not None:
            self._note(node.value, node.arg)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Note that a value is returned."""
        if node.value is not None:
            self._note(node.value, _RETURNED)
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Note that a value is returned."""
        self._note(node.body, _RETURNED)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Note what a mapping makes for a key that it does not have."""
        self._found.setdefault((node.lineno, node.col_offset), f"{_text(node.value)}[]")
        self.generic_visit(node)

    def _note(self, value: ast.expr, target: str) -> None:
        if isinstance(value, ast.Call):
            self._found.setdefault((value.lineno, value.col_offset), target)
            for one in value.args:  # a call around it, such as `wrapped(Lock())`
                self._note(one, target)
        elif isinstance(value, ast.BoolOp):
            for one in value.values:
                self._note(one, target)
        elif isinstance(value, ast.IfExp):
            self._note(value.body, target)
            self._note(value.orelse, target)
        elif isinstance(value, ast.NamedExpr):
            self._note(value.value, target)
        else:
            self._note_members(value, target)

    def _note_members(self, value: ast.expr, target: str) -> None:
        """Note what becomes a member of a collection."""
        if isinstance(value, ast.List | ast.Tuple | ast.Set):
            for one in value.elts:
                self._note(one, _many(target))
        elif isinstance(value, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            self._note(value.elt, _many(target))
        elif isinstance(value, ast.DictComp):
            self._note(value.value, _many(target))
        elif isinstance(value, ast.Dict):
            for key, one in zip(value.keys, value.values, strict=True):
                self._note(one, f"{target}[{_text(key)}]" if key is not None and target else _many(target))


def _many(target: str) -> str:
    return f"{target}[]" if target and not target.endswith("[]") else target


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return f"{_text(node.value)}[]"
    return ast.unparse(node)


def adopted_for(scope: Scope | None, frame: FrameType | None) -> tuple[str, Level] | None:
    """Return the name and the level of a lock that a frame makes now; `None` if it is not adopted.

    Args:
        scope: whose locks are adopted, if any are.
        frame: where it is made; `None` if no program makes it.
    """
    execution = local.execution
    if scope is None or frame is None or execution.inside:
        return None
    file = frame.f_code.co_filename
    of_library = _libraries.get(file)
    if of_library is None:
        of_library = _libraries[file] = is_of_library(file)
    if not scope.has(str(frame.f_globals.get("__name__", "")), of_library=of_library):
        return None
    level = level_for(None)
    if level is Level.OFF:
        return None
    inside, execution.inside = execution.inside, True  # the source is read for the name
    try:
        return name_at(frame), level
    finally:
        execution.inside = inside


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """The modules whose locks are adopted.

    Args:
        text: `program`, which is everything but what runs tests and the standard library, of which `logging`,
            `concurrent.futures` and `queue` count; `all`; `none`; or patterns of names of modules, separated
            by commas, such as `shop.*,billing`.
    """

    text: str
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, text: str, where: str = "adopt") -> Self:
        """Return the scope that a text names.

        Raises:
            LockUsageError: the text is empty, or one of its patterns is; the message begins with `where`.
        """
        patterns = tuple(part.strip() for part in text.split(","))
        if not all(patterns):
            raise LockUsageError(
                f"{where}: {text!r} does not say whose locks are adopted: program, all, none, or patterns of "
                "modules"
            )
        return cls(text, patterns)

    @classmethod
    def of_environment(cls, given: str | None, where: str) -> Self:
        """Return the scope that was given, else that of the environment, else that of the program."""
        if given is not None:
            return cls.of(given, where)
        return cls.of(os.environ.get(VARIABLE) or PROGRAM, VARIABLE)

    def has(self, module: str, *, of_library: bool) -> bool:
        """Return whether locks are adopted that a module makes."""
        if self.text in {PROGRAM, ALL, NONE}:
            package = module.partition(".")[0]
            is_of_program = package not in _RUNNERS and (not of_library or package in _OF_PROGRAM)
            return self.text == ALL or (self.text == PROGRAM and is_of_program)
        return any(fnmatchcase(module, pattern) for pattern in self.patterns)
