"""Destination clusters: Argo CD's cluster Secrets, and the in-cluster destination.

In: an ApplicationService, request bodies. Out: cluster documents without secrets. Never: returns credentials; keeps
credentials when the address changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.annotations import REFRESH
from argosy.errors import ArgosyError, Conflict, Forbidden, UserError
from argosy.features.repositories.connection_test import BAD, GOOD, State
from argosy.gitops.application import IN_CLUSTER
from argosy.gitops.application.cluster_address import ClusterAddress, parse_cluster_address
from argosy.gitops.application_client.client import Desk, now
from argosy.gitops.application_client.declared_objects import (
    SECRET,
    Declared,
    all_declared,
    declare,
    declare_anew,
    map_data,
    secret_name,
    withdraw,
)
from argosy.gitops.clusters.cluster_secret import check_address, connection_of, programs_of
from argosy.gitops.reconciler.settings_watch import ARGOSY_CM
from argosy.kube.client import Cluster, Versioned
from argosy.kube.client.connection import Connection
from argosy.kube.names import ResourceKey
from argosy.kube.objects.field_reader import Fields

HERE, HERE_NAME = IN_CLUSTER
KIND: Final = "cluster"
WHERE: Final = "cluster"
ELSEWHERE: Final = "only the controller connects to this cluster; see the conditions of its Applications"
SECONDS: Final = 5.0  # timeout of a connection test
LASTS: Final = 30.0  # seconds for which a result is cached
MOST_KNOWN: Final = 1000
Told = tuple[State, str]  # connection state and server version
OWN: Final = Declared("", {"server": HERE, "name": HERE_NAME})  # needs no Secret
# argo: the config fields that clients may see; all others may contain credentials
_TLS: Final = ("insecure", "serverName")
_AWS: Final = ("clusterName", "roleARN")
_EXEC: Final = ("command", "apiVersion")


async def all_clusters(desk: Desk, *, with_faulty: bool = False) -> list[Declared]:
    """List clusters. `with_faulty`: append clusters without a valid address, which cannot be used."""
    everything = await all_declared(desk, KIND)
    found = [each for each in everything if server_of(each)]
    faulty = [each for each in everything if with_faulty and not server_of(each)]
    has_own = any(server_of(each) == HERE for each in found)
    return [*([] if has_own else [OWN]), *found, *faulty]


def server_of(declared: Declared) -> ClusterAddress:
    return parse_cluster_address(declared.text("server"))


async def find(desk: Desk, given: str, *, is_name: bool = False) -> Declared | None:
    for each in await all_clusters(desk):
        if (each.text("name") == given) if is_name else (server_of(each) == parse_cluster_address(given)):
            return each
    return None


async def named(desk: Desk, text: str) -> Declared:
    """Get the cluster with this address or this unique name. Raises UserError."""
    known = await all_clusters(desk)
    by_address = [each for each in known if server_of(each) == parse_cluster_address(text)]
    found = by_address or [each for each in known if each.text("name") == text]
    if not found:
        raise UserError(f"cluster {text!r} not found; list them: argosy cluster list")
    if len(servers := {server_of(each) for each in found}) > 1:
        raise UserError(f"{len(servers)} clusters are named {text!r}; use the address: {_listed(servers)}")
    return found[0]


async def check_name(desk: Desk, name: str, server: str) -> None:
    """Raise UserError if a cluster at another address has this name: destinations by name would be ambiguous."""
    known = await all_clusters(desk)
    if others := {server_of(each) for each in known if each.text("name") == name} - {server}:
        raise UserError(f"another cluster is named {name!r} ({_listed(others)}); choose another name with --name")


def _listed(servers: Iterable[str]) -> str:
    return ", ".join(sorted(servers))


async def bound_for(desk: Desk, declared: Declared) -> list[str]:
    """Applications with this destination; with their namespace if it is not the default one."""
    server, name = server_of(declared), declared.text("name")
    try:
        apps = await desk.all(everywhere=True)
    except Forbidden:  # the user may list only one namespace
        apps = await desk.all()
    except UserError:  # the Application CRD is not installed
        return []
    places = [(app, app.destination.known) for app in apps]
    return [
        app.name if app.namespace == desk.namespace else f"{app.namespace}/{app.name}"
        for app, place in places
        if (place.server == server if place.server else place.name == name)
    ]


def thing_of(declared: Declared) -> str:
    """argo: object name in RBAC policies."""
    project = declared.text("project")
    return f"{project}/{server_of(declared)}" if project else server_of(declared)


async def connection_to(desk: Desk, values: Mapping[str, str]) -> Connection:
    """Connection with the same exec programs that the controller allows."""
    try:
        allowed = programs_of(await map_data(desk, ARGOSY_CM))
    except Forbidden:
        allowed = programs_of({})
    return connection_of(values, allowed)


async def state_of(desk: Desk, declared: Declared) -> Told:
    if not server_of(declared):
        told = f"Secret {declared.name} has no valid server; set it, or delete the Secret"
        return State(BAD, told, now()), ""
    if server_of(declared) == HERE:
        return await _asked(desk.cluster)
    if desk.opener is None:
        return State("Unknown", ELSEWHERE), ""
    try:
        connection = await connection_to(desk, _reachable(declared))
        async with asyncio.timeout(SECONDS), desk.opener(connection) as cluster:
            return await _asked(cluster)
    except TimeoutError:
        return State(BAD, f"timeout after {SECONDS:g} s", now()), ""
    except ArgosyError as error:
        return State(BAD, str(error), now()), ""


def _reachable(declared: Declared) -> dict[str, str]:
    return {**declared.values, "server": server_of(declared)}


class States:
    """Cached connection states of clusters."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Told]] = {}

    async def of(self, desk: Desk, declared: Declared) -> Told:
        if server_of(declared) == HERE:
            return await state_of(desk, declared)
        text = json.dumps(_reachable(declared), sort_keys=True)
        mark, clock = (
            hashlib.sha256(text.encode()).hexdigest(),
            asyncio.get_running_loop().time,
        )  # a hash, because the values are secret
        known = self._known.get(mark)
        if known is not None and known[0] > clock():
            return known[1]
        found = await state_of(desk, declared)
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known[mark] = clock() + LASTS, found
        return found


