"""Percentages of queues in the document of a configuration, which can be read again."""

from __future__ import annotations

import json

from licorne.model.configuration.reader import load
from licorne.proxy.core.documents.configurations import configuration_document

_TEXT = """
partitions:
  - name: default
    queues:
      - name: root
        queues: [{name: a, resources: {guaranteed: 20%, max: 50%}}, {name: b, resources: {max: {vcore: 2}}}]
"""


def test_a_configuration_with_percentages_is_shown_as_it_was_written() -> None:
    """The document in the form of the file is a configuration that means the same."""
    config = load(_TEXT)

    document = configuration_document(config, {}, yaml=True)
    shown = {key: value for key, value in document.items() if key == "partitions"}

    assert '{"guaranteed": "20%", "max": "50%"}' in json.dumps(shown)
    assert config.partitions == load(json.dumps(shown)).partitions
