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
    MADE,
    MANAGER,
    OF_ACCOUNT,
    WHOLE,
    Places,
    Tell,
    is_made,
    kept_message,
    make_manager,
    revoke,
    surplus,
    take_away,
)
from argosy.gitops.application_client.client import Desk, Opener
from argosy.gitops.application_client.declared_objects import Declared, declare_anew
from argosy.gitops.clusters.cluster_secret import check_address
from argosy.kube.client import Cluster
from argosy.kube.client.connection import Connection
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of, load
from argosy.kube.objects.field_reader import Fields

SYSTEM: Final = "kube-system"
FILLED, UNSEEN = 10.0, 1.5  # seconds to wait for the token, with and without a visible controller-manager
BETWEEN: Final = 0.25
NOT_WRITTEN: Final = "no cluster Secret was written"
PROGRAMS: Final = frozenset({"execProviderConfig", "awsAuthConfig"})  # authentication without a service account
TEN_YEARS: Final = 10 * 365 * 86400  # seconds; for a token from a TokenRequest


class Claims(NamedTuple):
    """Unverified claims of a service account token: its account, and the Secret it is bound to."""

    namespace: str
    account: str
    token: ResourceKey | None


@dataclass
class Token:
    """A new token, and the Secret on the cluster that it is bound to."""

    text: str = field(repr=False)
    key: ResourceKey
    may_be_used: bool = False  # then it is not revoked, even after an error


@dataclass(frozen=True)
class Enlisted:
    """Options of `cluster add`. `config` may name an exec or AWS credential provider; then no account is created."""

    name: str
    namespaces: tuple[str, ...] = ()
    has_cluster_kinds: bool = False
    account: str = ""  # an existing service account; empty: argocd-manager is created
    system: str = SYSTEM
    project: str = ""
    is_here: bool = False
    is_public: bool = False  # use the address from kube-public/cluster-info
    shard: int | None = None  # argo: shard of its application controllers; argosy ignores it
    replaces: bool = False
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None

    @property
    def places(self) -> Places:
        """Namespaces in which the account gets full access."""
        return WHOLE if self.has_cluster_kinds or not self.namespaces else self.namespaces


async def enlist(
    desk: Desk, there: Cluster, connection: Connection, wanted: Enlisted, opener: Opener, tell: Tell
) -> tuple[Declared, bool]:
    """Add the cluster. Returns its Secret, and True if it existed unchanged."""
    server, tls = service.HERE if wanted.is_here else connection.server, _tls(connection)
    if wanted.is_public:
        server, tls = await _published(there, tls, tell) or (server, tls)
    await service.check_name(desk, wanted.name, server)
    before = await service.find(desk, server)
    config = {**wanted.config, "tlsClientConfig": tls}
    if before is not None and before is not service.OWN and not wanted.replaces:
        await _check_same(desk, before, connection, wanted, _given(server, wanted, config), opener)
        return before, True
    wider: list[ResourceKey] = []
    if PROGRAMS & config.keys():
        made = await service.add(desk, _given(server, wanted, config), replaces=wanted.replaces)
    else:
        given = _given(server, wanted, config)
        await service.connection_to(desk, {**service.read_values(given), "server": connection.server})
        await service.add(desk, given, replaces=wanted.replaces, dry_run=True)
        wider = [] if wanted.account else await _wider(there, wanted, before, tell)
        made = await _let_in(desk, there, connection, wanted, given, opener, tell)
    if before is not None:
        await _forget_token(there, before, tell)
    await take_away(there, wider, tell)
    return made, False


async def _let_in(
    desk: Desk,
    there: Cluster,
    connection: Connection,
    wanted: Enlisted,
    given: Mapping[str, Any],
    opener: Opener,
    tell: Tell,
) -> Declared:
    """Create a token, create its account first unless one was named, test the token and write the cluster Secret."""
    if not wanted.account:
        await make_manager(there, wanted.system, wanted.places, tell)
    async with new_token(there, wanted.system, wanted.account or MANAGER) as token:
        if not wanted.is_here:
            # Test with the address of the context: the address in the Secret may be reachable only from Pods.
            tried = {**given["config"], "tlsClientConfig": _tls(connection), "bearerToken": token.text}
            await _try(desk, opener, {"server": connection.server, "name": wanted.name, "config": json.dumps(tried)})
        whole = {**given, "config": {**given["config"], "bearerToken": token.text}}
        return await _put(desk, given["server"], token, service.add(desk, whole, replaces=wanted.replaces))


async def _wider(there: Cluster, wanted: Enlisted, before: Declared | None, tell: Tell) -> list[ResourceKey]:
    """Bindings from an earlier `cluster add` that give the account more rights than requested."""
    claims = claims_of(before) if before is not None else None
    own = claims.token.name if claims is not None and claims.token is not None else ""
    had = service.namespaces_of(before) if before is not None else []
    return await surplus(there, wanted.system, wanted.places, had, own, tell)