async def _asked(cluster: Cluster) -> Told:
    try:
        version = await cluster.version() if isinstance(cluster, Versioned) else ""
        await cluster.kinds()
    except ArgosyError as error:
        return State(BAD, str(error), now()), ""
    return State(GOOD, "", now()), version


def document(
    declared: Declared, state: State, version: str, applications: int, hidden: Collection[str] = ()
) -> dict[str, Any]:
    """argo: a V1alpha1Cluster with an allow-list of config fields. `hidden`: names of secret annotations."""
    found: dict[str, Any] = {
        "server": server_of(declared),
        "name": declared.text("name") or server_of(declared),
        "config": _seen(declared),
        "connectionState": state.document(),
        "serverVersion": version,
        "info": {
            "applicationsCount": applications,
            "cacheInfo": {},
            "connectionState": state.document(),
            "serverVersion": version,
        },
    }
    if names := namespaces_of(declared):
        found["namespaces"] = names
        found["clusterResources"] = declared.text("clusterResources").lower() == "true"
    if project := declared.text("project"):
        found["project"] = project
    if (shard := declared.text("shard")).isdecimal():
        found["shard"] = int(shard)
    if asked := declared.annotations.get(REFRESH):
        found["refreshRequestedAt"] = asked
    seen = {name: text for name, text in declared.annotations.items() if name not in hidden}
    for name, marks in (("labels", declared.labels), ("annotations", seen)):
        if marks:
            found[name] = dict(marks)
    return found


def namespaces_of(declared: Declared) -> list[str]:
    return [each.strip() for each in declared.text("namespaces").split(",") if each.strip()]


