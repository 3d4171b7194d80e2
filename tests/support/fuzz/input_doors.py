"""Doors for untrusted bytes: each accepts or refuses any input, and does nothing else.

A door refuses the input (`LicorneError`) or carries it out. Any other exception is a fault: so is a change by
refused input, or a broken invariant.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.message import Message

from licorne import LicorneError, ResourceManager, Scheduler
from licorne.model.configuration.reader import inspect
from licorne.proxy.fuzz.plans import Plan, drawn_plan
from licorne.proxy.fuzz.world.memory_network import MemoryNetwork
from licorne.proxy.fuzz.world.thread_control import RandomPicker, ThreadControl
from licorne.proxy.play.simulation.workloads.openb import read_openb
from licorne.proxy.play.simulation.workloads.scenario import read_scenario
from licorne.proxy.play.simulation.workloads.swf import read_swf
from licorne.proxy.play.transcripts.replay import replay, replay_recording
from licorne.proxy.play.transcripts.transcript import read_recording, rows_of_text
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.server.server import ServerThread

ROOT: Final = Path(__file__).parents[3]
CONFORMANCE: Final = ROOT / "tests" / "conformance"
_CONFIGURATION: Final = (
    'partitions: [{name: default, queues: [{name: root, submitacl: "*", queues: '
    "[{name: a, resources: {max: {vcore: 2}}}, {name: b}]}]}]"
)
_NODES: Final = b"sn,cpu_milli,memory_mib,gpu,model\nn0,32000,1024,2,G2\nn1,8000,512,0,\n"
_PODS: Final = (
    b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    b"scheduled_time\np0,12000,16,1,460,,LS,Running,100,160,110\n"
)
_SWF: Final = (
    b"; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 8\n; Queue: 1 batch\n"
    b"1 0 5 100 2 -1 1024 2 200 -1 1 3 1 -1 1 -1 -1 -1\n2 9 -1 50 4 -1 -1 4 60 2048 1 4 1 -1 2 -1 -1 -1\n"
)


@dataclass(frozen=True, slots=True)
class Door:
    """One door, and its valid input."""

    feed: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]

    def take(self, data: bytes) -> bool:
        """Bring input; return whether it was accepted."""
        try:
            self.feed(data)
        except LicorneError:
            return False
        return True


def edited(data: bytes, rng: random.Random) -> bytes:
    """Return data with a few parts changed, doubled, lost, or copied from elsewhere."""
    for _ in range(1 + int(rng.random() ** 2 * 6)):
        start = int(rng.random() * (len(data) + 1))
        end = min(len(data), start + int(rng.random() ** 3 * 40))
        kind = int(rng.random() * 5)
        if kind == 0:
            middle = b""
        elif kind == 1:
            middle = bytes(int(rng.random() * 256) for _ in range(1 + int(rng.random() * 4)))
        elif kind == 2:
            middle = _ODDITIES[int(rng.random() * len(_ODDITIES))]
        elif kind == 3:
            middle = data[start:end] * 2
        else:
            other = int(rng.random() * (len(data) + 1))
            middle = data[other : other + int(rng.random() * 40)]
        data = data[:start] + middle + data[end:]
    return data


_ODDITIES: Final = (
    *(b"-1", b"0", b"9223372036854775807", b"-9223372036854775808", b"1e999", b"NaN", b"null", b"true"),
    *(b"{}", b"[]", b'""', b"'", b'"', b"\n", b"\t", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"*", b"root."),
    *(b"&a *a", b"<<: ", b"!!python/object", b"%", b"\\u0000", b",", b";", b"0x10", b"1_000", b" " * 50),
)


# ---------------------------------------------------------------------------------------------- texts


def _configuration(data: bytes) -> None:
    text = _text(data)
    report = inspect(text)
    with Scheduler(engine="direct") as scheduler:
        request = si.RegisterResourceManagerRequest(rmID="rm", policyGroup="queues", config=text)
        try:
            scheduler.register_resource_manager(request, ResourceManager())
        except LicorneError:
            assert report.errors or not text.strip(), f"a valid configuration is refused: {text!r}"
            assert not scheduler.snapshot()["partitions"], "a refused configuration has changed something"
            raise
        scheduler.validate()


def _transcript(data: bytes) -> None:
    replay(_text(data), "input", "direct", lambda _: None)


def _recording(data: bytes) -> None:
    lines = read_recording(rows_of_text(_text(data), "input"), lambda _: None)
    replay_recording(lines, "direct", lambda _: None)


def _recordings() -> list[bytes]:
    """Return a recording of all actions of `_requests`."""
    with tempfile.TemporaryDirectory() as folder:
        with Scheduler(engine="direct", record=folder) as scheduler:
            registration = si.RegisterResourceManagerRequest(rmID="rm", config=_CONFIGURATION)
            scheduler.register_resource_manager(registration, ResourceManager())
            for request in _requests():
                _carry_out(scheduler, request)
            scheduler.run_until_idle()
        return [b"".join(path.read_bytes() for path in sorted(Path(folder).rglob("*.jsonl")))]


def _plan(data: bytes) -> None:
    Plan.read(_text(data), "input")


def _text(data: bytes) -> str:
    """Read a text as files are read.

    Raises:
        LicorneError: It is not a text.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise LicorneError(str(error)) from error


