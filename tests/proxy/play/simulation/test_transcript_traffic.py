from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import SECOND, counts_of, drive, tally_of, written

from licorne.proxy.base.files.input_files import InputError
from licorne.proxy.play.simulation.record import SimulationRecord
from licorne.proxy.play.simulation.simulation import TranscriptTraffic
from licorne.proxy.play.simulation.workloads.inputs import read_timed_transcript
from licorne.proxy.play.transcripts.transcript import TranscriptError
from licorne.proxy.si import si_pb2 as si

_NODE = {
    "nodeID": "n",
    "action": "CREATE",
    "schedulableResource": {"resources": {"vcore": {"value": 4}}},
}
_START: tuple[Mapping[str, object], ...] = (
    {"register": {"rmID": "rm", "config": "queues"}},
    {"node": {"rmID": "rm", "nodes": [_NODE]}},
    {"application": {"rmID": "rm", "new": [{"applicationID": "a", "queueName": "root.q"}]}},
)


def _ask(key: str, cores: int = 1, **more: object) -> dict[str, object]:
    resources = {"resources": {"vcore": {"value": cores}}}
    ask = {"allocationKey": key, "applicationID": "a", "resourcePerAlloc": resources, **more}
    return {"allocation": {"rmID": "rm", "allocations": [ask]}}


def _release(key: str, termination: str = "STOPPED_BY_RM", application: str = "a") -> dict[str, object]:
    release = {"allocationKey": key, "applicationID": application, "terminationType": termination}
    return {"allocation": {"rmID": "rm", "releases": {"allocationsToRelease": [release]}}}


def _play(folder: Path, core: FakeCore, *lines: Mapping[str, object]) -> SimulationRecord:
    text = "".join(json.dumps(line) + "\n" for line in (*_START, *lines))
    transcript = read_timed_transcript(written(folder / "t.jsonl", text))
    record = SimulationRecord()
    drive(core, TranscriptTraffic(transcript, core, record), record)
    return record


def test_lines_have_the_time_that_was_advanced_before_them(tmp_path: Path) -> None:
    """Comments, blank lines and snapshots say nothing."""
    text = '# c\n\n{"advance": "5s"}\n{"schedule": 1}\n{"snapshot": true}\n{"advance": "1m"}\n'
    transcript = read_timed_transcript(written(tmp_path / "t.jsonl", text))

    assert [("schedule", 5 * SECOND)] == [(step.line.verb, step.at_ns) for step in transcript.steps]
    assert 65 * SECOND == transcript.end_ns


def test_a_transcript_that_says_nothing_is_refused(tmp_path: Path) -> None:
    """There would be nothing to report."""
    with pytest.raises(InputError, match="there is no message in the file"):
        read_timed_transcript(written(tmp_path / "t.jsonl", "# nothing\n"))


def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    """Before anything is played."""
    path = written(tmp_path / "t.jsonl", '{"schedule": 1}\n{"node": 7}\n')

    with pytest.raises(TranscriptError, match=rf"{path}:2: node: "):
        read_timed_transcript(path)


def test_what_the_transcript_releases_is_completed(tmp_path: Path) -> None:
    """An ask waits from its line to its placement."""
    record = _play(tmp_path, FakeCore(), _ask("k"), {"advance": "5s"}, _release("k"))

    assert {"submitted": 1, "placed": 1, "completed": 1} == counts_of(record)
    assert [0] == tally_of(record).waits_ns
    assert [4 * 5 * SECOND] == record.capacity["vcore"].integrals([0, 5 * SECOND])


@pytest.mark.parametrize(
    ("more", "expected"),
    [((), {"preempted": 1, "withdrawn": 1}), (({"confirm": "manual"},), {"running": 1})],
)
def test_releases_are_confirmed_unless_the_transcript_does_it(
    tmp_path: Path, more: tuple[dict[str, str], ...], expected: dict[str, int]
) -> None:
    """What was preempted is not asked for again: the transcript says itself what follows."""
    core = FakeCore()
    core.at(SECOND, lambda: core.want_back("k", si.PREEMPTED_BY_SCHEDULER))
    record = _play(tmp_path, core, *more, _ask("k"), {"advance": "5s"})

    assert {"submitted": 1, "placed": 1, **expected} == counts_of(record)


_ONE_WAITS: tuple[Mapping[str, object], ...] = (_ask("k1"), _ask("k2", 9), {"schedule": "all"})


@pytest.mark.parametrize(
    ("lines", "expected", "nodes"),
    [
        pytest.param(
            (_ask("k1"), {"schedule": 1}, _release("k1"), _ask("k2"), _release("k2")),
            {"submitted": 2, "placed": 1, "completed": 1, "withdrawn": 1},
            1,
            id="the scheduler works until it is idle at a line that schedules, not between other lines",
        ),
        pytest.param(
            (*_ONE_WAITS, {"application": {"rmID": "rm", "remove": [{"applicationID": "a"}]}}),
            {"submitted": 2, "placed": 1, "running": 1, "withdrawn": 1},
            1,
            id="a removed application withdraws what waits; the scheduler reports what runs",
        ),
        pytest.param(
            (*_ONE_WAITS, _release("")),
            {"submitted": 2, "placed": 1, "completed": 1, "withdrawn": 1},
            1,
            id="an empty key releases all of an application",
        ),
        pytest.param(
            (*_ONE_WAITS, _START[0]),
            {"submitted": 2, "placed": 1, "withdrawn": 2},
            0,
            id="registering again starts afresh",
        ),
    ],
)
def test_the_record_counts_what_the_transcript_says(
    tmp_path: Path, lines: tuple[Mapping[str, object], ...], expected: dict[str, int], nodes: int
) -> None:
    """Line by line."""
    record = _play(tmp_path, FakeCore(), *lines)

    assert (expected, nodes) == (counts_of(record), record.nodes)


