"""Verifying recordings: valid days, falsified at random, and what cannot be read."""

from __future__ import annotations

import json
import tokenize
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.proxy.command_runs import run
from support.transcripts.preemption_transcripts import preemption_transcript
from support.verify.days import preempting_day, recorded, simulated_failure
from support.verify.scenes import SCENES, entries, with_text

from licorne.proxy.play import verify
from licorne.proxy.play.verify.queues import UnreadableError
from licorne.proxy.play.verify.verifier import verify_lines

Lines = list[dict[str, Any]]
DAYS = (9, 12, 14, 40)


@cache
def day(seed: int) -> Lines:
    return [json.loads(line) for line in preempting_day(seed)]


def records(lines: Lines) -> list[dict[str, Any]]:
    return [line["outcome"]["preemption"] for line in lines if "preemption" in line.get("outcome", {})]


def placements(lines: Lines) -> Lines:
    return [line for line in lines if entries(line, "new")]


# ---------------------------------------------------------------------------------- valid days


@pytest.mark.parametrize("seed", DAYS)
def test_nothing_is_refuted_in_a_day_in_which_much_is_preempted(seed: int) -> None:
    found = verify_lines(with_text(day(seed)))

    assert found.refuted == []
    assert sum(count for what, count in found.confirmed.items() if "preemptions" in what) == len(
        records(day(seed))
    )
    assert found.confirmed["placements"] == len(placements(day(seed)))


@pytest.mark.parametrize("seed", [3, 6])
def test_nothing_is_refuted_in_a_day_of_the_simulator(seed: int) -> None:
    assert simulated_failure(seed) is None


def test_pseudonyms_change_nothing() -> None:
    transcript = "\n".join(preemption_transcript(9))

    assert (
        verify_lines(recorded(transcript, anonymize=True)).confirmed
        == verify_lines(recorded(transcript)).confirmed
    )


def test_outcomes_change_no_replay(tmp_path: Path) -> None:
    """The replay of the recording says what was said, outcome lines or not."""
    path = tmp_path / "day.jsonl"
    path.write_text("".join(with_text(day(9))))

    _, said, _ = run("replay", str(path))
    responses = [
        row["allocationResponse"] for row in map(json.loads, said.splitlines()) if "allocationResponse" in row
    ]
    outcomes = [line["outcome"] for line in day(9) if "outcome" in line]
    assert responses == [each["allocationResponse"] for each in outcomes if "allocationResponse" in each]


# ------------------------------------------------------------------------ falsified at random


def _figures(lines: Lines, dice: Random) -> None:
    """Make one figure of a record larger."""
    justification = dice.choice(records(lines))["justification"]
    queue = dice.choice(justification["queues"])
    size = queue[dice.choice(["owedBefore", "owedAfter", "aboveBefore", "aboveAfter"])]
    name = dice.choice(["memory", "vcore"])
    size[name] = size.get(name, 0) + 1


def _priorities(lines: Lines, dice: Random) -> None:
    """Make a priority of a victim another one."""
    victims = [victim for record in records(lines) for victim in record["victims"] if victim["priorities"]]
    dice.choice(victims)["priorities"][dice.choice(["ask", "victim"])] += dice.choice([-1, 1])


def _less_victims(lines: Lines, dice: Random) -> None:
    """Take a victim out of a record."""
    dice.choice(records(lines))["victims"].pop()


def _no_record(lines: Lines, dice: Random) -> None:
    """Lose a record."""
    index = dice.choice([i for i, line in enumerate(lines) if "preemption" in line.get("outcome", {})])
    del lines[index]


def _no_end(lines: Lines, dice: Random) -> None:
    """Have a victim never be asked to end."""
    ends = [
        line for line in lines if any("preempting" in each["message"] for each in entries(line, "released"))
    ]
    entries(dice.choice(ends), "released").pop()


def _unknown_node(lines: Lines, dice: Random) -> None:
    dice.choice(entries(dice.choice(placements(lines)), "new"))["nodeID"] = "elsewhere"


def _larger(lines: Lines, dice: Random) -> None:
    size = dice.choice(entries(dice.choice(placements(lines)), "new"))["resourcePerAlloc"]["resources"]
    size["memory"] = {"value": "1000"}