def _file(read: Callable[[Path], object], data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "input")
        path.write_bytes(data)
        read(path)


def _pods(path: Path) -> None:
    nodes = path.with_name("nodes")
    nodes.write_bytes(_NODES)
    read_openb(nodes, path)


def _nodes(path: Path) -> None:
    pods = path.with_name("pods")
    pods.write_bytes(_PODS)
    read_openb(path, pods)


# ------------------------------------------------------------------------------------------- messages


def _requests() -> list[bytes]:
    """Return valid requests, each after the letter of its kind."""
    resource: Any = {"resources": {"vcore": {"value": 1000}}}
    node = si.NodeInfo(nodeID="n", action=si.NodeInfo.CREATE, schedulableResource=resource)
    ask = si.Allocation(allocationKey="k", applicationID="a", resourcePerAlloc=resource)
    older = si.AllocationAsk(allocationKey="o", applicationID="a", resourceAsk=resource, maxAllocations=2)
    release: Any = {"allocationsToRelease": [{"applicationID": "a", "allocationKey": "k"}]}
    application = si.AddApplicationRequest(applicationID="a", queueName="root.a", ugi={"user": "u"})
    messages: list[tuple[bytes, Message]] = [
        (b"n", si.NodeRequest(rmID="rm", nodes=[node])),
        (b"a", si.ApplicationRequest(rmID="rm", new=[application])),
        (b"k", si.AllocationRequest(rmID="rm", allocations=[ask])),
        (b"k", si.AllocationRequest(rmID="rm", asks=[older], releases=release)),
    ]
    return [letter + message.SerializeToString() for letter, message in messages]


def _request(data: bytes) -> None:
    """Carry out a request; one that is refused completely must not change anything."""
    with Scheduler(engine="direct") as scheduler:
        registration = si.RegisterResourceManagerRequest(rmID="rm", config=_CONFIGURATION)
        scheduler.register_resource_manager(registration, ResourceManager())
        for request in _requests()[:2]:
            _carry_out(scheduler, request)
        scheduler.run_until_idle()
        before = scheduler.snapshot()
        try:
            _carry_out(scheduler, data)
        except LicorneError:
            assert before == scheduler.snapshot(), "a refused request has changed something"
            raise
        finally:
            scheduler.validate()
        scheduler.run_until_idle()
        scheduler.validate()


