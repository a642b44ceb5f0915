"""Loads kubeconfig files, merged as kubectl merges them, into one Connection.

In: paths or the environment, and the name of a context. Out: a Connection. Never: opens a connection or runs a plugin.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.errors import UserError
from argosy.kube.client import User
from argosy.kube.client.connection_settings import Connection, ExecPlugin
from argosy.kube.client.kubeconfig_value_type_check import SECTIONS, check_types
from argosy.kube.objects import read_yaml

EXEC_EXTENSION = "client.authentication.k8s.io/exec"
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

KubeconfigEntry = Mapping[str, Any]


def load_kubeconfig(paths: Sequence[str | Path] | None = None, context: str | None = None) -> Connection:
    """Load `paths`, else $KUBECONFIG, else ~/.kube/config, and select `context`, else the current context."""
    merged = _load_merged(_find_files(paths))
    name = _choose_context(merged, context, paths)
    context_entry = merged["contexts"][name]
    cluster = _find_referenced_entry(merged["clusters"], context_entry.get("cluster"), "cluster", name)
    user = (
        _find_referenced_entry(merged["users"], context_entry["user"], "user", name)
        if context_entry.get("user")
        else {}
    )
    return _build_connection(name, cluster, user, context_entry.get("namespace") or "default")


def list_contexts(paths: Sequence[str | Path] | None = None) -> tuple[list[str], str]:
    """Return the names of all contexts, and of the current context (or an empty string)."""
    merged = _load_merged(_find_files(paths))
    return list(merged["contexts"]), merged["current-context"]


def check_context(context: str = "", paths: Sequence[str | Path] | None = None) -> None:
    """Raise UserError if this context does not exist; an empty name means the current context."""
    _choose_context(_load_merged(_find_files(paths)), context, paths)


def list_environment_paths() -> list[Path]:
    """List the files in $KUBECONFIG; none if the variable is empty."""
    return [Path(path) for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]


def _find_files(paths: Sequence[str | Path] | None) -> list[Path]:
    if paths is not None:
        return [Path(path) for path in paths]
    configured = list_environment_paths()
    # k8s: of several files in $KUBECONFIG, those that do not exist are skipped.
    existing = [path for path in configured or [Path.home() / ".kube" / "config"] if _exists_or_is_inaccessible(path)]
    if existing:
        return existing
    if not configured:
        advice = "set KUBECONFIG, or start a cluster with: argosy sandbox start"
        raise UserError(f"no kubeconfig at ~/.kube/config; {advice}", where="kubeconfig")
    searched = ", ".join(str(path) for path in configured)
    command = "argosy demo" if any(path.parent.name == "demo" for path in configured) else "argosy sandbox start"
    advice = f"correct or unset KUBECONFIG, or start a cluster with: {command}"
    raise UserError(f"no kubeconfig at {searched}, which KUBECONFIG names; {advice}", where="kubeconfig")


def _exists_or_is_inaccessible(path: Path) -> bool:
    """True for a file, a folder, and a file that this user may not access: reading it then reports the reason."""
    try:
        return path.exists()
    except OSError:
        return True


def _load_merged(paths: Sequence[Path]) -> dict[str, Any]:
    """k8s: the first file that names an entry wins the whole entry; the first current-context wins."""
    merged: dict[str, Any] = {"current-context": "", "contexts": {}, "clusters": {}, "users": {}}
    for path in paths:
        config = _load_file(path)
        merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
        for section, inner in SECTIONS:
            for item in config.get(section) or ():
                merged[section].setdefault(item["name"], _resolve_paths(item.get(inner) or {}, path.absolute().parent))
    return merged


def _load_file(path: Path) -> KubeconfigEntry:
    try:
        text = path.read_bytes()
    except IsADirectoryError as error:
        raise UserError("is a folder, not a kubeconfig; name a file in it", where=str(path)) from error
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    config = read_yaml(text, where=str(path)) if text.strip() else {}
    if not isinstance(config, dict):
        raise UserError("is not a kubeconfig: it must be a mapping", where=str(path))
    check_types(config, str(path))
    return config


def _resolve_paths(entry: KubeconfigEntry, folder: Path) -> KubeconfigEntry:
    """k8s: relative paths are relative to the kubeconfig that contains them."""
    copy = dict(entry)
    for field in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
        if copy.get(field):
            copy[field] = str(folder / copy[field])
    plugin = copy.get("exec")
    if plugin and os.sep in (plugin.get("command") or ""):
        copy["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return copy


def _choose_context(merged: Mapping[str, Any], context: str | None, paths: Sequence[str | Path] | None) -> str:
    name: str = context or merged["current-context"]
    if name in merged["contexts"]:
        return name
    problem = f'context "{name}" does not exist' if name else "no current-context is set"
    if not merged["contexts"]:
        files = ", ".join(map(str, _find_files(paths)))
        advice = "choose another file with --kubeconfig or KUBECONFIG, or log in to a cluster, such as with oc login"
        raise UserError(f"{problem}: there are no contexts in {files}; {advice}", where="kubeconfig")
    raise UserError(f"{problem}; choose one of: {_format_names(merged['contexts'])}", where="kubeconfig")


def _find_referenced_entry(
    entries: Mapping[str, KubeconfigEntry], name: Any, entry_type: str, context: str
) -> KubeconfigEntry:
    if name not in entries:
        raise UserError(f'context "{context}" names {entry_type} "{name}", which does not exist', where="kubeconfig")
    return entries[name]


def _format_names(entries: Mapping[str, KubeconfigEntry]) -> str:
    return ", ".join(sorted(entries))


def _build_connection(name: str, cluster: KubeconfigEntry, user: KubeconfigEntry, namespace: str) -> Connection:
    server = (cluster.get("server") or "").rstrip("/")
    where = f"kubeconfig context {name}"
    if not server.startswith(("https://", "http://")):
        raise UserError("the cluster has no valid server; it must begin with https:// or http://", where=where)
    ca_data, insecure = (
        _decode_base64(cluster, "certificate-authority-data", where),
        bool(cluster.get("insecure-skip-tls-verify")),
    )
    if insecure and (ca_data or cluster.get("certificate-authority")):
        raise UserError(
            "certificate-authority and insecure-skip-tls-verify exclude each other: remove one", where=where
        )
    # k8s: credentials in a kubeconfig are only ever sent over TLS.
    credentials = _read_credentials(cluster, user, where) if server.startswith("https://") else {}
    return Connection(
        server=server,
        name=name,
        namespace=namespace,
        ca_file=cluster.get("certificate-authority") or "",
        ca_data=ca_data,
        insecure=insecure,
        tls_server_name=cluster.get("tls-server-name") or "",
        proxy_url=cluster.get("proxy-url") or "",
        compressed=not cluster.get("disable-compression"),
        acting_as=_read_impersonated_user(user),
        **credentials,
    )


def _read_credentials(cluster: KubeconfigEntry, user: KubeconfigEntry, where: str) -> dict[str, Any]:
    if user.get("auth-provider"):
        raise UserError("auth-provider is no longer supported: use an exec plugin instead", where=where)
    return {
        "cert_file": user.get("client-certificate") or "",
        "cert_data": _decode_base64(user, "client-certificate-data", where),
        "key_file": user.get("client-key") or "",
        "key_data": _decode_base64(user, "client-key-data", where),
        "token": user.get("token") or "",
        "token_file": user.get("tokenFile") or "",
        "username": user.get("username") or "",
        "password": user.get("password") or "",
        "exec_plugin": _read_exec_plugin(user["exec"], cluster, where) if user.get("exec") else None,
    }


def _read_exec_plugin(plugin: KubeconfigEntry, cluster: KubeconfigEntry, where: str) -> ExecPlugin:
    version = plugin.get("apiVersion") or ""
    if version not in EXEC_VERSIONS:
        raise UserError(f'exec plugin: apiVersion "{version}" is not one of {", ".join(EXEC_VERSIONS)}', where=where)
    if not plugin.get("command"):
        raise UserError("exec plugin: command is not set", where=where)
    extensions = {item.get("name"): item.get("extension") for item in cluster.get("extensions") or ()}
    return ExecPlugin(
        command=plugin["command"],
        api_version=version,
        args=tuple(plugin.get("args") or ()),
        env={item["name"]: item.get("value") or "" for item in plugin.get("env") or ()},
        install_hint=plugin.get("installHint") or "",
        interactive_mode=plugin.get("interactiveMode") or "IfAvailable",
        provide_cluster_info=bool(plugin.get("provideClusterInfo")),
        cluster_config=extensions.get(EXEC_EXTENSION),
    )


def _read_impersonated_user(user: KubeconfigEntry) -> User | None:
    if not user.get("as"):
        return None
    extra = {name: tuple(values or ()) for name, values in (user.get("as-user-extra") or {}).items()}
    return User(user["as"], tuple(user.get("as-groups") or ()), user.get("as-uid") or "", extra or None)


def _decode_base64(entry: KubeconfigEntry, field: str, where: str) -> bytes:
    try:
        return base64.b64decode(entry.get(field) or "", validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise UserError(f"{field} is not base64", where=where) from error
