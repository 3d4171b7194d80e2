"""How long ids, keys and names of users may be, and of which characters."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request

from licorne import RequestError, Scheduler
from licorne.model.configuration.reader import inspect
from licorne.model.identifiers import ID_LENGTH_MAX, id_refusal, names_refusal
from licorne.proxy.si import si_pb2 as si

BAD = {
    "long": ("n" * (ID_LENGTH_MAX + 1), "has 1,025 characters, more than 1,024: 'nnn"),
    "newline": ("a\nb", r"has control characters: 'a\nb'"),
    "null": ("a\0b", r"has control characters: 'a\x00b'"),
    "c1": ("a\x9bb", r"has control characters: 'a\x9bb'"),
    "line separator": ("a\u2028b", r"has control characters: 'a\u2028b'"),
    "override": ("a\u202eb", r"has directional marks: 'a\u202eb'"),
    "isolate": ("a\u2066b", r"has directional marks: 'a\u2066b'"),
    "mark": ("a\u200fb", r"has directional marks: 'a\u200fb'"),
    "letter mark": ("a\u061cb", r"has directional marks: 'a\u061cb'"),
}
GOOD = (
    "n" * ID_LENGTH_MAX,
    "with space",
    "é",
    "名前",
    "a/b:c",
    "שלום",
    "\N{GRINNING FACE}",
    "a\N{NO-BREAK SPACE}b",
)


@pytest.mark.parametrize("text", GOOD)
def test_letters_of_any_script_and_signs_are_allowed(text: str) -> None:
    assert id_refusal("the id", text) is None


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
def test_what_has_a_bad_id_is_rejected_and_nothing_else(text: str, why: str) -> None:
    """Of one request the other entries are carried out."""
    listener = Listener()
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.update_node(node_request(text, "n1"))
        scheduler.update_application(application_request(text, "app"))
        of_user = application_request("of-user")
        of_user.new[0].ugi.user = text
        scheduler.update_application(of_user)
        of_group = application_request("of-group")
        of_group.new[0].ugi.groups.append(text)
        scheduler.update_application(of_group)
        request = ask_request(text, "ask")
        foreign = request.allocations.add(allocationKey=text, nodeID="n1")
        foreign.allocationTags["foreign"] = "default"
        scheduler.update_allocation(request)
        scheduler.run_until_idle()
        with pytest.raises(RequestError, match="the rmID has"):
            scheduler.register(text, listener)

    assert ["1"] == listener.all("accepted n")
    rejected = [heard for heard in listener.heard if heard.startswith("rejected")]
    assert 6 == sum(why in str(heard) for heard in rejected), rejected
    assert ["ask"] == listener.all("placed ")


def with_names(text: str) -> list[tuple[str, Message]]:
    """Return requests, each with a text as a name: of a type, a tag, an attribute, a group."""
    size = si.Resource(resources={"memory": si.Quantity(value=1), text: si.Quantity(value=1)})
    attribute, resource, occupied = (
        node_request("attribute"),
        node_request("resource"),
        node_request("occupied"),
    )
    attribute.nodes[0].attributes[text] = "x"
    resource.nodes[0].schedulableResource.CopyFrom(size)
    occupied.nodes[0].occupiedResource.CopyFrom(size)
    tag, group, queue, gang = (application_request(name) for name in ("tag", "group", "queue", "gang"))
    tag.new[0].tags[text] = "x"
    group.new[0].ugi.groups.append(text)
    queue.new[0].queueName = text
    gang.new[0].placeholderAsk.CopyFrom(size)
    ask, asks_tag, task_group, foreign = (
        ask_request(name) for name in ("ask", "asks-tag", "task-group", "foreign")
    )
    ask.allocations[0].resourcePerAlloc.CopyFrom(size)
    asks_tag.allocations[0].allocationTags[text] = "x"
    task_group.allocations[0].taskGroupName = text
    foreign.allocations[0].nodeID = "n1"
    foreign.allocations[0].resourcePerAlloc.CopyFrom(size)
    foreign.allocations[0].allocationTags["foreign"] = "default"
    nodes: list[tuple[str, Message]] = [("node", each) for each in (attribute, resource, occupied)]
    nodes += [("application", each) for each in (tag, group, queue, gang)]
    return [*nodes, *(("allocation", each) for each in (ask, asks_tag, task_group, foreign))]


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
def test_what_has_a_bad_name_in_it_is_rejected_and_nothing_else(text: str, why: str) -> None:
    """Names of resources, tags, attributes, groups and task groups are shown as ids are."""
    listener = Listener()
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        for kind, request in with_names(text):
            getattr(scheduler, f"update_{kind}")(request)
        scheduler.update_allocation(ask_request("good"))
        scheduler.run_until_idle()
        scheduler.validate()

    rejected = [heard for heard in listener.heard if heard.startswith("rejected")]
    assert 11 == len(rejected) == sum(why in each for each in rejected), rejected
    assert ["good"] == listener.all("placed ")


@pytest.mark.parametrize("text", GOOD)
def test_names_of_any_script_are_allowed(text: str) -> None:
    """Only what changes the screen is refused."""
    assert names_refusal("a type", ["vcore", text]) is None


@pytest.mark.parametrize("escape", ["\\e[31m", "\\x9b", "\\u202e", "\\u2069", "\\0", "\\L"])
def test_a_configuration_has_no_such_characters_either(escape: str) -> None:
    """Whatever it is the name of; YAML can write them as escapes alone."""
    for line in (f'max: {{"gpu{escape}": 1}}', f'max: {{vcore: "1{escape}"}}'):
        text = ONE.replace("{name: leaf}", f"{{name: leaf, resources: {{{line}}}}}")
        errors = [problem.text for problem in inspect(text).errors]
        assert any("control characters and directional marks are not allowed: " in each for each in errors), (
            errors
        )


def test_a_key_of_a_configuration_is_bounded() -> None:
    """As a name is."""
    text = ONE.replace("{name: leaf}", f"{{name: leaf, resources: {{max: {{? {'g' * 1_025} : 1}}}}}}")

    assert ["the key has 1,025 characters, more than 1,024"] == [each.text for each in inspect(text).errors]
