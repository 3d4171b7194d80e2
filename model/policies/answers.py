"""The checks of what policies answer, and the values that stand for missing answers.

A check returns an answer as values of Python's own types, whose comparisons are known, and which a recording
can hold. It raises an error for any other answer.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from ..errors import LicorneError, error_text
from .interface import Wait
from .watching import FAILURE_MAX

KeyParts: TypeAlias = "tuple[int | float | str, ...]"
TEXT_MAX: Final = FAILURE_MAX
HELD_NS: Final = 1_000_000_000
"""The time for which a start is held after a failure, and work is spared by an answer without a time."""
_KEY_PARTS_MAX: Final = 16
_BITS_MAX: Final = 1_024
"""The limit of integers in keys: Python does not convert very large ones to text, as recordings need."""
_INTEGER_MAX: Final = 10**18
"""The limit of costs, and of run times in nanoseconds."""


class PolicyAnswerError(LicorneError):
    """An answer of a policy is invalid: it has a wrong type for the point, or cannot be compared."""


def checked_number(answer: object) -> float:
    """Return a key that is one number."""
    if type(answer) is float and math.isfinite(answer):
        return answer
    part = _key_part(answer)
    if isinstance(part, str):
        raise PolicyAnswerError(f"expected a number, got {_shown(answer)}")
    return float(part)  # This raises an error for an integer that is too large.


def no_number(_: Exception) -> float:
    """Return a number behind all others."""
    return math.inf


def key_parts(answer: object) -> KeyParts:
    """Return the parts of a key."""
    if type(answer) is not tuple:
        return (_key_part(answer),)
    if not 0 < len(answer) <= _KEY_PARTS_MAX:
        raise PolicyAnswerError(f"expected a key of 1 to {_KEY_PARTS_MAX} parts, got {len(answer)}")
    return tuple([_key_part(part) for part in answer])


def no_key(_: Exception) -> KeyParts | None:
    """Return that there is no key."""
    return None


def _key_part(part: object) -> int | float | str:
    """Return a number or text as a built-in type of Python, which compares as expected."""
    if type(part) is str or (type(part) is int and part.bit_length() <= _BITS_MAX):
        return part
    if isinstance(part, float):  # NumPy has subclasses of `float`.
        number = float(part)
        if math.isfinite(number):
            return number
    raise PolicyAnswerError(f"expected a finite number or a text, got {_shown(part)}")


def checked_wait(now_ns: int, answer: object) -> Wait | None:
    """Return why something has to wait, `None` if it does not."""
    if answer is None:
        return None
    if not isinstance(answer, Wait) or type(answer.reason) is not str or not answer.reason:
        raise PolicyAnswerError(f"expected None or Wait(reason), got {_shown(answer)}")
    until_ns = answer.until_ns
    if until_ns is not None and (type(until_ns) is not int or until_ns <= now_ns):
        raise PolicyAnswerError(f"expected until_ns in nanoseconds, after {now_ns}, got {_shown(until_ns)}")
    return Wait(answer.reason[:TEXT_MAX], until_ns)


def held(now_ns: int, error: Exception) -> Wait | None:
    """Return that something waits for a while, as a policy has failed."""
    return Wait(_failure_text(error), now_ns + HELD_NS)


def checked_cost(answer: object) -> int:
    """Return a cost."""
    if type(answer) is not int or not 0 <= answer <= _INTEGER_MAX:
        raise PolicyAnswerError(f"expected an integer from 0 to {_INTEGER_MAX:,}, got {_shown(answer)}")
    return answer


def dearest(_: Exception) -> int:
    """Return a cost above all others."""
    return _INTEGER_MAX + 1


def checked_reason(answer: object) -> str | None:
    """Return why something is refused, `None` if it is not."""
    if answer is not None and (type(answer) is not str or not answer):
        raise PolicyAnswerError(f"expected None or a reason, got {_shown(answer)}")
    return None if answer is None else answer[:TEXT_MAX]


def refused(error: Exception) -> str | None:
    """Return the refusal by a policy that has failed."""
    return _failure_text(error)


def checked_run_time(answer: object) -> int | None:
    """Return a run time in nanoseconds, `None` for the walltime."""
    if answer is not None and (type(answer) is not int or not 0 < answer <= _INTEGER_MAX):
        raise PolicyAnswerError(
            f"expected None or nanoseconds from 1 to {_INTEGER_MAX:,}, got {_shown(answer)}"
        )
    return answer


def no_run_time(_: Exception) -> int | None:
    """Return that the walltime is used."""
    return None


def checked_choice(answer: object) -> bool:
    """Return a choice."""
    if type(answer) is not bool:
        raise PolicyAnswerError(f"expected True or False, got {_shown(answer)}")
    return answer


def chosen(_: Exception) -> bool:
    """Return the choice that is made without a policy."""
    return True


def checked_class(answer: object) -> str:
    """Return the name of a class."""
    if type(answer) is not str or len(answer) > TEXT_MAX:
        raise PolicyAnswerError(f"expected a text of up to {TEXT_MAX} characters, got {_shown(answer)}")
    return answer


def no_class(_: Exception) -> str:
    """Return that something is in no class."""
    return ""


def checked_nothing(answer: object) -> None:
    """Check that a method returns nothing."""
    if answer is not None:
        raise PolicyAnswerError(f"expected None, got {_shown(answer)}")


def nothing(_: Exception) -> None:
    """Return nothing."""


def _failure_text(error: Exception) -> str:
    return f"it has failed: {error_text(error)[:TEXT_MAX]}"


def _shown(answer: object) -> str:
    """Return the text of an answer for a message; its `repr` may be code of the policy as well."""
    return f"{type(answer).__name__} {answer!r:.{TEXT_MAX}}"
