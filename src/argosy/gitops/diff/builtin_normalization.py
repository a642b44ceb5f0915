"""Normalizes kinds that can express the same thing in several ways.

In: a manifest of any shape. Out: the same manifest, or a copy. Never: raises; changes other kinds.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import orjson

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import split_api_version

_RBAC_GROUP: Final = "rbac.authorization.k8s.io"


def normalize_builtin(manifest: Manifest, *, ignore_aggregated: bool = False) -> Manifest:
    normalized = _remove_creation_timestamp(manifest)
    group, _ = split_api_version(str(normalized.get("apiVersion") or ""))
    kind = normalized.get("kind")
    if (
        group == _RBAC_GROUP
        and kind == "ClusterRole"
        and ignore_aggregated
        and normalized.get("aggregationRule") is not None
    ):
        return {**normalized, "rules": None}  # argo: a controller writes them
    normalize_kind = _NORMALIZERS.get((group, str(kind)))
    return normalize_kind(normalized) if normalize_kind else normalized


def _remove_creation_timestamp(manifest: Manifest) -> Manifest:
    """argo: exported manifests have a null creationTimestamp."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or "creationTimestamp" not in metadata:
        return manifest
    return manifest | {"metadata": {name: value for name, value in metadata.items() if name != "creationTimestamp"}}


def normalize_secret(manifest: Manifest) -> Manifest:
    """argo: merge stringData into data, encoded, and turn null into an empty value."""
    old_data, string_data = manifest.get("data"), manifest.get("stringData")
    if string_data is None and not isinstance(old_data, dict):
        return manifest
    normalized = {name: value for name, value in manifest.items() if name != "stringData"}
    data = dict(old_data) if isinstance(old_data, dict) else {}
    if isinstance(string_data, dict):
        data |= {name: _encode_value(text) for name, text in string_data.items()}
    if data or old_data is not None:
        normalized["data"] = {name: "" if value is None else value for name, value in data.items()}
    return normalized


def _encode_value(text: Any) -> Any:
    # argo: values that are not strings stay, so that the cluster refuses them
    return base64.b64encode(text.encode(errors="surrogatepass")).decode() if isinstance(text, str) else text


def _normalize_role(manifest: Manifest) -> Manifest:
    return {**manifest, "rules": None} if manifest.get("rules") == [] else manifest


def _normalize_endpoints(manifest: Manifest) -> Manifest:
    """argo: group addresses by ports, sort them, and default the protocol to TCP."""
    subsets = manifest.get("subsets")
    if not isinstance(subsets, list):
        return manifest
    try:
        return {**manifest, "subsets": _repack_subsets(subsets)}
    except (AttributeError, TypeError):
        return manifest


def _repack_subsets(subsets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    addresses_by_port: dict[bytes, dict[bytes, None]] = {}
    for subset in subsets:
        ports = [_to_sorted_json({"protocol": "TCP"} | port) for port in subset.get("ports") or ()] or [b""]
        for port in ports:
            port_addresses = addresses_by_port.setdefault(port, {})
            for name in ("addresses", "notReadyAddresses"):
                port_addresses.update((_to_sorted_json([name, address]), None) for address in subset.get(name) or ())
    ports_by_addresses: dict[tuple[bytes, ...], list[bytes]] = {}
    for port, addresses in addresses_by_port.items():
        ports_by_addresses.setdefault(tuple(sorted(addresses)), []).append(port)
    return [_build_subset(addresses, sorted(ports)) for addresses, ports in sorted(ports_by_addresses.items())]


def _build_subset(addresses: tuple[bytes, ...], ports: list[bytes]) -> dict[str, Any]:
    subset: dict[str, Any] = {}
    for name, address in map(orjson.loads, addresses):
        subset.setdefault(name, []).append(address)
    if decoded_ports := [orjson.loads(port) for port in ports if port]:
        subset["ports"] = decoded_ports
    return subset


def _to_sorted_json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


_NORMALIZERS: Final[dict[tuple[str, str], Callable[[Manifest], Manifest]]] = {
    ("", "Secret"): normalize_secret,
    ("", "Endpoints"): _normalize_endpoints,
    (_RBAC_GROUP, "Role"): _normalize_role,
    (_RBAC_GROUP, "ClusterRole"): _normalize_role,
}
