"""The limits that a namespace sets to the queue of its applications."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest
from support.kubernetes.decoded import namespace_of

from licorne.model.resources.resource import resource_from_json
from licorne.proxy.kubernetes.mapping.applications import namespace_tags

QUOTA: Final = "namespace.resourcequota"
GUARANTEED: Final = "namespace.resourceguaranteed"
COUNT: Final = "namespace.resourcemaxapps"


class Row(NamedTuple):
    annotations: dict[str, str]
    tags: dict[str, str]


CASES: Final = {
    "a quota is converted": Row(
        {"namespace_quota": '{"cpu": "64", "memory": "100G", "nvidia.com/gpu": "1"}'},
        {
            QUOTA: '{"resources":{"vcore":{"value":64000},"memory":{"value":100000000000},'
            '"nvidia.com/gpu":{"value":1}}}'
        },
    ),
    "a guarantee is converted": Row(
        {"namespace_guaranteed": '{"cpu": "500m"}'}, {GUARANTEED: '{"resources":{"vcore":{"value":500}}}'}
    ),
    "the older names limit cores and memory": Row(
        {"namespace_max_cpu": "2", "namespace_max_memory": "1Ki"},
        {QUOTA: '{"resources":{"vcore":{"value":2000},"memory":{"value":1024}}}'},
    ),
    "one older name is enough": Row(
        {"namespace_max_memory": "1Ki"}, {QUOTA: '{"resources":{"memory":{"value":1024}}}'}
    ),
    "the older names do not count beside a quota": Row(
        {"namespace_quota": '{"memory": "1"}', "namespace_max_cpu": "2"},
        {QUOTA: '{"resources":{"memory":{"value":1}}}'},
    ),
    "a quota of nothing but zeros is none": Row({"namespace_quota": '{"cpu": "0", "memory": "0"}'}, {}),
    "an empty quota is none": Row({"namespace_quota": "{}"}, {}),
    "a zero beside another amount counts": Row(
        {"namespace_quota": '{"cpu": "0", "memory": "1"}'},
        {QUOTA: '{"resources":{"vcore":{"value":0},"memory":{"value":1}}}'},
    ),
    "a number of applications is a whole number": Row({"namespace_maxApps": "10"}, {COUNT: "10"}),
    "a parent queue is passed on": Row(
        {"parentqueue": "root.teams"}, {"namespace.parentqueue": "root.teams"}
    ),
    "a namespace without annotations sets no limits": Row({}, {}),
}
BAD: Final = {
    "a quota that is no JSON": ("namespace_quota", "lots", "JSON"),
    "a quota of numbers instead of texts": ("namespace_quota", '{"cpu": 64}', "Expected `str`"),
    "a quota that is not a quantity": ("namespace_quota", '{"memory": "100GB"}', "'100GB' is not a quantity"),
    "a negative quota": ("namespace_quota", '{"memory": "-1"}', "memory is negative"),
    "a quota with two names for cores": ("namespace_quota", '{"cpu": "1", "vcore": "1"}', "one resource"),
    "a guarantee that is not a quantity": (
        "namespace_guaranteed",
        '{"cpu": "many"}',
        "'many' is not a quantity",
    ),
    "an older name that is not a quantity": ("namespace_max_cpu", "many", "'many' is not a quantity"),
    "a number of applications that is none": ("namespace_maxApps", "many", "'many' is not a whole number"),
    "a negative number of applications": ("namespace_maxApps", "-1", "'-1' is not a whole number"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_namespace_limits_its_applications(case: Row) -> None:
    """By tags that the scheduler understands."""
    assert (case.tags, ()) == namespace_tags(namespace_of(**case.annotations))


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_what_cannot_be_read_gives_a_warning_and_no_tag(case: tuple[str, str, str]) -> None:
    """The warning names the annotation and what is wrong."""
    annotation, text, what = case

    tags, (warning,) = namespace_tags(namespace_of(**{annotation: text}))

    assert ({}, True, True) == (tags, annotation.replace("_", ".") in warning, what in warning)


def test_the_scheduler_reads_the_tag_as_it_was_meant() -> None:
    """Its own reader gives the amounts back."""
    tags = namespace_tags(namespace_of(namespace_quota='{"cpu": "1500m", "memory": "2Gi"}')).tags

    assert {"vcore": 1500, "memory": 2 << 30} == dict(resource_from_json(tags[QUOTA]).items())
