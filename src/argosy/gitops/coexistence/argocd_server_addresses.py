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
from argosy.kube.objects import Manifest, read_yaml
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, INGRESS, ROUTE

SETTINGS_CONFIG_MAP: Final = "argocd-cm"
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class ServerAddress(NamedTuple):
    host: str
    port: int


def parse_server_address(text: str) -> ServerAddress | None:
    """Parse HOST, HOST:PORT or a URL. The default port is 443, as in argocd; None if it is invalid."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, DEFAULT_PORTS["https"])
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    return ServerAddress("localhost" if host in LOOPBACK_HOSTS else host, port) if host else None


def is_same_address(left: str, right: str) -> bool:
    """True if both are the same host and port, however they are written."""
    address = parse_server_address(left)
    return address is not None and address == parse_server_address(right)


async def list_server_addresses(cluster: ClusterReader, namespace: str) -> list[str]:
    """List the addresses in argocd-cm, and the hosts of Routes and Ingresses in the control namespace."""
    addresses = list(_list_configured_urls(await _fetch_settings(cluster, namespace)))
    for kind, list_hosts in ((ROUTE, _list_route_hosts), (INGRESS, _list_ingress_hosts)):
        for manifest in await _list_objects(cluster, kind, namespace):
            addresses += list_hosts(manifest)
    return list(dict.fromkeys(addresses))


async def _fetch_settings(cluster: ClusterReader, namespace: str) -> Manifest:
    try:
        return await cluster.get(ResourceKey(*CONFIG_MAP, namespace, SETTINGS_CONFIG_MAP)) or {}
    except ClusterError as error:
        if error.code in (403, 404):
            return {}
        raise


async def _list_objects(cluster: ClusterReader, kind: GroupKind, namespace: str) -> Sequence[Manifest]:
    """List objects of a kind; none if the kind is not served, or may not be read."""
    try:
        return (await cluster.list(kind, namespace=namespace)).items
    except ClusterError as error:
        if error.code in (403, 404):
            return ()
        raise


def _list_configured_urls(settings: Manifest) -> Iterator[str]:
    """argo: `url` is one URL, `additionalUrls` a YAML list."""
    data = settings.get("data") or {}
    if data.get("url"):
        yield str(data["url"])
    try:
        additional_urls = read_yaml(str(data.get("additionalUrls") or ""), where="additionalUrls")
    except UserError:
        return
    if isinstance(additional_urls, list):
        yield from (str(url) for url in additional_urls if url)


def _list_route_hosts(route: Manifest) -> list[str]:
    spec, status = route.get("spec") or {}, route.get("status") or {}
    hosts = [spec.get("host"), *(entry.get("host") for entry in status.get("ingress") or ())]
    return [str(host) for host in hosts if host]


def _list_ingress_hosts(ingress: Manifest) -> list[str]:
    spec = ingress.get("spec") or {}
    scheme = "https" if spec.get("tls") else "http"
    hosts = [str(rule["host"]) for rule in spec.get("rules") or () if rule.get("host")]
    return [*hosts, *(f"{scheme}://{host}" for host in hosts)]
