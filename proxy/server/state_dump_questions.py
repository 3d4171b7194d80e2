"""The question to a resource manager (RM) in another process for its part of a state dump."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from ...model.errors import LicorneError
from ..si import licorne_v1_pb2 as v1

if TYPE_CHECKING:
    from typing import NoReturn

    from .later_answers import QuestionSender

__all__ = ["ANSWER_SECONDS", "ask_state_dump", "refuse_state_dump"]

ANSWER_SECONDS: Final = 2.0
"""How long the thread that makes a state dump waits for an RM."""


def ask_state_dump(sender: QuestionSender, rm_id: str) -> str:
    """Return an RM's part of a state dump, on a thread that may wait.

    Raises:
        LicorneError: The RM says why it has none, does not answer in time, or its connection is lost.
    """
    answers: SimpleQueue[v1.ManagerMessage | None] = SimpleQueue()
    sender.ask_later(rm_id, "state_dump", v1.StateDumpQuestion(), answers.put)
    try:
        message = answers.get(timeout=ANSWER_SECONDS)
    except Empty:
        text = f"RM {rm_id!r} gave no answer within {ANSWER_SECONDS:g} s"
        raise LicorneError(text) from None
    if message is None:
        raise LicorneError(f"the connection of RM {rm_id!r} is lost, or it does not read what is sent")
    match message.state_dump.WhichOneof("said"):
        case "json":
            return message.state_dump.json
        case "error":
            raise LicorneError(message.state_dump.error)
        case _:
            raise LicorneError(f"RM {rm_id!r} gave an answer without json and without error")


def refuse_state_dump(_: QuestionSender, rm_id: str) -> NoReturn:
    """Ask nothing: the RM of a stepped scheduler listens only inside of its calls.

    Raises:
        LicorneError: Always.
    """
    raise LicorneError(f"RM {rm_id!r} is not asked over its connection, since the scheduler is stepped")