async def _forget_token(there: Cluster, before: Declared, tell: Tell) -> None:
    """Revoke the replaced token. A token that argosy did not create is kept, because others may use it."""
    claims = claims_of(before)
    if claims is None or claims.token is None:
        return
    key = claims.token
    try:
        found = await there.get(key)
        if found is not None and is_made(found):
            if not await revoke(there, found):
                tell(f"argosy: {kept_message(key)}")
                return
            tell(f'Secret "{key.name}" deleted in namespace "{key.namespace}"; the old token is revoked')
            return
        why = "argosy did not create it"
    except ClusterError as error:
        found, why = {}, error.message
    if found is not None:
        command = f"kubectl delete -n {key.namespace} secret/{key.name}"
        tell(f"argosy: the old token is still valid ({why}); if it is not needed, run on that cluster: {command}")


async def _check_same(
    desk: Desk, before: Declared, connection: Connection, wanted: Enlisted, given: Mapping[str, Any], opener: Opener
) -> None:
    """Raise UserError if the existing cluster differs from the request, or no longer accepts its token."""
    values = {"namespaces": "", "shard": "", **service.read_values(given)}
    new, old = json.loads(values.pop("config")), service.config_of(before)
    if values.get("clusterResources") == (before.text("clusterResources") or "false"):
        del values["clusterResources"]
    token = old.pop("bearerToken", "")
    old["tlsClientConfig"] = {"insecure": False, **Fields(old, "config").fields("tlsClientConfig").values}
    keys = [f"config.{key}" for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    has_account = not PROGRAMS & new.keys()
    if has_account and (claims_of(before) or ())[:2] != (wanted.system, wanted.account or MANAGER):
        keys.append("config.bearerToken")
    if keys := service.differing(before, values, given) + keys:
        raise service.is_different(sorted(keys))
    if has_account and not wanted.is_here:
        tried = {"server": connection.server, "config": json.dumps({**new, "bearerToken": token})}
        await _try(desk, opener, {**tried, "name": wanted.name}, "its token", "renew the token with --upsert")


async def _published(there: Cluster, tls: Mapping[str, Any], tell: Tell) -> tuple[str, dict[str, Any]] | None:
    """argo: server and CA of the first cluster in the kubeconfig of cluster-info; None if there is no valid address."""
    try:
        found = await there.get(ResourceKey("", "ConfigMap", "kube-public", "cluster-info")) or {}
        config = load(str((found.get("data") or {}).get("kubeconfig") or ""))
        cluster = Fields(config, "cluster-info").all_fields("clusters")[0].fields("cluster")
        server, authority = cluster.text("server").rstrip("/"), cluster.text("certificate-authority-data")
        check_address(server, "cluster-info")
    except (ClusterError, UserError, IndexError) as error:
        tell(f"argosy: no usable address in kube-public/cluster-info ({error}); using the address of the context")
        return None
    return server, {**tls, "caData": authority} if authority and not tls.get("insecure") else dict(tls)


def _given(server: str, wanted: Enlisted, config: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {"server": server, "name": wanted.name, "config": config, "project": wanted.project}
    if wanted.namespaces:
        given |= {"namespaces": list(wanted.namespaces), "clusterResources": wanted.has_cluster_kinds}
    if wanted.shard is not None:
        given["shard"] = wanted.shard
    for name, marks in (("labels", wanted.labels), ("annotations", wanted.annotations)):
        if marks:
            given[name] = dict(marks)
    return given


def _tls(connection: Connection) -> dict[str, Any]:
    """argo: tlsClientConfig of the connection, with the CA inlined from its file."""
    found: dict[str, Any] = {"insecure": connection.insecure}
    authority = connection.ca_data
    if not authority and connection.ca_file:
        with open(connection.ca_file, "rb") as file:
            authority = file.read()
    if authority:
        found["caData"] = base64.b64encode(authority).decode()
    if connection.tls_server_name:
        found["serverName"] = connection.tls_server_name
    return found


@asynccontextmanager
async def new_token(there: Cluster, namespace: str, account: str) -> AsyncIterator[Token]:
    """Create a token bound to a new Secret on that cluster, which is deleted again if the block fails."""
    owner = await there.get(ResourceKey("", "ServiceAccount", namespace, account))
    if owner is None:
        told = f"ServiceAccount {account} not found in {namespace}"
        raise UserError(f"{told}; create it, or omit --service-account")
    name = f"{account}-token-{secrets.token_hex(3)}"
    made = await there.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": MADE,
                "annotations": {OF_ACCOUNT: account},
            },
        }
    )
    token = Token("", ResourceKey("", "Secret", namespace, name))
    try:
        token.text = await _filled(there, token.key) or await _asked_for(there, token.key, account, made)
        yield token
    except BaseException:
        if not token.may_be_used:
            await revoke(there, made)
        raise


