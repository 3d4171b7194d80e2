"""Folders with the settings of a directory server, as secrets are mounted."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SETTINGS: Final = {
    "Host": "localhost",
    "Port": "389",
    "BaseDN": "dc=example,dc=com",
    "Filter": "(&(objectClass=person)(uid=%s))",
    "GroupAttr": "memberOf",
    "ReturnAttr": "memberOf",
    "BindUser": "cn=admin,dc=example,dc=com",
    "BindPassword": "open sesame",
}


def a_settings_folder(parent: Path, **settings: str | bytes | None) -> Path:
    """Make a folder with all required settings, some of them changed, added, or with `None` left out."""
    folder = parent / "ldap"
    folder.mkdir()
    for name, value in {**SETTINGS, **settings}.items():
        if value is not None:
            (folder / name).write_bytes(value if isinstance(value, bytes) else value.encode())
    return folder
