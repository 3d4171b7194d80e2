"""The interface that users rely on is noted: a change of it changes a file, and is seen in a review."""

from __future__ import annotations

import pytest
from support.public_api import FOLDER, texts

from licorne.proxy.base.process import is_compiled


@pytest.mark.skipif(is_compiled(), reason="machine code does not say what its parameters are")
@pytest.mark.parametrize("name", sorted(texts()))
def test_the_interface_is_the_one_that_is_noted(name: str) -> None:
    """`make api` notes a change that is meant; what users lose belongs into CHANGELOG.md."""
    noted = (FOLDER / name).read_text(encoding="utf-8")

    assert noted.splitlines() == texts()[name].splitlines()