async def _put(desk: Desk, server: str, token: Token, write: Coroutine[Any, Any, Declared]) -> Declared:
    """Write the token to the cluster Secret. After a lost response, read the Secret to see if it was written."""
    token.may_be_used = True
    work = asyncio.create_task(write)
    try:
        await asyncio.wait({work})  # the write continues if this task is cancelled
    finally:
        await asyncio.wait({work})
        stored = await _stored(desk, server, token, work)
        token.may_be_used = stored is not None
    return stored or work.result()


async def _stored(desk: Desk, server: str, token: Token, work: asyncio.Task[Declared]) -> Declared | None:
    """The Secret that the write stored, or None."""
    error = work.exception()
    if error is None:
        return work.result()
    try:
        found = await service.find(desk, server)
    except ArgosyError:
        stays = "the new token may be in use and was not revoked; if it is not used, run on that cluster"
        told = f"{error}; {stays}: kubectl delete -n {token.key.namespace} secret/{token.key.name}"
        raise TransientError(told) from error
    is_in_use = found is not None and service.config_of(found).get("bearerToken") == token.text
    return found if is_in_use else None


async def _filled(there: Cluster, key: ResourceKey) -> str:
    """Wait for the control plane to write the token into the Secret; empty if it does not."""
    for _ in range(int((FILLED if await _has_filler(there) else UNSEEN) / BETWEEN)):
        found = await there.get(key) or {}
        if text := (found.get("data") or {}).get("token"):
            return base64.b64decode(text).decode()
        await asyncio.sleep(BETWEEN)
    return ""


async def _asked_for(there: Cluster, key: ResourceKey, account: str, secret: Manifest) -> str:
    """Create a token with a TokenRequest, bound to the Secret."""
    bound = {"apiVersion": "v1", "kind": "Secret", "name": key.name, "uid": secret["metadata"].get("uid")}
    spec = {"expirationSeconds": TEN_YEARS, "boundObjectRef": bound}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = await there.create(asked, subresource_of=ResourceKey("", "ServiceAccount", key.namespace, account))
    return str(answer["status"]["token"])


async def _has_filler(there: Cluster) -> bool:
    lease = ResourceKey("coordination.k8s.io", "Lease", SYSTEM, "kube-controller-manager")
    try:
        return await there.get(lease) is not None
    except ClusterError:
        return False


async def _try(
    desk: Desk, opener: Opener, values: Mapping[str, str], which: str = "the new token", then: str = NOT_WRITTEN
) -> None:
    connection = await service.connection_to(desk, values)
    try:
        async with opener(connection) as cluster:
            await cluster.kinds()
    except ClusterError as error:
        raise UserError(f"{connection.server} rejected {which} ({error.message}); {then}") from error


# -- token rotation ----------------------------------------------------------------------------------------------------


async def rotate(desk: Desk, declared: Declared, opener: Opener, tell: Tell = lambda _: None) -> str:
    """Create a new token of the same account, then revoke the old one. Returns the account."""
    config = service.config_of(declared)
    claims = claims_of(declared)
    if claims is None:
        raise UserError(
            "has no service account token, so there is nothing to rotate; renew its credentials at their source",
            where=f"cluster {declared.text('name') or service.server_of(declared)}",
        )
    values = {**declared.values, "server": service.server_of(declared)}
    before = await service.connection_to(desk, values)
    async with opener(before) as there, new_token(there, claims.namespace, claims.account) as token:
        replaced = await there.get(claims.token) if claims.token else None
        changed = {**values, "config": json.dumps({**config, "bearerToken": token.text}, sort_keys=True)}
        await _try(desk, opener, changed)
        await _put(desk, values["server"], token, declare_anew(desk, declared, changed))
    if replaced is not None:
        async with opener(await service.connection_to(desk, changed)) as there:
            if not await revoke(there, replaced):
                tell(f"argosy: {kept_message(key_of(replaced))}")
    return f"{claims.namespace}/{claims.account}"


def claims_of(declared: Declared) -> Claims | None:
    """Claims of the cluster's token; None if it is not a service account token."""
    try:
        body = str(service.config_of(declared).get("bearerToken") or "").split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        _, kind, namespace, account = str(found["sub"]).split(":")
    except (IndexError, KeyError, ValueError, TypeError, binascii.Error):
        return None
    bound = found.get("kubernetes.io")
    secret = bound.get("secret") if isinstance(bound, dict) else None
    name = secret.get("name") if isinstance(secret, dict) else found.get("kubernetes.io/serviceaccount/secret.name")
    key = ResourceKey("", "Secret", namespace, str(name)) if name else None
    return Claims(namespace, account, key) if kind == "serviceaccount" else None
