"""How long ids, keys and names of users may be, and of which characters."""

from __future__ import annotations

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request

from licorne import RequestError, Scheduler
from licorne.model.values.identifiers import ID_LENGTH_MAX, id_refusal

BAD = {
    "long": ("n" * (ID_LENGTH_MAX + 1), "has 1,025 characters, more than 1,024: 'nnn"),
    "newline": ("a\nb", r"has control characters: 'a\nb'"),
    "null": ("a\0b", r"has control characters: 'a\x00b'"),
}
GOOD = ("n" * ID_LENGTH_MAX, "with space", "é", "名前", "a/b:c", "\N{GRINNING FACE}", "a\N{NO-BREAK SPACE}b")


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
