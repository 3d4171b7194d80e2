"""The filters say what the plugins of kube-scheduler v1.37.2 said about random clusters."""

from __future__ import annotations

import re

from support.kubernetes.verdicts import asked_of, recorded, refusals

from licorne.proxy.kubernetes.predicates.verdicts import PodFilters

CASES = recorded()
_PLUGIN = re.compile(r"failed plugin: '(\w+)': .+")


def test_the_recorded_cases_refuse_by_each_plugin() -> None:
    """Four hundred clusters, in which each of the nine refuses a node and none refuses all."""
    refusing = {plugin for _, refused in CASES for plugins in refused.values() for plugin in plugins}
    free = sum(plugins == [] for _, refused in CASES for plugins in refused.values())

    assert (400, 9, True) == (len(CASES), len(refusing), free > 500)


def test_each_filter_refuses_what_the_real_plugin_refuses() -> None:
    """For each node, the plugins that refuse it are the same."""
    differing = [
        number for number, (scene, refused) in enumerate(CASES) if refused != refusals(asked_of(scene))
    ]

    assert [] == differing


def test_the_first_refusal_is_that_of_kube_scheduler() -> None:
    """The answer names the first plugin that refuses, and there is none if all accept."""
    expected, actual = [], []
    for scene, refused in CASES:
        asked = asked_of(scene)
        filters = PodFilters(asked.view)
        for name, plugins in refused.items():
            expected.append(plugins[0] if plugins else "")
            answer = filters.why_refused(asked.pod, name, allocate=False)
            actual.append(_PLUGIN.sub(r"\1", answer or ""))

    assert expected == actual
