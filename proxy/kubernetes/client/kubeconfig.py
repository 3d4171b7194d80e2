"""Files of kubectl: the cluster, the user, and their mutual authentication."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar, final

import msgspec

from licorne.proxy.kubernetes.decoding import resolve_structs

from ...base.files.input_files import InputError, LocatedYaml, read_located_yaml, read_text
from .credentials import (
    SERVICE_ACCOUNT_FOLDER,
    Credentials,
    ExecIdentity,
    ExecPlugin,
    FixedIdentity,
    Identity,
    Secret,
    TokenFileIdentity,
    in_cluster_credentials,
)
from .errors import CredentialError

_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_AT_PLACE: Final = re.compile(r"(?P<what>.*) - at `\$\.?(?P<way>.*)`", re.DOTALL)


class _KubeconfigPart(msgspec.Struct, frozen=True, rename="kebab", kw_only=True):
    """The common base of the parts of a kubeconfig."""


class _Extension(_KubeconfigPart, frozen=True):
    name: str
    extension: object = None


class _ClusterAccess(_KubeconfigPart, frozen=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[_Extension] | None = None


class _Variable(_KubeconfigPart, frozen=True):
    name: str
    value: str


class _PluginAccess(_KubeconfigPart, frozen=True, rename="camel"):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _UserAccess(_KubeconfigPart, frozen=True):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: _PluginAccess | None = None
    # Other fields are refused: ignoring them would give a program another identity than the file's.
    username: str = ""
    impersonates: str = msgspec.field(default="", name="as")
    auth_provider: object = None


class _Context(_KubeconfigPart, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_KubeconfigPart, frozen=True):
    name: str
    cluster: _ClusterAccess


class _NamedUser(_KubeconfigPart, frozen=True):
    name: str
    user: _UserAccess | None = None


class _NamedContext(_KubeconfigPart, frozen=True):
    name: str
    context: _Context


class _Kubeconfig(_KubeconfigPart, frozen=True):
    """One file."""

    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


_Part = TypeVar("_Part")


@final
@dataclass(frozen=True, slots=True)
class _Found(Generic[_Part]):
    """A part of a kubeconfig, and its place."""

    file: LocatedYaml
    place: str
    part: _Part

    def error(self, key: str, text: str) -> InputError:
        """Return the error about one of its values, with the line of the value."""
        return _error(self.file, f"{self.place}.{key}", text)

    def content(self, key: str, path: str, data: str) -> str | None:
        """Return the PEM in a file, or as base64 in the kubeconfig, which has precedence.

        Raises:
            InputError: It cannot be read.
        """
        if data:
            try:
                return base64.b64decode(data, validate=True).decode("utf-8")
            except (binascii.Error, UnicodeDecodeError) as error:
                raise self.error(f"{key}-data", f"not the base64 of a PEM text: {error}") from error
        if not path:
            return None
        try:
            return read_text(self.path(path))
        except InputError as error:
            raise self.error(key, f"{path!r} {error.message}") from error

    def path(self, path: str) -> Path:
        """Return a path, which is relative to the folder of the file."""
        return self.file.path.parent / path


def find_credentials(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    service_account_folder: Path = SERVICE_ACCOUNT_FOLDER,
) -> Credentials:
    """Return the credentials of the program in its environment.

    A given file or context is used. Otherwise the credentials come from the pod of the program, the files in
    `KUBECONFIG`, or `~/.kube/config`, in this order.

    Args:
        kubeconfig: A file of kubectl.
        context: A context in that file, or in those that kubectl reads.
        environment: Variables of the environment.
        service_account_folder: The folder in which a pod finds its service account.

    Raises:
        InputError: A file cannot be used; the error has the file, the line, the key and what is wrong.
        ConfigurationError: A file is not YAML, or has a key twice.
        CredentialError: No credentials are found, or the context does not exist.
    """
    if kubeconfig is not None:
        return kubeconfig_credentials([kubeconfig], context, environment)
    if context is None:
        of_the_pod = in_cluster_credentials(environment, service_account_folder)
        if of_the_pod is not None:
            return of_the_pod
    files = kubeconfig_files(environment)
    if not files:
        places = f"KUBECONFIG is {environment.get('KUBECONFIG', '')!r}, ~/.kube/config is missing"
        raise CredentialError(f"no credentials for an API server: this is not a pod, {places}")
    return kubeconfig_credentials(files, context, environment)


def kubeconfig_files(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the existing files that kubectl reads: those in `KUBECONFIG`, or else `~/.kube/config`."""
    names = [name for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    home = environment.get("HOME") or str(Path.home())
    paths = [Path(name) for name in names] or [Path(home, ".kube", "config")]
    return [path for path in paths if path.exists()]


def kubeconfig_credentials(
    files: Sequence[Path], context: str | None = None, environment: Mapping[str, str] = os.environ
) -> Credentials:
    """Return the credentials of a context in files of kubectl.

    Args:
        files: The files. Of two entries with the same name the first counts.
        context: The name of the context; `None` for the current context of the first file with one.
        environment: The variables for a plugin.

    Raises:
        InputError: A file cannot be used; the error has the file, the line, the key and what is wrong.
        ConfigurationError: A file is not YAML, or has a key twice.
        CredentialError: The context does not exist.
    """
    read = [(file, _kubeconfig(file)) for file in map(read_located_yaml, files)]
    chosen = _context(read, context)
    clusters = (
        _Found(file, f"clusters[{index}].cluster", (entry.name, entry.cluster))
        for file, config in read
        for index, entry in enumerate(config.clusters or ())
    )
    users = (
        _Found(file, f"users[{index}].user", (entry.name, entry.user or _UserAccess()))
        for file, config in read
        for index, entry in enumerate(config.users or ())
    )
    cluster = _named(clusters, chosen, "cluster", chosen.part.cluster)
    if not chosen.part.user:
        return _credentials(chosen.part.namespace, cluster, FixedIdentity(Secret()))
    user = _named(users, chosen, "user", chosen.part.user)
    return _credentials(chosen.part.namespace, cluster, _identity(user, cluster, environment))


def _credentials(namespace: str, cluster: _Found[_ClusterAccess], identity: Identity) -> Credentials:
    """Return the credentials of a cluster and an identity."""
    access = cluster.part
    if not access.server.startswith(("https://", "http://")):
        text = f"{access.server!r} is not an address that begins with https:// or http://"
        raise cluster.error("server", text)
    if access.proxy_url:
        raise cluster.error("proxy-url", f"{access.proxy_url!r}: proxies are not supported")
    authorities = cluster.content(
        "certificate-authority", access.certificate_authority, access.certificate_authority_data
    )
    return Credentials(
        access.server.rstrip("/"),
        identity,
        namespace or "default",
        authorities,
        not access.insecure_skip_tls_verify,
        access.tls_server_name or None,
    )


def _identity(
    user: _Found[_UserAccess], cluster: _Found[_ClusterAccess], environment: Mapping[str, str]
) -> Identity:
    """Return the identity of a user."""
    access = user.part
    _refuse_unsupported(user)
    if access.exec is not None:
        return ExecIdentity(_plugin(user, access.exec, cluster, environment))
    certificate = user.content(
        "client-certificate", access.client_certificate, access.client_certificate_data
    )
    key = user.content("client-key", access.client_key, access.client_key_data)
    if (certificate is None) != (key is None):
        missing = "client-certificate" if certificate is None else "client-key"
        raise user.error(missing, "is missing: a certificate and its key belong together")
    fixed = Secret(access.token or None, certificate, key)
    if access.token_file and not access.token:
        return TokenFileIdentity(user.path(access.token_file), fixed)
    return FixedIdentity(fixed)


def _refuse_unsupported(user: _Found[_UserAccess]) -> None:
    """Refuse a user with unsupported means of authentication."""
    access = user.part
    unsupported = {
        "username": bool(access.username),
        "as": bool(access.impersonates),
        "auth-provider": access.auth_provider is not None,
    }
    for key, is_there in unsupported.items():
        if is_there:
            known = "token, tokenFile, client-certificate with client-key, and exec"
            raise user.error(key, f"not supported; a user has {known}")


def _plugin(
    user: _Found[_UserAccess],
    access: _PluginAccess,
    cluster: _Found[_ClusterAccess],
    environment: Mapping[str, str],
) -> ExecPlugin:
    """Return the plugin of a user."""
    if access.api_version not in _EXEC_VERSIONS:
        known = " and ".join(_EXEC_VERSIONS)
        raise user.error("exec.apiVersion", f"{access.api_version!r} is not known; known are {known}")
    if access.interactive_mode == "Always":
        text = "'Always': a plugin that asks on the terminal is not supported"
        raise user.error("exec.interactiveMode", text)
    command = str(user.path(access.command)) if os.sep in access.command else access.command
    return ExecPlugin(
        (command, *(access.args or ())),
        {**environment, **{variable.name: variable.value for variable in access.env or ()}},
        access.api_version,
        _cluster_info(cluster) if access.provide_cluster_info else None,
        access.install_hint,
    )


def _cluster_info(cluster: _Found[_ClusterAccess]) -> dict[str, object]:
    """Return the document of the cluster for a plugin."""
    access = cluster.part
    info: dict[str, object] = {
        "server": access.server,
        "insecure-skip-tls-verify": access.insecure_skip_tls_verify,
    }
    authorities = cluster.content(
        "certificate-authority", access.certificate_authority, access.certificate_authority_data
    )
    if authorities is not None:
        info["certificate-authority-data"] = base64.b64encode(authorities.encode()).decode()
    if access.tls_server_name:
        info["tls-server-name"] = access.tls_server_name
    for extension in access.extensions or ():
        if extension.name == _EXEC_EXTENSION:
            info["config"] = extension.extension
    return info


def _kubeconfig(file: LocatedYaml) -> _Kubeconfig:
    """Return a file as a value.

    Raises:
        InputError: A value is not of its type.
    """
    try:
        return msgspec.convert(file.value if file.value is not None else {}, _Kubeconfig)
    except msgspec.ValidationError as error:
        match = _AT_PLACE.fullmatch(str(error))
        if match is None:
            raise InputError(file.path, f"not a kubeconfig: {error}") from error
        raise _error(file, match["way"], match["what"]) from error


def _context(read: Iterable[tuple[LocatedYaml, _Kubeconfig]], name: str | None) -> _Found[_Context]:
    """Return the context with a name, or the current one.

    Raises:
        CredentialError: It does not exist, or no file has a current context.
    """
    files = list(read)
    paths = ", ".join(str(file.path) for file, _ in files)
    current = name or next((config.current_context for _, config in files if config.current_context), None)
    if current is None:
        raise CredentialError(
            f"{paths or 'no kubeconfig'}: current-context is missing, and no context is given"
        )
    names = []
    for file, config in files:
        for index, entry in enumerate(config.contexts or ()):
            if entry.name == current:
                return _Found(file, f"contexts[{index}].context", entry.context)
            names.append(entry.name)
    raise CredentialError(f"{paths}: there is no context {current!r}; there are {', '.join(names) or 'none'}")


def _named(
    entries: Iterable[_Found[tuple[str, _Part]]], context: _Found[_Context], key: str, name: str
) -> _Found[_Part]:
    """Return the part that a context names.

    Raises:
        InputError: No part has this name.
    """
    names = []
    for found in entries:
        if found.part[0] == name:
            return _Found(found.file, found.place, found.part[1])
        names.append(found.part[0])
    raise context.error(key, f"there is no {key} {name!r}; there are {', '.join(names) or 'none'}")


def _error(file: LocatedYaml, path: str, text: str) -> InputError:
    """Return the error about a value, with its line, or the line of the enclosing part."""
    position = file.finding_at(path, text).position
    return InputError(file.path, f"{path}: {text}", line=position.line, column=position.column)


resolve_structs(__name__)