def config_of(declared: Declared) -> dict[str, Any]:
    try:
        found = json.loads(declared.text("config") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _seen(declared: Declared) -> dict[str, Any]:
    config = config_of(declared)
    seen: dict[str, Any] = {"tlsClientConfig": {"insecure": False, **_some(config.get("tlsClientConfig"), _TLS)}}
    if user := config.get("username"):
        seen["username"] = str(user)
    if aws := _some(config.get("awsAuthConfig"), _AWS):
        seen["awsAuthConfig"] = aws
    if program := _some(config.get("execProviderConfig"), _EXEC):
        seen["execProviderConfig"] = program
    return seen


def _some(given: Any, names: tuple[str, ...]) -> dict[str, Any]:
    values = given if isinstance(given, dict) else {}
    return {name: values[name] for name in names if isinstance(values.get(name), str | bool)}


def read_values(given: Mapping[str, Any], *, server: str = "") -> dict[str, str]:
    """Read Secret values from a request body. `server` is the address of an existing cluster."""
    fields = Fields(given, WHERE)
    check_address(fields.text("server") or server, WHERE)
    address = parse_cluster_address(fields.text("server") or server)
    values = {"server": str(address), "name": fields.text("name") or address, "project": fields.text("project")}
    if names := fields.all_texts("namespaces"):
        values["namespaces"] = ",".join(names)
        values["clusterResources"] = str(fields.flag("clusterResources")).lower()
    if given.get("shard") is not None:
        values["shard"] = str(fields.count("shard"))
    if (config := fields.optional("config")) is not None:
        values["config"] = json.dumps(dict(config.values), separators=(",", ":"), sort_keys=True)
    return values


async def add(desk: Desk, given: Mapping[str, Any], *, replaces: bool, dry_run: bool = False) -> Declared:
    values = read_values(given)
    before = await find(desk, values["server"])
    if before is not None and before is not OWN:
        keys = differing(before, {key: text for key, text in values.items() if text}, given)
        if not keys:
            return before
        if not replaces:
            raise is_different(keys)
        return await change(desk, before, given, dry_run=dry_run)
    host = (urlsplit(values["server"]).hostname or "").lower()
    name = secret_name(f"cluster-{host.replace(':', '-')}", values["server"])
    try:
        return await declare(desk, KIND, name, values, dry_run=dry_run, **_marks(given))
    except Conflict:
        raise UserError(
            f"Secret {name} exists and is not a cluster Secret of this address; delete or relabel it first"
        ) from None


def differing(before: Declared, values: Mapping[str, str], given: Mapping[str, Any]) -> list[str]:
    """Keys, labels and annotations of the Secret that differ from these values."""
    marks = [name for name, wanted in _marks(given).items() if getattr(before, name) != wanted]
    return [key for key, text in values.items() if before.text(key) != text] + marks


def is_different(keys: Iterable[str]) -> UserError:
    """argo: its message."""
    told = "existing cluster spec is different; use upsert flag to force update"
    return UserError(f'{told}; difference in keys "{",".join(keys)}"')


async def change(
    desk: Desk, before: Declared, given: Mapping[str, Any], only: tuple[str, ...] = (), *, dry_run: bool = False
) -> Declared:
    """argo: update `only` these fields (updatedFields), else all; credentials are kept unless new ones are sent."""
    if before is OWN:
        how = "argosy cluster add CONTEXT --in-cluster, or POST /api/v1/clusters"
        raise UserError(f"{HERE} has no Secret to change; create one first: {how}")
    wanted = {name: value for name, value in given.items() if not only or name in only}
    values = read_values(wanted, server=server_of(before))
    if values["server"] != server_of(before):
        raise UserError("server cannot be changed; delete this cluster and add the new one", where=WHERE)
    config = _kept(before, values.get("config"))
    if only:
        values = {**before.values, **{key: text for key, text in values.items() if key in (*only, "server")}}
    values["config"] = config
    return await declare_anew(desk, before, values, dry_run=dry_run, **_marks(wanted))


def _kept(before: Declared, given: str | None) -> str:
    """The config to store: keeps the old credentials unless new ones are given or TLS verification gets weaker."""
    old = config_of(before)
    if given is None:
        return before.text("config")
    new: dict[str, Any] = json.loads(given)
    lets_in = {"bearerToken", "password", "awsAuthConfig", "execProviderConfig"} & new.keys()
    tls = new.get("tlsClientConfig")
    tls = tls if isinstance(tls, dict) else {}
    if lets_in or {"certData", "keyData"} & tls.keys():
        return given
    past = old.get("tlsClientConfig")
    past = past if isinstance(past, dict) else {}
    # With another server name or CA, an impostor could receive the old credentials.
    is_weaker = (tls.get("insecure") is True and past.get("insecure") is not True) or any(
        name in tls and tls[name] != past.get(name) for name in ("caData", "serverName")
    )
    return given if is_weaker else json.dumps({**old, **new, "tlsClientConfig": {**past, **tls}}, sort_keys=True)


def _marks(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = Fields(given, WHERE)
    return {name: dict(fields.texts(name)) for name in ("labels", "annotations") if given.get(name) is not None}


def check_removable(declared: Declared) -> None:
    if declared is OWN:
        raise UserError(f"{HERE} is the cluster that argosy runs in; disable it with cluster.inClusterEnabled")


async def remove(desk: Desk, declared: Declared) -> None:
    check_removable(declared)
    await withdraw(desk, declared)


async def forget(desk: Desk, declared: Declared) -> None:
    """argo: request that the controller drops its cache of the cluster."""
    if declared is not OWN:
        key = ResourceKey(*SECRET, desk.control, declared.name)
        await desk.cluster.patch(key, {"metadata": {"annotations": {REFRESH: now()}}})