def test_a_new_size_is_no_new_ask(tmp_path: Path) -> None:
    """The same key with other resources changes what is in use."""
    tally = tally_of(_play(tmp_path, FakeCore(), _ask("k"), {"schedule": "all"}, _ask("k", 3)))

    assert (1, 3) == (tally.submitted, tally.used["vcore"].value)


def test_foreign_allocations_are_not_in_the_record(tmp_path: Path) -> None:
    """They belong to no application and no queue."""
    record = _play(tmp_path, FakeCore(), _ask("f", nodeID="n", allocationTags={"foreign": "static"}))

    assert {} == record.accounts.tallies()


def _node(action: str, vcore: int) -> dict[str, object]:
    resources = {"resources": {"vcore": {"value": vcore}}}
    node = {"nodeID": "n", "action": action, "schedulableResource": resources}
    return {"node": {"rmID": "rm", "nodes": [node]}}


@pytest.mark.parametrize(
    ("lines", "peak", "cores", "nodes"),
    [
        pytest.param([_node("UPDATE", 7)], 7, 7, 1, id="an update has a new size"),
        pytest.param(
            [_node("UPDATE", 7), _node("DECOMISSION", 0)],
            7,
            0,
            0,
            id="a node that is decommissioned has none",
        ),
        pytest.param([_node("UPDATE", -7)], 4, 4, 1, id="a capacity that is rejected changes none"),
    ],
)
def test_nodes_that_change_or_go_change_the_capacity(
    tmp_path: Path, lines: list[dict[str, object]], peak: int, cores: int, nodes: int
) -> None:
    """Each a second after the other."""
    record = _play(tmp_path, FakeCore(), *(part for line in lines for part in ({"advance": "1s"}, line)))

    assert (peak, cores, nodes) == (
        record.capacity["vcore"].peak,
        record.capacity["vcore"].value,
        record.nodes,
    )


def test_predicates_refuse_what_the_table_says(tmp_path: Path) -> None:
    """A pair is refused for as long as the table has it."""
    core = FakeCore()
    deny = {"predicates": {"deny": [{"allocationKey": "k", "nodeID": "n"}]}}
    _play(tmp_path, core, deny)

    with pytest.raises(Exception, match="predicates denied k on n"):
        core._rm.predicates(si.PredicatesArgs(allocationKey="k", nodeID="n"))
    core._rm.predicates(si.PredicatesArgs(allocationKey="k", nodeID="m"))
    refused = core._rm.preemption_predicates(si.PreemptionPredicatesArgs(allocationKey="k", nodeID="n"))
    assert refused is not None
    assert not refused.success


def test_a_refused_request_is_reported_and_the_transcript_goes_on(tmp_path: Path) -> None:
    """As in a replay."""
    core = FakeCore(refused_configuration="bad")
    record = _play(tmp_path, core, {"register": {"rmID": "rm", "config": "bad"}}, _ask("k"))

    assert {"line 4, register: the configuration 'bad' is refused": 1} == record.remarks.refusals
    assert not record.remarks.surprises
    assert 1 == tally_of(record).placed


def test_a_configuration_may_take_the_place_of_the_recorded_one(tmp_path: Path) -> None:
    """The rest of the registration stays."""
    core, record = FakeCore(), SimulationRecord()
    path = written(tmp_path / "t.jsonl", json.dumps(_START[0]))
    drive(core, TranscriptTraffic(read_timed_transcript(path), core, record, "mine"), record)

    request = core.requests[0]

    assert isinstance(request, si.RegisterResourceManagerRequest)
    assert ("rm", "mine") == (request.rmID, request.config)


def test_what_a_transcript_asks_counts_where_it_was_placed(tmp_path: Path) -> None:
    """Also asks in the moment of the application, before there is an answer."""
    core = FakeCore(queues_instead={"root.q": "root.real"})
    record = _play(tmp_path, core, _ask("k1"), {"schedule": "all"}, _ask("k2"))

    assert ["root.real"] == [owner.queue for owner in record.accounts.tallies()]
    assert 2 == tally_of(record, "root.real").submitted


def test_an_application_that_was_never_submitted_has_an_account_without_owner(tmp_path: Path) -> None:
    """Its asks are counted all the same."""
    ask = {"allocationKey": "k", "applicationID": "unknown"}
    record = _play(tmp_path, FakeCore(), {"allocation": {"rmID": "rm", "allocations": [ask]}})

    assert [("", "")] == [(owner.queue, owner.user) for owner in record.accounts.tallies()]
