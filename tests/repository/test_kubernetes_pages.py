"""The pages about the scheduler of pods name what there is: settings, options, files, and tests of rules."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from licorne.proxy.kubernetes.admission.settings import _READERS as _ADMISSION_READERS
from licorne.proxy.kubernetes.admission.settings import AdmissionSettings, admission_settings
from licorne.proxy.kubernetes.mapping.settings import (
    _READERS,
    CONFIGS_NAME,
    KubernetesSettings,
    settings_from_config_maps,
)
from licorne.proxy.kubernetes.objects import ConfigMap, ObjectMeta

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
RULES: Final = (ROOT / "docs" / "kubernetes-rules.md").read_text(encoding="utf-8")
TESTS: Final = ROOT / "tests" / "proxy" / "kubernetes"
FIRST_RULES: Final = 2
LAST_RULES: Final = 18

SETTINGS: Final = dict(re.findall(r"^\| `([\w.]+)` \| (?:`([^`]*)`)? *\| [^|]+ \|$", PAGE, re.MULTILINE))
"""Each key of the tables of settings, with its default; the empty text if it has none."""


def rows_of_rules() -> list[tuple[int, int, str]]:
    """Return section, number and last cell of each rule on the page."""
    found = re.findall(r"^\| K(\d+)\.(\d+) \| [^|]+ \| ([^|]+) \|$", RULES, re.MULTILINE)
    return [(int(section), int(number), cell) for section, number, cell in found]


def test_every_setting_is_in_a_table() -> None:
    """And no other key is."""
    assert {*_READERS, *_ADMISSION_READERS} == set(SETTINGS)


@pytest.mark.parametrize("key", sorted(SETTINGS))
def test_the_default_in_the_table_is_the_one_that_holds(key: str) -> None:
    """To set it changes nothing."""
    configs = ConfigMap(metadata=ObjectMeta(name=CONFIGS_NAME), data={key: SETTINGS[key]})

    assert KubernetesSettings() == settings_from_config_maps(None, configs).settings
    assert AdmissionSettings() == admission_settings(None, configs)


def test_every_file_that_is_installed_is_in_the_table() -> None:
    """With what it is."""
    folder = ROOT / "deploy" / "kubernetes"
    table = PAGE.partition("\n| file in `deploy/kubernetes/` ")[2].partition("\n\n")[0]

    named = set(re.findall(r"^\| `([\w.-]+)/?` ", table, re.MULTILINE))
    assert {path.name for path in folder.iterdir() if path.suffix != ".dockerignore"} == named


def test_the_rules_of_each_section_are_complete() -> None:
    """A rule that is left out would not be missed otherwise."""
    by_section = {
        section: [number for _, number, _ in rows]
        for section, rows in groupby(rows_of_rules(), lambda row: row[0])
    }

    assert list(range(FIRST_RULES, LAST_RULES + 1)) == list(by_section)
    assert [] == [key for key, found in by_section.items() if found != list(range(1, len(found) + 1))]


def test_every_test_that_a_rule_names_exists() -> None:
    """Below the tests of the scheduler of pods, or anywhere in the checkout."""
    named = {name for _, _, cell in rows_of_rules() for name in re.findall(r"`([\w./]+\.(?:py|yaml))`", cell)}

    assert named
    assert [] == sorted(name for name in named if not ((TESTS / name).exists() or (ROOT / name).exists()))
