"""Destination clusters: Argo CD's cluster Secrets, and the in-cluster destination.

In: an ApplicationService, request bodies. Out: cluster documents without secrets. Never: returns credentials; keeps
credentials when the address changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.annotations import REFRESH
from argosy.errors import Conflict, Forbidden, UserError
from argosy.features.repositories.connection_test import ConnectionState
from argosy.gitops.application import IN_CLUSTER
from argosy.gitops.application.canonical_cluster_address import ClusterAddress, parse_cluster_address
from argosy.gitops.application_client.application_service import ApplicationService, current_timestamp
from argosy.gitops.application_client.argocd_secrets_and_config_maps import (
    DeclaredSecret,
    build_secret_name,
    create_declared_secret,
    delete_declared_secret,
    list_declared_secrets,
    replace_declared_secret,
)
from argosy.gitops.clusters.cluster_secret import check_server_address
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import SECRET

IN_CLUSTER_SERVER, IN_CLUSTER_NAME = IN_CLUSTER
SECRET_TYPE_CLUSTER: Final = "cluster"
ERROR_LOCATION: Final = "cluster"
# The cluster that argosy runs in needs no Secret.
IN_CLUSTER_DECLARATION: Final = DeclaredSecret("", {"server": IN_CLUSTER_SERVER, "name": IN_CLUSTER_NAME})
# argo: the config fields that clients may see; all others may contain credentials
_VISIBLE_TLS_FIELDS: Final = ("insecure", "serverName")
_VISIBLE_AWS_FIELDS: Final = ("clusterName", "roleARN")
_VISIBLE_EXEC_FIELDS: Final = ("command", "apiVersion")


async def list_clusters(app_service: ApplicationService, *, with_faulty: bool = False) -> list[DeclaredSecret]:
    """List clusters. `with_faulty`: append clusters without a valid address, which cannot be used."""
    declarations = await list_declared_secrets(app_service, SECRET_TYPE_CLUSTER)
    valid = [declared for declared in declarations if read_server(declared)]
    faulty = [declared for declared in declarations if with_faulty and not read_server(declared)]
    has_in_cluster = any(read_server(declared) == IN_CLUSTER_SERVER for declared in valid)
    return [*([] if has_in_cluster else [IN_CLUSTER_DECLARATION]), *valid, *faulty]


def read_server(declared: DeclaredSecret) -> ClusterAddress:
    return parse_cluster_address(declared.get_stripped("server"))


async def find_cluster(
    app_service: ApplicationService, name_or_server: str, *, is_name: bool = False
) -> DeclaredSecret | None:
    for cluster in await list_clusters(app_service):
        if (
            (cluster.get_stripped("name") == name_or_server)
            if is_name
            else (read_server(cluster) == parse_cluster_address(name_or_server))
        ):
            return cluster
    return None


async def get_cluster(app_service: ApplicationService, name_or_server: str) -> DeclaredSecret:
    """Get the cluster with this address or this unique name. Raises UserError."""
    clusters = await list_clusters(app_service)
    by_address = [cluster for cluster in clusters if read_server(cluster) == parse_cluster_address(name_or_server)]
    matches = by_address or [cluster for cluster in clusters if cluster.get_stripped("name") == name_or_server]
    if not matches:
        raise UserError(f"cluster {name_or_server!r} not found; list them: argosy cluster list")
    if len(servers := {read_server(cluster) for cluster in matches}) > 1:
        raise UserError(
            f"{len(servers)} clusters are named {name_or_server!r}; use the address: {_join_servers(servers)}"
        )
    return matches[0]


async def check_name(app_service: ApplicationService, name: str, server: str) -> None:
    """Raise UserError if a cluster at another address has this name: destinations by name would be ambiguous."""
    clusters = await list_clusters(app_service)
    if other_servers := {read_server(cluster) for cluster in clusters if cluster.get_stripped("name") == name} - {
        server
    }:
        raise UserError(
            f"another cluster is named {name!r} ({_join_servers(other_servers)}); choose another name with --name"
        )


def _join_servers(servers: Iterable[str]) -> str:
    return ", ".join(sorted(servers))


async def list_applications(app_service: ApplicationService, declared: DeclaredSecret) -> list[str]:
    """Applications with this destination; with their namespace if it is not the default one."""
    server, name = read_server(declared), declared.get_stripped("name")
    try:
        apps = await app_service.list_applications(all_namespaces=True)
    except Forbidden:  # the user may list only one namespace
        apps = await app_service.list_applications()
    except UserError:  # the Application CRD is not installed
        return []
    destinations = [(app, app.destination.with_in_cluster_alias) for app in apps]
    return [
        app.name if app.namespace == app_service.namespace else f"{app.namespace}/{app.name}"
        for app, destination in destinations
        if (destination.server == server if destination.server else destination.name == name)
    ]


def rbac_name(declared: DeclaredSecret) -> str:
    """argo: object name in RBAC policies."""
    project = declared.get_stripped("project")
    return f"{project}/{read_server(declared)}" if project else read_server(declared)


def cluster_to_wire(
    declared: DeclaredSecret,
    state: ConnectionState,
    version: str,
    api_versions: Sequence[str],
    applications: int,
    secret_annotations: Collection[str] = (),
    cache_info: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """argo: a V1alpha1Cluster with an allow-list of config fields. `secret_annotations`: annotations to leave out."""
    wire: dict[str, Any] = {
        "server": read_server(declared),
        "name": declared.get_stripped("name") or read_server(declared),
        "config": _visible_config(declared),
        "connectionState": state.to_wire(),
        "serverVersion": version,
        "info": {
            "applicationsCount": applications,
            "cacheInfo": dict(cache_info),
            "connectionState": state.to_wire(),
            "serverVersion": version,
            **({"apiVersions": list(api_versions)} if api_versions else {}),
        },
    }
    if names := read_namespaces(declared):
        wire["namespaces"] = names
        wire["clusterResources"] = declared.get_stripped("clusterResources").lower() == "true"
    if project := declared.get_stripped("project"):
        wire["project"] = project
    if (shard := declared.get_stripped("shard")).isdecimal():
        wire["shard"] = int(shard)
    if refresh_requested_at := declared.annotations.get(REFRESH):
        wire["refreshRequestedAt"] = refresh_requested_at
    visible_annotations = {name: text for name, text in declared.annotations.items() if name not in secret_annotations}
    for name, values in (("labels", declared.labels), ("annotations", visible_annotations)):
        if values:
            wire[name] = dict(values)
    return wire


def read_namespaces(declared: DeclaredSecret) -> list[str]:
    return [namespace.strip() for namespace in declared.get_stripped("namespaces").split(",") if namespace.strip()]


def read_config(declared: DeclaredSecret) -> dict[str, Any]:
    try:
        config = json.loads(declared.get_stripped("config") or "{}")
    except ValueError:
        return {}
    return config if isinstance(config, dict) else {}


def _visible_config(declared: DeclaredSecret) -> dict[str, Any]:
    config = read_config(declared)
    visible: dict[str, Any] = {
        "tlsClientConfig": {"insecure": False, **_pick_fields(config.get("tlsClientConfig"), _VISIBLE_TLS_FIELDS)}
    }
    if user := config.get("username"):
        visible["username"] = str(user)
    if aws := _pick_fields(config.get("awsAuthConfig"), _VISIBLE_AWS_FIELDS):
        visible["awsAuthConfig"] = aws
    if program := _pick_fields(config.get("execProviderConfig"), _VISIBLE_EXEC_FIELDS):
        visible["execProviderConfig"] = program
    return visible


def _pick_fields(config: Any, names: tuple[str, ...]) -> dict[str, Any]:
    values = config if isinstance(config, dict) else {}
    return {name: values[name] for name in names if isinstance(values.get(name), str | bool)}


def read_values(body: Mapping[str, Any], *, server: str = "") -> dict[str, str]:
    """Read Secret values from a request body. `server` is the address of an existing cluster."""
    fields = FieldReader(body, ERROR_LOCATION)
    check_server_address(fields.read_text("server") or server, ERROR_LOCATION)
    address = parse_cluster_address(fields.read_text("server") or server)
    values = {
        "server": str(address),
        "name": fields.read_text("name") or address,
        "project": fields.read_text("project"),
    }
    if names := fields.read_text_list("namespaces"):
        values["namespaces"] = ",".join(names)
        values["clusterResources"] = str(fields.read_bool("clusterResources")).lower()
    if body.get("shard") is not None:
        values["shard"] = str(fields.read_int("shard"))
    if (config := fields.find_map("config")) is not None:
        values["config"] = json.dumps(dict(config.values), separators=(",", ":"), sort_keys=True)
    return values


async def add_cluster(
    app_service: ApplicationService, body: Mapping[str, Any], *, is_upsert: bool, dry_run: bool = False
) -> DeclaredSecret:
    values = read_values(body)
    existing = await find_cluster(app_service, values["server"])
    if existing is not None and existing is not IN_CLUSTER_DECLARATION:
        keys = list_differing_keys(existing, {key: text for key, text in values.items() if text}, body)
        if not keys:
            return existing
        if not is_upsert:
            raise build_difference_error(keys)
        return await update_cluster(app_service, existing, body, dry_run=dry_run)
    return await _create_secret(app_service, values, body, dry_run=dry_run)


async def _create_secret(
    app_service: ApplicationService, values: Mapping[str, str], body: Mapping[str, Any], *, dry_run: bool
) -> DeclaredSecret:
    host = (urlsplit(values["server"]).hostname or "").lower()
    name = build_secret_name(f"cluster-{host.replace(':', '-')}", values["server"])
    try:
        return await create_declared_secret(
            app_service, SECRET_TYPE_CLUSTER, name, values, dry_run=dry_run, **_read_labels_and_annotations(body)
        )
    except Conflict:
        raise UserError(
            f"Secret {name} exists and is not a cluster Secret of this address; delete or relabel it first"
        ) from None


def list_differing_keys(existing: DeclaredSecret, values: Mapping[str, str], body: Mapping[str, Any]) -> list[str]:
    """Keys, labels and annotations of the Secret that differ from these values."""
    metadata_keys = [
        name for name, expected in _read_labels_and_annotations(body).items() if getattr(existing, name) != expected
    ]
    return [key for key, text in values.items() if existing.get_stripped(key) != text] + metadata_keys


def build_difference_error(keys: Iterable[str]) -> UserError:
    """argo: its message."""
    message = "existing cluster spec is different; use upsert flag to force update"
    return UserError(f'{message}; difference in keys "{",".join(keys)}"')


async def update_cluster(
    app_service: ApplicationService,
    existing: DeclaredSecret,
    body: Mapping[str, Any],
    only_fields: tuple[str, ...] = (),
    *,
    dry_run: bool = False,
) -> DeclaredSecret:
    """argo: update `only` these fields (updatedFields), else all; credentials are kept unless new ones are sent."""
    changes = {name: value for name, value in body.items() if not only_fields or name in only_fields}
    values = read_values(changes, server=read_server(existing))
    if values["server"] != read_server(existing):
        raise UserError("server cannot be changed; delete this cluster and add the new one", where=ERROR_LOCATION)
    config = _merge_credentials(existing, values.get("config"))
    if only_fields:
        values = {**existing.values, **{key: text for key, text in values.items() if key in (*only_fields, "server")}}
    values["config"] = config
    if existing is IN_CLUSTER_DECLARATION:  # argo: a change gives it a Secret
        values["name"] = values["name"] if changes.get("name") else IN_CLUSTER_NAME
        return await _create_secret(app_service, values, changes, dry_run=dry_run)
    return await replace_declared_secret(
        app_service, existing, values, dry_run=dry_run, **_read_labels_and_annotations(changes)
    )


def _merge_credentials(existing: DeclaredSecret, new_config: str | None) -> str:
    """The config to store: keeps the old credentials unless new ones are given or TLS verification gets weaker."""
    old = read_config(existing)
    if new_config is None:
        return existing.get_stripped("config")
    new: dict[str, Any] = json.loads(new_config)
    credential_keys = {"bearerToken", "password", "awsAuthConfig", "execProviderConfig"} & new.keys()
    new_tls = new.get("tlsClientConfig")
    new_tls = new_tls if isinstance(new_tls, dict) else {}
    if credential_keys or {"certData", "keyData"} & new_tls.keys():
        return new_config
    old_tls = old.get("tlsClientConfig")
    old_tls = old_tls if isinstance(old_tls, dict) else {}
    # With another server name or CA, an impostor could receive the old credentials.
    is_weaker = (new_tls.get("insecure") is True and old_tls.get("insecure") is not True) or any(
        name in new_tls and new_tls[name] != old_tls.get(name) for name in ("caData", "serverName")
    )
    return (
        new_config
        if is_weaker
        else json.dumps({**old, **new, "tlsClientConfig": {**old_tls, **new_tls}}, sort_keys=True)
    )


def _read_labels_and_annotations(body: Mapping[str, Any]) -> dict[str, Any]:
    fields = FieldReader(body, ERROR_LOCATION)
    return {name: dict(fields.read_text_map(name)) for name in ("labels", "annotations") if body.get(name) is not None}


def check_removable(declared: DeclaredSecret) -> None:
    if declared is IN_CLUSTER_DECLARATION:
        raise UserError(
            f"{IN_CLUSTER_SERVER} is the cluster that argosy runs in; disable it with cluster.inClusterEnabled"
        )


async def remove_cluster(app_service: ApplicationService, declared: DeclaredSecret) -> None:
    check_removable(declared)
    await delete_declared_secret(app_service, declared)


async def request_cache_invalidation(app_service: ApplicationService, declared: DeclaredSecret) -> None:
    """argo: request that the controller drops its cache of the cluster."""
    if declared is not IN_CLUSTER_DECLARATION:
        key = ResourceKey(*SECRET, app_service.control_namespace, declared.name)
        await app_service.cluster.patch(key, {"metadata": {"annotations": {REFRESH: current_timestamp()}}})
