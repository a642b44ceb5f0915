"""Normalizes kinds that can express the same thing in several ways.

In: a manifest of any shape. Out: the same manifest, or a copy. Never: raises; changes other kinds.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import orjson

from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest

_RBAC: Final = "rbac.authorization.k8s.io"


def settled(manifest: Manifest, *, ignore_aggregated: bool = False) -> Manifest:
    made = _without_creation(manifest)
    group, _ = split_api_version(str(made.get("apiVersion") or ""))
    kind = made.get("kind")
    if group == _RBAC and kind == "ClusterRole" and ignore_aggregated and made.get("aggregationRule") is not None:
        return {**made, "rules": None}  # argo: a controller writes them
    settle = _BY_KIND.get((group, str(kind)))
    return settle(made) if settle else made


def _without_creation(manifest: Manifest) -> Manifest:
    """argo: exported manifests have a null creationTimestamp."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or "creationTimestamp" not in metadata:
        return manifest
    return manifest | {"metadata": {name: value for name, value in metadata.items() if name != "creationTimestamp"}}


def secret(manifest: Manifest) -> Manifest:
    """argo: merge stringData into data, encoded, and turn null into an empty value."""
    given, plain = manifest.get("data"), manifest.get("stringData")
    if plain is None and not isinstance(given, dict):
        return manifest
    made = {name: value for name, value in manifest.items() if name != "stringData"}
    data = dict(given) if isinstance(given, dict) else {}
    if isinstance(plain, dict):
        data |= {name: _encoded(text) for name, text in plain.items()}
    if data or given is not None:
        made["data"] = {name: "" if value is None else value for name, value in data.items()}
    return made


def _encoded(text: Any) -> Any:
    # argo: values that are not strings stay, so that the cluster refuses them
    return base64.b64encode(text.encode(errors="surrogatepass")).decode() if isinstance(text, str) else text


def _role(manifest: Manifest) -> Manifest:
    return {**manifest, "rules": None} if manifest.get("rules") == [] else manifest


def _endpoints(manifest: Manifest) -> Manifest:
    """argo: group addresses by ports, sort them, and default the protocol to TCP."""
    subsets = manifest.get("subsets")
    if not isinstance(subsets, list):
        return manifest
    try:
        return {**manifest, "subsets": _repacked(subsets)}
    except (AttributeError, TypeError):
        return manifest


def _repacked(subsets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    of_port: dict[bytes, dict[bytes, None]] = {}
    for subset in subsets:
        ports = [_text({"protocol": "TCP"} | port) for port in subset.get("ports") or ()] or [b""]
        for port in ports:
            found = of_port.setdefault(port, {})
            for name in ("addresses", "notReadyAddresses"):
                found.update((_text([name, address]), None) for address in subset.get(name) or ())
    ports_of: dict[tuple[bytes, ...], list[bytes]] = {}
    for port, addresses in of_port.items():
        ports_of.setdefault(tuple(sorted(addresses)), []).append(port)
    return [_subset(addresses, sorted(ports)) for addresses, ports in sorted(ports_of.items())]


def _subset(addresses: tuple[bytes, ...], ports: list[bytes]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, address in map(orjson.loads, addresses):
        made.setdefault(name, []).append(address)
    if found := [orjson.loads(port) for port in ports if port]:
        made["ports"] = found
    return made


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


_BY_KIND: Final[dict[tuple[str, str], Callable[[Manifest], Manifest]]] = {
    ("", "Secret"): secret,
    ("", "Endpoints"): _endpoints,
    (_RBAC, "Role"): _role,
    (_RBAC, "ClusterRole"): _role,
}
