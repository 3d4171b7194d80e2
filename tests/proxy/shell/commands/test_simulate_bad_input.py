"""Whatever a file holds: it is read, or it is refused with its name, and nothing else happens."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.workloads.inputs import InputOptions, load_input
from licorne.proxy.play.simulation.workloads.openb import POD_COLUMNS

_VALID = {
    "pods.csv": f"{','.join(POD_COLUMNS)},qos,gpu_spec,creation_time\np0,12000,16,1,460,LS,,100\n",
    "log.swf": "; MaxNodes: 2\n; MaxProcs: 4\n"
    "7 10 3 60 4 59.5 -1 8 100 2048 1 12 5 -1 2 1 -1 -1 {1} q 2:ppn=2\n",
    "day.yaml": (
        "nodes: [{prefix: n, count: 2, resources: {vcore: 4}}]\napplications:\n"
        "  - {name: a, queue: root.q, user: u, tasks: [{resources: {vcore: 1}, duration: 1m..2m}]}\n"
    ),
    "t.jsonl": '{"register": {"rmID": "rm"}}\n{"advance": "5s"}\n{"schedule": "all"}\n',
}
_PIECES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["-1", "0", "9" * 30, "1e9", "{", "[", "*a", "&a ", "<<", ": ", "\n", ",", '"', "\x00", "null"]
    ),
)


@pytest.mark.parametrize("name", list(_VALID))
@settings(max_examples=60)
@given(edits=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 12), _PIECES), min_size=1, max_size=3))
def test_a_damaged_file_is_read_or_refused(name: str, edits: list[tuple[int, int, str]]) -> None:
    """Pieces of a valid file are replaced by others."""
    text = _VALID[name]
    for position, length, piece in edits:
        start = position % (len(text) + 1)
        text = text[:start] + piece + text[start + length :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8", errors="replace", newline="")
        nodes = Path(folder) / "nodes"
        nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,1024,2,G2\n")
        try:
            load_input(InputOptions(path=path, nodes_path=nodes if name == "pods.csv" else None))
        except LicorneError as error:
            assert str(path) in str(error)  # noqa: PT017 - to be read is as good as to be refused


@pytest.mark.parametrize("name", list(_VALID))
def test_the_undamaged_files_are_read(tmp_path: Path, name: str) -> None:
    """Otherwise the test above would prove nothing."""
    (tmp_path / name).write_text(_VALID[name])
    (tmp_path / "nodes").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,1024,2,G2\n")

    load_input(
        InputOptions(path=tmp_path / name, nodes_path=tmp_path / "nodes" if name == "pods.csv" else None)
    )
