"""Pseudonyms: in the order of the names, the same for the same name, and of the same form."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.configuration.names import is_group_name, is_queue_name, is_user_name
from licorne.proxy.core.recording.pseudonyms import Pseudonyms

KEY: Final = b"key"
NAMES: Final = st.text(st.sampled_from("ab1.-_"), min_size=1, max_size=6)


@given(st.lists(NAMES, min_size=2, max_size=40, unique=True))
def test_labels_are_in_the_order_of_the_names(names: list[str]) -> None:
    """In whatever order they come."""
    pseudonyms = Pseudonyms(KEY)
    labels = {name: pseudonyms.node(name) for name in names}

    assert [labels[name] for name in sorted(names)] == sorted(labels.values())
    assert labels == {name: pseudonyms.node(name) for name in names}


@pytest.mark.parametrize("step", [1, -1])
def test_labels_stay_short_where_names_come_in_order(step: int) -> None:
    """Two pools of nodes grow in turns, upwards or downwards."""
    pseudonyms = Pseudonyms(KEY)
    names = [f"{pool}-{number:05}" for number in range(5_000) for pool in ("red", "blue")][::step]
    labels = [pseudonyms.node(name) for name in names]

    assert sorted(labels) == [label for _, label in sorted(zip(names, labels, strict=True))]
    assert max(map(len, labels)) < 24


@pytest.mark.parametrize(
    "text", ["ada", "Ada", "root.science", "a.b@corp.org", "x$", "ada,bob cooks,builders"]
)
def test_what_is_a_name_has_a_name(text: str) -> None:
    """The characters between the parts stay, so that a path is that of its queues."""
    pseudonyms = Pseudonyms(KEY)
    hidden = pseudonyms.name(text)
    kept = re.compile(r"[a-zA-Z0-9_]+")

    assert kept.sub("", text) == kept.sub("", hidden)
    assert not {"ada", "science", "corp", "cooks"} & set(kept.findall(hidden))


@pytest.mark.parametrize("check", [is_queue_name, is_user_name, is_group_name])
@pytest.mark.parametrize(
    "text", ["ada", "1st", "-x", "jürgen", "a b", "a!", "q" * 64, "q" * 65, "a:b", "a.b", "a$"]
)
def test_what_is_no_name_stays_none(check: type, text: str) -> None:
    """The scheduler refuses it as before."""
    assert check(text) == check(Pseudonyms(KEY).name(text))


def test_the_queue_that_is_made_for_a_user_has_the_name_of_one() -> None:
    """Lower case, with a word for each dot; two users that differ in case alone stay two."""
    pseudonyms = Pseudonyms(KEY)
    user = pseudonyms.name("Ada.L")

    assert pseudonyms.name("ada_dot_l") == user.replace(".", "_dot_").lower()
    assert pseudonyms.name("ada.l") != user


@pytest.mark.parametrize("text", ["root.default", "root.@recovery@", "nobody", "*", "", "nogroup"])
def test_names_that_mean_something_stay(text: str) -> None:
    """The scheduler has given them itself."""
    assert text == Pseudonyms(KEY).name(text)


def test_the_key_of_a_part_is_that_of_its_ask_with_the_part() -> None:
    """The scheduler of the replay makes the same key of that of the ask."""
    pseudonyms = Pseudonyms(KEY)
    ask, uuid = pseudonyms.key("ask"), pseudonyms.key("uuid")

    assert f"{ask}#allocation-2" == pseudonyms.key("ask#allocation-2")
    assert f"{ask}#allocation:{uuid}" == pseudonyms.key("ask#allocation:uuid")
    assert "name" not in pseudonyms.key("ask#allocation-name")
    assert not pseudonyms.key("")


def test_hashes_depend_on_the_key_and_the_kind() -> None:
    """The key is drawn; nothing stands for nothing."""
    one, other = Pseudonyms(), Pseudonyms()

    assert one.hashed("app", "x") == one.hashed("app", "x")
    assert one.hashed("app", "x") != other.hashed("app", "x")
    assert one.hashed("app", "x")[4:] != one.hashed("key", "x")[4:]
    assert not one.hashed("app", "")
    assert not one.node("")
