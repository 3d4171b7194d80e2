"""Messages are divided by their bytes, too, and one that is too large is named."""

from __future__ import annotations

from support.proxy.manager_requests import application_request, ask_request, node_request, release_request

from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.messages import (
    BATCH_BYTES_MAX,
    MERGED_BYTES_MAX,
    batches,
    entry_beyond,
    largest_entry,
    merged,
    message_batches,
)


def test_a_batch_has_a_bound_in_entries_and_one_in_bytes() -> None:
    """An entry that is larger goes alone; nothing is lost, and the order stays."""
    sizes = [1, 1, 1, BATCH_BYTES_MAX - 1, 1, 1, BATCH_BYTES_MAX + 1, 1]

    found = [[*batch] for batch in batches(sizes, 3, lambda size: size)]

    assert [[1, 1, 1], [BATCH_BYTES_MAX - 1, 1], [1], [BATCH_BYTES_MAX + 1], [1]] == found
    assert [] == [*batches([], 3, lambda size: size)]


def test_messages_are_divided_by_their_own_sizes() -> None:
    """As they are on the wire."""
    nodes = [si.NodeInfo(nodeID=name * (BATCH_BYTES_MAX // 2 - 100)) for name in "abc"]

    assert [2, 1] == [len(batch) for batch in message_batches(nodes, 1_000)]


def test_neighbours_are_merged_up_to_a_bound_of_bytes() -> None:
    """256 messages of 100 KB would be more than any server takes."""
    messages = [ask_request("x" * (MERGED_BYTES_MAX // 4)) for _ in range(9)]

    found = [*merged(messages, lambda message: message, lambda _, __: True)]

    assert [3, 3, 3] == [len(each.allocations) for each in found]


def test_the_largest_entry_of_a_request_is_named() -> None:
    """By its kind and its name, of which the beginning is enough."""
    long = "k" * 5_000
    requests = (
        node_request("n1", long),
        application_request("app", long),
        si.ApplicationRequest(remove=[si.RemoveApplicationRequest(applicationID=long)]),
        ask_request("a", long),
        release_request(long),
    )

    named = [largest_entry(request).partition(" '")[0] for request in requests]

    expected = ["node", "application", "the removal of application", "allocation"]
    assert [*expected, "the release of allocation"] == named
    assert largest_entry(ask_request("a", long)).endswith("kkk has 5,024 bytes")
    assert "" == largest_entry(si.NodeRequest())
    assert entry_beyond(ask_request("a", long), 5_024) is None
    assert "allocation 'a' has 24 bytes" == entry_beyond(ask_request("a", long), 10)