def _carry_out(scheduler: Scheduler, data: bytes) -> None:
    kinds: dict[bytes, tuple[type[Message], Callable[[Any], object]]] = {
        b"n": (si.NodeRequest, scheduler.update_node),
        b"a": (si.ApplicationRequest, scheduler.update_application),
        b"k": (si.AllocationRequest, scheduler.update_allocation),
    }
    kind, carry_out = kinds.get(data[:1], kinds[b"k"])
    message = kind()
    try:
        message.ParseFromString(data[1:])
    except Exception as error:
        raise LicorneError(f"no message: {error}") from error
    carry_out(message)


def _session_messages() -> list[bytes]:
    """Return the messages of a client in a session, after its greeting."""
    registration = si.RegisterResourceManagerRequest(rmID="rm", config=_CONFIGURATION)
    requests = [data[1:] for data in _requests()]
    messages = [
        v1.ManagerMessage(call=1, register=v1.Registration(request=registration)),
        v1.ManagerMessage(update_node=si.NodeRequest.FromString(requests[0])),
        v1.ManagerMessage(update_application=si.ApplicationRequest.FromString(requests[1])),
        v1.ManagerMessage(update_allocation=si.AllocationRequest.FromString(requests[2])),
        v1.ManagerMessage(call=2, question=v1.Question()),
        v1.ManagerMessage(call=3, goodbye=v1.Goodbye(rm_id="rm")),
    ]
    return [message.SerializeToString() for message in messages]


def _session(data: bytes) -> None:
    """Bring a message to a session of a server that has an RM; the server must still serve another client."""
    failures: list[BaseException] = []

    def main() -> None:
        network = MemoryNetwork(lambda: 0.0)
        with network.in_place(), ServerThread(Scheduler()) as server:
            for brought in (data, _session_messages()[3]):
                channel = grpc.insecure_channel(server.address)
                hello = v1.ManagerMessage(call=9, hello=v1.Hello()).SerializeToString()
                rows = [hello, *_session_messages()[:3], brought, _session_messages()[5]]
                answers = _said(channel, iter(rows))
                channel.close()
            assert answers, "a server that was sent nonsense serves nobody else"

    picker = RandomPicker(random.Random(1), 0.1)  # noqa: S311 - it plays, and keeps no secret
    control = ThreadControl(picker, points_max=300_000, on_error=failures.append)
    control.run(main)
    assert not failures, f"a thread of the server has ended: {failures[0]!r}"


def _said(channel: Any, rows: Iterator[bytes]) -> list[bytes]:
    """Return the messages of a server to a client that sends this."""
    method = "/licorne.v1.Session/Open"
    call = channel.stream_stream(method, request_serializer=bytes, response_deserializer=bytes)
    answers: list[bytes] = []
    with suppress(grpc.RpcError):  # The server has ended the session.
        answers.extend(call(rows))
    return answers


# ---------------------------------------------------------------------------------------------- doors


def _transcripts() -> list[bytes]:
    paths = sorted(path for path in CONFORMANCE.glob("*/*.jsonl") if "expected" not in path.name)
    return [path.read_bytes() for path in paths[::12] if path.stat().st_size < 6_000]


def _example(name: str) -> list[bytes]:
    return [(ROOT / "examples" / name).read_bytes()]


DOORS: Final = {
    "configuration": Door(_configuration, lambda: [_CONFIGURATION.encode(), *_example("queues.yaml")]),
    "transcript": Door(_transcript, _transcripts),
    "recording": Door(_recording, _recordings),
    "plan": Door(_plan, lambda: [drawn_plan(1, 6, "threads").text().encode()]),
    "scenario": Door(partial(_file, read_scenario), lambda: _example("daily.yaml")),
    "openb pods": Door(partial(_file, _pods), lambda: [_PODS]),
    "openb nodes": Door(partial(_file, _nodes), lambda: [_NODES]),
    "swf": Door(partial(_file, read_swf), lambda: [_SWF]),
    "request": Door(_request, _requests),
    "session": Door(_session, _session_messages),
}
"""All doors by name."""
