"""Whether code that waited on a condition checks the condition again afterwards, as a loop does.

A notification says that something has changed, not that the condition holds: another thread may have been
first, and a notification that came before the wait is missed. So code that uses what the lock guards has to
check again. It does if there is any decision between the wait and the end of the function that took the lock:
a branch, or the jump back to the beginning of a loop. Nothing is reported of code that uses nothing, that
keeps the result of `wait`, or that took the lock otherwise than by `with`: the release would look like a
use. What called functions decide is not seen.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType
from typing import Final

from ..holding.chains import TrieNode

_DECIDE: Final = ("POP_JUMP", "JUMP_IF", "JUMP_BACKWARD", "FOR_ITER", "SEND", "YIELD")
_END: Final = ("RETURN", "RAISE", "RERAISE")
_USE: Final = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF")


def waits_in_loop(frame: FrameType | None, holding: TrieNode) -> bool:
    """Return whether a wait is followed by a decision, or by no use that would need one.

    Args:
        frame: where the program waits.
        holding: where it took the lock; if that function has ended, the answer is true.
    """
    if frame is None or holding.code is None or _keeps_result(frame.f_code, frame.f_lasti):
        return True
    if not _enters_with(holding.code, holding.instruction):
        return True
    used = False
    at: FrameType | None = frame
    while at is not None:
        decides, uses = what_follows(at.f_code, at.f_lasti)
        used = used or uses
        if decides or at.f_code is holding.code:
            return decides or not used
        at = at.f_back
    return True


@lru_cache(maxsize=1024)
def what_follows(code: CodeType, instruction: int) -> tuple[bool, bool]:
    """Return whether a function decides anything after an instruction, and whether it uses anything.

    Only the code up to its end counts, if nothing is raised.
    """
    following = {one.offset: one for one in dis.get_instructions(code) if one.offset > instruction}
    at = min(following, default=None)
    uses = False
    while at is not None and at in following:
        one = following.pop(at)
        if one.opname.startswith(_DECIDE):
            return True, uses
        if one.opname.startswith(_END):
            break
        uses = uses or one.opname.startswith(_USE)
        jumps = one.opname.startswith("JUMP")
        at = one.argval if jumps else min((offset for offset in following if offset > at), default=None)
    return False, uses


@lru_cache(maxsize=1024)
def _keeps_result(code: CodeType, instruction: int) -> bool:
    after = (one.opname for one in dis.get_instructions(code) if one.offset > instruction)
    return next(after, "") != "POP_TOP"


@lru_cache(maxsize=1024)
def _enters_with(code: CodeType, instruction: int) -> bool:
    """Return whether an instruction enters a `with`, as Python writes it up to 3.13, and from 3.14 on."""
    before, here = "", ""
    for one in dis.get_instructions(code):
        if one.offset > instruction:
            break
        before, here = here, one.opname
    return here == "BEFORE_WITH" or (here == "CALL" and before == "LOAD_SPECIAL")
