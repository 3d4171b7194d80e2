"""Random transcripts whose configurations name policies wherever those decide."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from licorne.proxy.fuzz.configurations import Configuration
from licorne.proxy.fuzz.tried_policies import TriedPolicies

_MODULE = "support.fuzz.tried_policies"


def policy_options(*names: str) -> list[str]:
    """Return policies of `support.fuzz.tried_policies` as `--policy` takes them."""
    return [f"{name.lower()}={_MODULE}:{name}" for name in names]


def with_policies(lines: Iterable[str], options: Sequence[str]) -> list[str]:
    """Return the lines of a transcript with policies named; what is no configuration stays so."""
    tried = TriedPolicies(options)
    rows = []
    for line in lines:
        row = json.loads(line)
        for verb in ("register", "configuration"):
            if verb in row and row[verb].get("config"):
                try:
                    named = tried.named_in(Configuration(row[verb]["config"], ()))
                except (ValueError, KeyError, TypeError):
                    continue
                row[verb]["config"] = named.text
        rows.append(json.dumps(row))
    return rows