def _again(lines: Lines, dice: Random) -> None:
    """Place something a second time, right after the first."""
    index = lines.index(dice.choice(placements(lines)))
    lines.insert(index + 1, deepcopy(lines[index]))


def _nobodys(lines: Lines, dice: Random) -> None:
    dice.choice(entries(dice.choice(placements(lines)), "new"))["allocationKey"] = "nobodys"


def _smaller_node(lines: Lines, dice: Random) -> None:
    """Have a node be too small for all that is placed there."""
    used = {each["nodeID"] for line in placements(lines) for each in entries(line, "new")}
    nodes = [node for line in lines for node in line.get("node", {}).get("nodes", ())]
    created = [node for node in nodes if node["nodeID"] in used and node["action"] == "CREATE"]
    dice.choice(created)["schedulableResource"]["resources"]["memory"] = {"value": "0"}


FALSIFY: list[Callable[[Lines, Random], None]] = [
    *(_figures, _priorities, _less_victims, _no_record, _no_end),
    *(_unknown_node, _larger, _again, _nobodys, _smaller_node),
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("falsify", FALSIFY)
def test_what_is_falsified_at_random_is_refuted(falsify: Callable[[Lines, Random], None], seed: int) -> None:
    dice = Random(f"{falsify.__name__} {seed}")  # noqa: S311 - nothing is secret
    lines = deepcopy(day(dice.choice(DAYS)))
    falsify(lines, dice)

    assert verify_lines(with_text(lines)).refuted


# ------------------------------------------------------------------------------ what is no day


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "got no line of one"),
        (['{"register": {}}\n'], "line 1: expected a recording with outcomes"),
        (['{"recording": {"file": 1}}\n', '{"at": 1}\n'], "line 2: expected a recording with outcomes"),
        (["# a comment\n", "\n", "{\n"], "line 3: "),
        (['{"recording": {"outcomes": true}}\n', '{"at": 1, "register": {}}\n'], "line 2: "),
    ],
)
def test_what_cannot_be_read(lines: list[str], why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        verify_lines(lines)


def test_a_last_line_that_was_cut_off_is_left_out() -> None:
    assert verify_lines([*with_text(day(9)), '{"at": 94668']).refuted == []


# -------------------------------------------------------------------------------- the command


def test_the_command_says_which_line_is_wrong(tmp_path: Path) -> None:
    lines = deepcopy(SCENES["guarantee"]())
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text("".join(with_text(lines)))
    records(lines)[0]["victims"][0]["gives"] = []
    bad.write_text("".join(with_text(lines)))

    status, said, _ = run("verify", str(good))
    confirmed = "1 ends that were asked for, 8 placements, 2 preemptions (guarantee)"
    assert (status, said) == (0, f"{good}: 0 refuted; confirmed: {confirmed}\n")
    status, said, _ = run("verify", str(good), str(bad))
    assert status == 1
    assert f"{bad}: line 56: victims r3 gives: expected memory, got nothing\n" in said


def test_the_command_refuses_what_has_no_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text('{"register": {"rmID": "rm"}}\n')

    status, _, said = run("verify", str(path))
    assert status == 2
    assert "line 1: expected a recording with outcomes" in said


def test_a_transcript_is_recorded_with_its_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl"
    path.write_text("\n".join(preemption_transcript(9)))

    assert run("replay", "--record", str(tmp_path / "recordings"), str(path))[0] == 0
    status, said, _ = run("verify", str(tmp_path / "recordings"))
    assert status == 0
    assert "preemptions" in said


# --------------------------------------------------------------------------------- the bounds


def _lines_of_code(path: Path) -> int:
    """Count the lines of a module that are neither blank nor a comment nor of a docstring."""
    rows: set[int] = set()
    before = tokenize.NEWLINE
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            begins = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
            is_docstring = token.type == tokenize.STRING and begins
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                before = token.type
                if token.string.strip() and token.type != tokenize.ENCODING and not is_docstring:
                    rows.add(token.start[0])
    return len(rows)


def test_it_is_small() -> None:
    """It has to be read as a whole by those who doubt a decision."""
    assert sum(map(_lines_of_code, Path(verify.__file__).parent.glob("*.py"))) <= 1_150
