"""What parent queues give to the dynamic leaves in them."""

from __future__ import annotations

import pytest
from support.model.builders import a_resource

from licorne.model.configuration.schema import ChildTemplateConfig
from licorne.model.queues.queue import QueueTemplate
from licorne.proxy.core.documents.queues import template_document


def test_a_template_has_what_the_configuration_says() -> None:
    """Texts become resources, virtual cores in thousandths."""
    config = ChildTemplateConfig(
        max_applications=3,
        properties={"application.sort.policy": "fair"},
        guaranteed={"memory": "1k", "vcore": "2"},
        max={"memory": "2k", "vcore": "500m"},
    )

    template = QueueTemplate.of(config)

    assert template is not None
    assert 3 == template.max_applications
    assert {"application.sort.policy": "fair"} == template.properties
    assert a_resource(memory=1000, vcore=2000) == template.guaranteed
    assert a_resource(memory=2000, vcore=500) == template.maximum


@pytest.mark.parametrize(
    "config",
    [
        None,
        ChildTemplateConfig(),
        ChildTemplateConfig(properties={"": "text", "name": ""}),
        ChildTemplateConfig(properties={"name": ""}, max={"": "1"}),
    ],
)
def test_a_template_that_says_nothing_is_none(config: ChildTemplateConfig | None) -> None:
    """Without a number of applications and without any full entry there is no template."""
    assert QueueTemplate.of(config) is None


@pytest.mark.parametrize(
    ("texts", "kept"), [({"memory": "0"}, False), ({"memory": "0", "vcore": "1"}, True), ({}, False)]
)
def test_quotas_without_any_quantity_are_no_quotas(texts: dict[str, str], *, kept: bool) -> None:
    """A quota is kept if it is strictly greater than zero; one type at zero beside another one stays."""
    template = QueueTemplate.of(ChildTemplateConfig(max_applications=1, guaranteed=texts, max=texts))

    assert template is not None
    assert (kept, kept) == (template.guaranteed is not None, template.maximum is not None)
    if kept:
        assert a_resource(memory=0, vcore=1000) == template.maximum


def test_properties_without_name_or_text_are_dropped() -> None:
    """The others are kept."""
    template = QueueTemplate.of(ChildTemplateConfig(properties={"": "a", "b": "", "c": "d"}))

    assert template is not None
    assert {"c": "d"} == template.properties


def test_the_document_shows_what_is_set() -> None:
    """Empty parts are left out."""
    full = QueueTemplate.of(
        ChildTemplateConfig(max_applications=2, properties={"a": "b"}, max={"memory": "5"})
    )
    lean = QueueTemplate.of(ChildTemplateConfig(guaranteed={"memory": "1"}))

    assert full is not None
    assert lean is not None
    assert {
        "maxApplications": 2,
        "properties": {"a": "b"},
        "maxResource": {"memory": 5},
    } == template_document(full)
    assert {"guaranteedResource": {"memory": 1}} == template_document(lean)
