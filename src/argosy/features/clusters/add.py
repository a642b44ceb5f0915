"""Adds a destination cluster: a service account with a token there, and a cluster Secret here.

In: an open client of the new cluster; an ApplicationService. Out: the cluster Secret. Never: shows a token; writes a
Secret with an untested token; revokes the old token before the new one is written.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import ClusterError, UserError
from argosy.features.clusters import service
from argosy.features.clusters.cluster_service_account import (
    MANAGER_ACCOUNT,
    WHOLE_CLUSTER,
    AccessNamespaces,
    ReportMessage,
    delete_bindings_and_roles,
    ensure_manager_account,
    find_surplus_bindings,
)
from argosy.features.clusters.connection_state import build_cluster_connection
from argosy.features.clusters.service_account_token_lifecycle import (
    SYSTEM_NAMESPACE,
    check_token,
    create_token,
    read_token_claims,
    revoke_old_token,
    write_token,
)
from argosy.gitops.application_client.application_service import ApplicationService, ClusterOpener
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
from argosy.gitops.clusters.cluster_secret import check_server_address
from argosy.kube.client import Cluster
from argosy.kube.client.connection_settings import Connection
from argosy.kube.objects import read_yaml
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

# Authentication without a service account.
CREDENTIAL_PROVIDERS: Final = frozenset({"execProviderConfig", "awsAuthConfig"})


@dataclass(frozen=True)
class AddClusterOptions:
    """Options of `cluster add`. `config` may name an exec or AWS credential provider; then no account is created."""

    name: str
    namespaces: tuple[str, ...] = ()
    has_cluster_resources: bool = False
    account: str = ""  # an existing service account; empty: argocd-manager is created
    system_namespace: str = SYSTEM_NAMESPACE
    project: str = ""
    is_in_cluster: bool = False
    uses_cluster_info: bool = False  # use the address from kube-public/cluster-info
    shard: int | None = None  # argo: shard of its application controllers; argosy ignores it
    is_upsert: bool = False
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None

    @property
    def access_namespaces(self) -> AccessNamespaces:
        """Namespaces in which the account gets full access."""
        return WHOLE_CLUSTER if self.has_cluster_resources or not self.namespaces else self.namespaces


async def add_cluster(
    app_service: ApplicationService,
    cluster_client: Cluster,
    connection: Connection,
    options: AddClusterOptions,
    opener: ClusterOpener,
    report: ReportMessage,
) -> tuple[DeclaredSecret, bool]:
    """Add the cluster. Returns its Secret, and True if it existed unchanged."""
    server, tls = (
        service.IN_CLUSTER_SERVER if options.is_in_cluster else connection.server,
        _build_tls_config(connection),
    )
    if options.uses_cluster_info:
        server, tls = await _read_cluster_info(cluster_client, tls, report) or (server, tls)
    await service.check_name(app_service, options.name, server)
    existing = await service.find_cluster(app_service, server)
    config = {**options.config, "tlsClientConfig": tls}
    if existing is not None and existing is not service.IN_CLUSTER_DECLARATION and not options.is_upsert:
        await _check_unchanged(
            app_service, existing, connection, options, _build_request(server, options, config), opener
        )
        return existing, True
    surplus_bindings: list[ResourceKey] = []
    if CREDENTIAL_PROVIDERS & config.keys():
        declared = await service.add_cluster(
            app_service, _build_request(server, options, config), is_upsert=options.is_upsert
        )
    else:
        body = _build_request(server, options, config)
        await build_cluster_connection(app_service, {**service.read_values(body), "server": connection.server})
        await service.add_cluster(app_service, body, is_upsert=options.is_upsert, dry_run=True)
        surplus_bindings = (
            [] if options.account else await _find_surplus_bindings(cluster_client, options, existing, report)
        )
        declared = await _create_token_and_secret(
            app_service, cluster_client, connection, options, body, opener, report
        )
    if existing is not None:
        await revoke_old_token(cluster_client, existing, report)
    await delete_bindings_and_roles(cluster_client, surplus_bindings, report)
    return declared, False


async def _create_token_and_secret(
    app_service: ApplicationService,
    cluster_client: Cluster,
    connection: Connection,
    options: AddClusterOptions,
    body: Mapping[str, Any],
    opener: ClusterOpener,
    report: ReportMessage,
) -> DeclaredSecret:
    """Create a token, create its account first unless one was named, test the token and write the cluster Secret."""
    if not options.account:
        await ensure_manager_account(cluster_client, options.system_namespace, options.access_namespaces, report)
    async with create_token(cluster_client, options.system_namespace, options.account or MANAGER_ACCOUNT) as token:
        if not options.is_in_cluster:
            # Test with the address of the context: the address in the Secret may be reachable only from Pods.
            test_config = {
                **body["config"],
                "tlsClientConfig": _build_tls_config(connection),
                "bearerToken": token.text,
            }
            await check_token(
                app_service,
                opener,
                {"server": connection.server, "name": options.name, "config": json.dumps(test_config)},
            )
        full_body = {**body, "config": {**body["config"], "bearerToken": token.text}}
        return await write_token(
            app_service, body["server"], token, service.add_cluster(app_service, full_body, is_upsert=options.is_upsert)
        )


async def _find_surplus_bindings(
    cluster_client: Cluster, options: AddClusterOptions, existing: DeclaredSecret | None, report: ReportMessage
) -> list[ResourceKey]:
    """Bindings from an earlier `cluster add` that give the account more rights than requested."""
    claims = read_token_claims(existing) if existing is not None else None
    own_token_name = claims.token.name if claims is not None and claims.token is not None else ""
    previous_namespaces = service.read_namespaces(existing) if existing is not None else []
    return await find_surplus_bindings(
        cluster_client, options.system_namespace, options.access_namespaces, previous_namespaces, own_token_name, report
    )


async def _check_unchanged(
    app_service: ApplicationService,
    existing: DeclaredSecret,
    connection: Connection,
    options: AddClusterOptions,
    body: Mapping[str, Any],
    opener: ClusterOpener,
) -> None:
    """Raise UserError if the existing cluster differs from the request, or no longer accepts its token."""
    values = {"namespaces": "", "shard": "", **service.read_values(body)}
    new, old = json.loads(values.pop("config")), service.read_config(existing)
    if values.get("clusterResources") == (existing.get_stripped("clusterResources") or "false"):
        del values["clusterResources"]
    token = old.pop("bearerToken", "")
    old["tlsClientConfig"] = {"insecure": False, **FieldReader(old, "config").read_map("tlsClientConfig").values}
    keys = [f"config.{key}" for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    has_account = not CREDENTIAL_PROVIDERS & new.keys()
    if has_account and (read_token_claims(existing) or ())[:2] != (
        options.system_namespace,
        options.account or MANAGER_ACCOUNT,
    ):
        keys.append("config.bearerToken")
    if keys := service.list_differing_keys(existing, values, body) + keys:
        raise service.build_difference_error(sorted(keys))
    if has_account and not options.is_in_cluster:
        test_values = {"server": connection.server, "config": json.dumps({**new, "bearerToken": token})}
        await check_token(
            app_service, opener, {**test_values, "name": options.name}, "its token", "renew the token with --upsert"
        )


async def _read_cluster_info(
    cluster_client: Cluster, tls: Mapping[str, Any], report: ReportMessage
) -> tuple[str, dict[str, Any]] | None:
    """argo: server and CA of the first cluster in the kubeconfig of cluster-info; None if there is no valid address."""
    try:
        config_map = await cluster_client.get(ResourceKey(*CONFIG_MAP, "kube-public", "cluster-info")) or {}
        config = read_yaml(str((config_map.get("data") or {}).get("kubeconfig") or ""))
        cluster = FieldReader(config, "cluster-info").read_map_list("clusters")[0].read_map("cluster")
        server, authority = cluster.read_text("server").rstrip("/"), cluster.read_text("certificate-authority-data")
        check_server_address(server, "cluster-info")
    except (ClusterError, UserError, IndexError) as error:
        report(f"argosy: no usable address in kube-public/cluster-info ({error}); using the address of the context")
        return None
    return server, {**tls, "caData": authority} if authority and not tls.get("insecure") else dict(tls)


def _build_request(server: str, options: AddClusterOptions, config: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"server": server, "name": options.name, "config": config, "project": options.project}
    if options.namespaces:
        body |= {"namespaces": list(options.namespaces), "clusterResources": options.has_cluster_resources}
    if options.shard is not None:
        body["shard"] = options.shard
    for name, metadata in (("labels", options.labels), ("annotations", options.annotations)):
        if metadata:
            body[name] = dict(metadata)
    return body


def _build_tls_config(connection: Connection) -> dict[str, Any]:
    """argo: tlsClientConfig of the connection, with the CA inlined from its file."""
    tls_config: dict[str, Any] = {"insecure": connection.insecure}
    authority = connection.ca_data
    if not authority and connection.ca_file:
        with open(connection.ca_file, "rb") as file:
            authority = file.read()
    if authority:
        tls_config["caData"] = base64.b64encode(authority).decode()
    if connection.tls_server_name:
        tls_config["serverName"] = connection.tls_server_name
    return tls_config
