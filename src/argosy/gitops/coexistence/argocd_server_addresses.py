"""Finds the addresses of this installation's Argo CD server.

In: a cluster and its control namespace; an address as typed. Out: addresses, or whether two are the same. Never:
connects to a server whose address was typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from argosy.errors import ClusterError, UserError
from argosy.kube.client import ClusterReader
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, load

CONFIG_MAP: Final = GroupKind("", "ConfigMap")
ROUTE: Final = GroupKind("route.openshift.io", "Route")
INGRESS: Final = GroupKind("networking.k8s.io", "Ingress")
SETTINGS: Final = "argocd-cm"
PORTS: Final = {"http": 80, "https": 443}
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Address(NamedTuple):
    host: str
    port: int


def read_address(text: str) -> Address | None:
    """Parse HOST, HOST:PORT or a URL. The default port is 443, as in argocd; None if it is invalid."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        port = parts.port or PORTS.get(parts.scheme, PORTS["https"])
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    return Address("localhost" if host in LOOPBACK else host, port) if host else None


def is_same_address(one: str, other: str) -> bool:
    """True if both are the same host and port, however they are written."""
    address = read_address(one)
    return address is not None and address == read_address(other)


async def list_server_addresses(cluster: ClusterReader, namespace: str) -> list[str]:
    """List the addresses in argocd-cm, and the hosts of Routes and Ingresses in the control namespace."""
    found = list(_configured(await _settings(cluster, namespace)))
    for kind, hosts_of in ((ROUTE, _route_hosts), (INGRESS, _ingress_hosts)):
        for manifest in await _list(cluster, kind, namespace):
            found += hosts_of(manifest)
    return list(dict.fromkeys(found))


async def _settings(cluster: ClusterReader, namespace: str) -> Manifest:
    try:
        return await cluster.get(ResourceKey(*CONFIG_MAP, namespace, SETTINGS)) or {}
    except ClusterError as error:
        if error.code in (403, 404):
            return {}
        raise


async def _list(cluster: ClusterReader, kind: GroupKind, namespace: str) -> Sequence[Manifest]:
    """List objects of a kind; none if the kind is not served, or may not be read."""
    try:
        return (await cluster.list(kind, namespace=namespace)).items
    except ClusterError as error:
        if error.code in (403, 404):
            return ()
        raise


def _configured(settings: Manifest) -> Iterator[str]:
    """argo: `url` is one URL, `additionalUrls` a YAML list."""
    data = settings.get("data") or {}
    if data.get("url"):
        yield str(data["url"])
    try:
        more = load(str(data.get("additionalUrls") or ""), where="additionalUrls")
    except UserError:
        return
    if isinstance(more, list):
        yield from (str(url) for url in more if url)


def _route_hosts(route: Manifest) -> list[str]:
    spec, status = route.get("spec") or {}, route.get("status") or {}
    hosts = [spec.get("host"), *(entry.get("host") for entry in status.get("ingress") or ())]
    return [str(host) for host in hosts if host]


def _ingress_hosts(ingress: Manifest) -> list[str]:
    spec = ingress.get("spec") or {}
    scheme = "https" if spec.get("tls") else "http"
    hosts = [str(rule["host"]) for rule in spec.get("rules") or () if rule.get("host")]
    return [*hosts, *(f"{scheme}://{host}" for host in hosts)]
