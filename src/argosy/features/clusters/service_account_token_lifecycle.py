"""Creates, tests, stores, rotates and revokes the service account token of a destination cluster.

In: an open client of the cluster; an ApplicationService. Out: a token bound to a Secret there, stored in the cluster
Secret here. Never: shows a token; writes a Secret with an untested token; revokes the old token before the new one is
written, or a token that may be in use.
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
from argosy.features.clusters.cluster_service_account import (
    ACCOUNT_ANNOTATION,
    MANAGED_BY_LABELS,
    ReportMessage,
    delete_unless_recreated,
    is_created_by_argosy,
    render_recreated_message,
)
from argosy.features.clusters.connection_state import build_cluster_connection
from argosy.gitops.application_client.application_service import ApplicationService, ClusterOpener
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret, replace_declared_secret
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import AUTHENTICATION_API_VERSION, LEASE, SECRET

SYSTEM_NAMESPACE: Final = "kube-system"
TOKEN_WAIT_SECONDS: Final = 10.0  # until the controller-manager writes the token
TOKEN_WAIT_SECONDS_WITHOUT_MANAGER: Final = 1.5  # if no controller-manager is visible
POLL_INTERVAL_SECONDS: Final = 0.25
NOT_WRITTEN_MESSAGE: Final = "no cluster Secret was written"
TOKEN_LIFETIME_SECONDS: Final = 10 * 365 * 86400  # of a token from a TokenRequest


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


async def revoke_old_token(cluster_client: Cluster, existing: DeclaredSecret, report: ReportMessage) -> None:
    """Revoke the replaced token. A token that argosy did not create is kept, because others may use it."""
    claims = read_token_claims(existing)
    if claims is None or claims.token is None:
        return
    key = claims.token
    try:
        secret = await cluster_client.get(key)
        if secret is not None and is_created_by_argosy(secret):
            if not await delete_unless_recreated(cluster_client, secret):
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
    token = BoundToken("", ResourceKey(*SECRET, namespace, name))
    try:
        token.text = await _wait_for_token(cluster_client, token.key) or await _request_secret_bound_token(
            cluster_client, token.key, account, secret
        )
        yield token
    except BaseException:
        if not token.may_be_used:
            await delete_unless_recreated(cluster_client, secret)
        raise


async def write_token(
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
    has_manager = await _has_controller_manager(cluster_client)
    wait_seconds = TOKEN_WAIT_SECONDS if has_manager else TOKEN_WAIT_SECONDS_WITHOUT_MANAGER
    for _ in range(int(wait_seconds / POLL_INTERVAL_SECONDS)):
        secret = await cluster_client.get(key) or {}
        if text := (secret.get("data") or {}).get("token"):
            return base64.b64decode(text).decode()
        await asyncio.sleep(POLL_INTERVAL_SECONDS)
    return ""


async def _request_secret_bound_token(cluster_client: Cluster, key: ResourceKey, account: str, secret: Manifest) -> str:
    """Create a token with a TokenRequest, bound to the Secret."""
    bound = {"apiVersion": "v1", "kind": "Secret", "name": key.name, "uid": secret["metadata"].get("uid")}
    spec = {"expirationSeconds": TOKEN_LIFETIME_SECONDS, "boundObjectRef": bound}
    token_request = {"apiVersion": AUTHENTICATION_API_VERSION, "kind": "TokenRequest", "spec": spec}
    response = await cluster_client.create(
        token_request, subresource_of=ResourceKey("", "ServiceAccount", key.namespace, account)
    )
    return str(response["status"]["token"])


async def _has_controller_manager(cluster_client: Cluster) -> bool:
    lease = ResourceKey(*LEASE, SYSTEM_NAMESPACE, "kube-controller-manager")
    try:
        return await cluster_client.get(lease) is not None
    except ClusterError:
        return False


async def check_token(
    app_service: ApplicationService,
    opener: ClusterOpener,
    values: Mapping[str, str],
    token_name: str = "the new token",
    advice: str = NOT_WRITTEN_MESSAGE,
) -> None:
    """Raise UserError if the cluster rejects the token of these values."""
    connection = await build_cluster_connection(app_service, values)
    try:
        async with opener(connection) as cluster:
            await cluster.kinds()
    except ClusterError as error:
        raise UserError(f"{connection.server} rejected {token_name} ({error.message}); {advice}") from error


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
    before = await build_cluster_connection(app_service, values)
    async with (
        opener(before) as cluster_client,
        create_token(cluster_client, claims.namespace, claims.account) as token,
    ):
        old_secret = await cluster_client.get(claims.token) if claims.token else None
        changed = {**values, "config": json.dumps({**config, "bearerToken": token.text}, sort_keys=True)}
        await check_token(app_service, opener, changed)
        await write_token(app_service, values["server"], token, replace_declared_secret(app_service, declared, changed))
    if old_secret is not None:
        async with opener(await build_cluster_connection(app_service, changed)) as cluster_client:
            if not await delete_unless_recreated(cluster_client, old_secret):
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
    key = ResourceKey(*SECRET, namespace, str(name)) if name else None
    return ServiceAccountClaims(namespace, account, key) if kind == "serviceaccount" else None
