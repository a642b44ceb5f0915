"""Adds a destination cluster: a service account with a token there, and a cluster Secret here; rotates the token.

In: an open client of the new cluster; an ApplicationService. Out: the cluster Secret. Never: shows a token; writes a
Secret with an untested token; revokes the old token before the new one is written, or a token that may be in use.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError, ClusterError, TransientError, UserError
from argosy.features.clusters import service
from argosy.features.clusters.cluster_account import (
    ACCOUNT_ANNOTATION,
    MANAGED_BY_LABELS,
    MANAGER_ACCOUNT,
    WHOLE_CLUSTER,
    AccessNamespaces,
    ReportMessage,
    delete_bindings,
    delete_if_unchanged,
    ensure_manager_account,
    find_surplus_bindings,
    is_created_by_argosy,
    render_recreated_message,
)
from argosy.gitops.application_client.client import ApplicationService, ClusterOpener
from argosy.gitops.application_client.declared_objects import DeclaredSecret, replace_declared_secret
from argosy.gitops.clusters.cluster_secret import check_server_address
from argosy.kube.client import Cluster
from argosy.kube.client.connection import Connection
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of, read_yaml
from argosy.kube.objects.field_reader import FieldReader

SYSTEM_NAMESPACE: Final = "kube-system"
TOKEN_WAIT_SECONDS, TOKEN_WAIT_SECONDS_WITHOUT_MANAGER = (
    10.0,
    1.5,
)  # seconds to wait for the token, with and without a visible controller-manager
POLL_INTERVAL_SECONDS: Final = 0.25
NOT_WRITTEN_MESSAGE: Final = "no cluster Secret was written"
CREDENTIAL_PROVIDERS: Final = frozenset(
    {"execProviderConfig", "awsAuthConfig"}
)  # authentication without a service account
TOKEN_LIFETIME_SECONDS: Final = 10 * 365 * 86400  # seconds; for a token from a TokenRequest


class ServiceAccountClaims(NamedTuple):
    """Unverified claims of a service account token: its account, and the Secret it is bound to."""

    namespace: str
    account: str
    token: ResourceKey | None


@dataclass
class BoundToken:
    """A new token, and the Secret on the cluster that it is bound to."""

    text: str = field(repr=False)
    key: ResourceKey
    may_be_used: bool = False  # then it is not revoked, even after an error


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
        await service.connection_to(app_service, {**service.read_values(body), "server": connection.server})
        await service.add_cluster(app_service, body, is_upsert=options.is_upsert, dry_run=True)
        surplus_bindings = (
            [] if options.account else await _find_surplus_bindings(cluster_client, options, existing, report)
        )
        declared = await _create_token_and_secret(
            app_service, cluster_client, connection, options, body, opener, report
        )
    if existing is not None:
        await _revoke_old_token(cluster_client, existing, report)
    await delete_bindings(cluster_client, surplus_bindings, report)
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
            await _test_connection(
                app_service,
                opener,
                {"server": connection.server, "name": options.name, "config": json.dumps(test_config)},
            )
        full_body = {**body, "config": {**body["config"], "bearerToken": token.text}}
        return await _write_token(
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


async def _revoke_old_token(cluster_client: Cluster, existing: DeclaredSecret, report: ReportMessage) -> None:
    """Revoke the replaced token. A token that argosy did not create is kept, because others may use it."""
    claims = read_token_claims(existing)
    if claims is None or claims.token is None:
        return
    key = claims.token
    try:
        secret = await cluster_client.get(key)
        if secret is not None and is_created_by_argosy(secret):
            if not await delete_if_unchanged(cluster_client, secret):
                report(f"argosy: {render_recreated_message(key)}")
                return
            report(f'Secret "{key.name}" deleted in namespace "{key.namespace}"; the old token is revoked')
            return
        reason = "argosy did not create it"
    except ClusterError as error:
        secret, reason = {}, error.message
    if secret is not None:
        command = f"kubectl delete -n {key.namespace} secret/{key.name}"
        report(f"argosy: the old token is still valid ({reason}); if it is not needed, run on that cluster: {command}")


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
        await _test_connection(
            app_service, opener, {**test_values, "name": options.name}, "its token", "renew the token with --upsert"
        )


async def _read_cluster_info(
    cluster_client: Cluster, tls: Mapping[str, Any], report: ReportMessage
) -> tuple[str, dict[str, Any]] | None:
    """argo: server and CA of the first cluster in the kubeconfig of cluster-info; None if there is no valid address."""
    try:
        config_map = await cluster_client.get(ResourceKey("", "ConfigMap", "kube-public", "cluster-info")) or {}
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


@asynccontextmanager
async def create_token(cluster_client: Cluster, namespace: str, account: str) -> AsyncIterator[BoundToken]:
    """Create a token bound to a new Secret on that cluster, which is deleted again if the block fails."""
    owner = await cluster_client.get(ResourceKey("", "ServiceAccount", namespace, account))
    if owner is None:
        message = f"ServiceAccount {account} not found in {namespace}"
        raise UserError(f"{message}; create it, or omit --service-account")
    name = f"{account}-token-{secrets.token_hex(3)}"
    secret = await cluster_client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": MANAGED_BY_LABELS,
                "annotations": {ACCOUNT_ANNOTATION: account},
            },
        }
    )
    token = BoundToken("", ResourceKey("", "Secret", namespace, name))
    try:
        token.text = await _wait_for_token(cluster_client, token.key) or await _request_token(
            cluster_client, token.key, account, secret
        )
        yield token
    except BaseException:
        if not token.may_be_used:
            await delete_if_unchanged(cluster_client, secret)
        raise


async def _write_token(
    app_service: ApplicationService, server: str, token: BoundToken, write: Coroutine[Any, Any, DeclaredSecret]
) -> DeclaredSecret:
    """Write the token to the cluster Secret. After a lost response, read the Secret to see if it was written."""
    token.may_be_used = True
    write_task = asyncio.create_task(write)
    try:
        await asyncio.wait({write_task})  # the write continues if this task is cancelled
    finally:
        await asyncio.wait({write_task})
        stored = await _find_stored_secret(app_service, server, token, write_task)
        token.may_be_used = stored is not None
    return stored or write_task.result()


async def _find_stored_secret(
    app_service: ApplicationService, server: str, token: BoundToken, write_task: asyncio.Task[DeclaredSecret]
) -> DeclaredSecret | None:
    """The Secret that the write stored, or None."""
    error = write_task.exception()
    if error is None:
        return write_task.result()
    try:
        existing = await service.find_cluster(app_service, server)
    except ArgosyError:
        advice = "the new token may be in use and was not revoked; if it is not used, run on that cluster"
        message = f"{error}; {advice}: kubectl delete -n {token.key.namespace} secret/{token.key.name}"
        raise TransientError(message) from error
    is_in_use = existing is not None and service.read_config(existing).get("bearerToken") == token.text
    return existing if is_in_use else None


async def _wait_for_token(cluster_client: Cluster, key: ResourceKey) -> str:
    """Wait for the control plane to write the token into the Secret; empty if it does not."""
    for _ in range(
        int(
            (
                TOKEN_WAIT_SECONDS
                if await _has_controller_manager(cluster_client)
                else TOKEN_WAIT_SECONDS_WITHOUT_MANAGER
            )
            / POLL_INTERVAL_SECONDS
        )
    ):
        secret = await cluster_client.get(key) or {}
        if text := (secret.get("data") or {}).get("token"):
            return base64.b64decode(text).decode()
        await asyncio.sleep(POLL_INTERVAL_SECONDS)
    return ""


async def _request_token(cluster_client: Cluster, key: ResourceKey, account: str, secret: Manifest) -> str:
    """Create a token with a TokenRequest, bound to the Secret."""
    bound = {"apiVersion": "v1", "kind": "Secret", "name": key.name, "uid": secret["metadata"].get("uid")}
    spec = {"expirationSeconds": TOKEN_LIFETIME_SECONDS, "boundObjectRef": bound}
    token_request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    response = await cluster_client.create(
        token_request, subresource_of=ResourceKey("", "ServiceAccount", key.namespace, account)
    )
    return str(response["status"]["token"])


async def _has_controller_manager(cluster_client: Cluster) -> bool:
    lease = ResourceKey("coordination.k8s.io", "Lease", SYSTEM_NAMESPACE, "kube-controller-manager")
    try:
        return await cluster_client.get(lease) is not None
    except ClusterError:
        return False


async def _test_connection(
    app_service: ApplicationService,
    opener: ClusterOpener,
    values: Mapping[str, str],
    token_name: str = "the new token",
    advice: str = NOT_WRITTEN_MESSAGE,
) -> None:
    connection = await service.connection_to(app_service, values)
    try:
        async with opener(connection) as cluster:
            await cluster.kinds()
    except ClusterError as error:
        raise UserError(f"{connection.server} rejected {token_name} ({error.message}); {advice}") from error


# -- token rotation ----------------------------------------------------------------------------------------------------


async def rotate_token(
    app_service: ApplicationService,
    declared: DeclaredSecret,
    opener: ClusterOpener,
    report: ReportMessage = lambda _: None,
) -> str:
    """Create a new token of the same account, then revoke the old one. Returns the account."""
    config = service.read_config(declared)
    claims = read_token_claims(declared)
    if claims is None:
        raise UserError(
            "has no service account token, so there is nothing to rotate; renew its credentials at their source",
            where=f"cluster {declared.get_stripped('name') or service.read_server(declared)}",
        )
    values = {**declared.values, "server": service.read_server(declared)}
    before = await service.connection_to(app_service, values)
    async with (
        opener(before) as cluster_client,
        create_token(cluster_client, claims.namespace, claims.account) as token,
    ):
        old_secret = await cluster_client.get(claims.token) if claims.token else None
        changed = {**values, "config": json.dumps({**config, "bearerToken": token.text}, sort_keys=True)}
        await _test_connection(app_service, opener, changed)
        await _write_token(
            app_service, values["server"], token, replace_declared_secret(app_service, declared, changed)
        )
    if old_secret is not None:
        async with opener(await service.connection_to(app_service, changed)) as cluster_client:
            if not await delete_if_unchanged(cluster_client, old_secret):
                report(f"argosy: {render_recreated_message(key_of(old_secret))}")
    return f"{claims.namespace}/{claims.account}"


def read_token_claims(declared: DeclaredSecret) -> ServiceAccountClaims | None:
    """Claims of the cluster's token; None if it is not a service account token."""
    try:
        body = str(service.read_config(declared).get("bearerToken") or "").split(".")[1]
        payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        _, kind, namespace, account = str(payload["sub"]).split(":")
    except (IndexError, KeyError, ValueError, TypeError, binascii.Error):
        return None
    bound = payload.get("kubernetes.io")
    secret = bound.get("secret") if isinstance(bound, dict) else None
    name = secret.get("name") if isinstance(secret, dict) else payload.get("kubernetes.io/serviceaccount/secret.name")
    key = ResourceKey("", "Secret", namespace, str(name)) if name else None
    return ServiceAccountClaims(namespace, account, key) if kind == "serviceaccount" else None
