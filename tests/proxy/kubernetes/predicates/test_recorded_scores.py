"""The scores are those that the plugins of kube-scheduler v1.37.2 gave on random clusters."""

from __future__ import annotations

from support.kubernetes.verdicts import RECORDED_SCORES, asked_of, choice, recorded, scores

CASES = recorded(RECORDED_SCORES)


def test_each_plugin_scores_in_the_recorded_cases() -> None:
    """Four hundred clusters, in each of which two plugins prefer some nodes to others."""
    scoring = {plugin for _, of_plugins in CASES for plugin in of_plugins}

    assert (400, {"NodeAffinity", "PodTopologySpread", "InterPodAffinity"}) == (len(CASES), scoring)


def test_each_score_is_that_of_the_real_plugin() -> None:
    """A plugin that skips the pod scores nothing."""
    differing = []
    for number, (scene, expected) in enumerate(CASES):
        possible = [*next(iter(expected.values()))]
        found = scores(asked_of(scene), possible)
        skipped = {plugin: dict.fromkeys(possible, 0) for plugin in {*expected, *found}}
        if {**skipped, **expected} != {**skipped, **found}:
            differing.append(number)

    assert [] == differing


def test_the_nodes_with_the_highest_sum_are_those_of_kube_scheduler() -> None:
    """By the weights of the plugins."""
    expected = [choice(of_plugins, [*next(iter(of_plugins.values()))]) for _, of_plugins in CASES]
    actual = []
    for scene, of_plugins in CASES:
        possible = [*next(iter(of_plugins.values()))]
        actual.append(choice(scores(asked_of(scene), possible), possible))

    assert expected == actual
