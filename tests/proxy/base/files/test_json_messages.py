"""Messages of `si.v1` from JSON that was written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from licorne.model.values.documents import Json
from licorne.proxy.base.files.json_text import MessageError, read_message
from licorne.proxy.si import si_pb2 as si


def test_what_protobuf_writes_is_read() -> None:
    """By the names of the interface or those of JSON, and numbers in quotes or without."""
    request = si.NodeRequest(rmID="rm")
    node = request.nodes.add(nodeID="n1", action=si.NodeInfo.CREATE, attributes={"a": "b"})
    node.schedulableResource.resources["vcore"].value = 4
    body = MessageToDict(request)
    same: Any = MessageToDict(request)
    same["nodes"][0]["schedulableResource"]["resources"]["vcore"]["value"] = 4

    assert request == read_message(si.NodeRequest, body) == read_message(si.NodeRequest, same)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "expected an object, not []"),
        ({"nodez": []}, "nodez: unknown field; did you mean 'nodes'?"),
        ({"rmID": 1}, "rmID: expected a text, not 1"),
        ({"rmID": "\ud800"}, r"rmID: half a character stands in '\ud800'"),
        ({"nodes": {}}, "nodes: expected a list, not {}"),
        ({"nodes": [None]}, "nodes[0]: expected an object, not None"),
        ({"nodes": [{}, {"nodeID": []}]}, "nodes[1].nodeID: expected a text, not []"),
        ({"nodes": [{"attributes": []}]}, "nodes[0].attributes: expected an object, not []"),
        ({"nodes": [{"attributes": {"a": 1}}]}, "nodes[0].attributes[a]: expected a text, not 1"),
        (
            {"nodes": [{"attributes": {"\udc00": ""}}]},
            r"nodes[0].attributes: half a character stands in '\udc00'",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(body: Json, said: str) -> None:
    """In words, and the nearest name where one is near."""
    with pytest.raises(MessageError) as caught:
        read_message(si.NodeRequest, body)

    assert said == str(caught.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x", "expected a whole number, not 'x'"),
        (1.5, "expected a whole number, not 1.5"),
        (float("inf"), "expected a whole number, not inf"),
        (True, "expected a whole number, not True"),
        (2**31, "2147483648 is out of the range of 32 bits"),
        ("-99999999999", "'-99999999999' is out of the range of 32 bits"),
    ],
)
def test_a_number_that_does_not_fit_is_named(value: Json, said: str) -> None:
    """Also one that protobuf tells of in the words of Python."""
    with pytest.raises(MessageError) as caught:
        read_message(si.Allocation, {"priority": value})

    assert f"priority: {said}" == str(caught.value)


def test_a_word_that_is_none_of_several_is_named_with_all_of_them() -> None:
    """Such as an action of a node; a flag is true or false."""
    with pytest.raises(MessageError, match=r"action: 'CREAT' is not one of .*; did you mean 'CREATE'\?"):
        read_message(si.NodeInfo, {"action": "CREAT"})
    with pytest.raises(MessageError, match="placeholder: expected true or false, not 1"):
        read_message(si.Allocation, {"placeholder": 1})
