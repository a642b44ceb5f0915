"""Resource tree, hosts and diffs of an Application in Argo CD's JSON format.

In: nodes, pairs, manifests. Out: JSON data. Never: calls a cluster; leaves a value of a Secret in a string.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import orjson

from argosy.gitops.application.hooks import is_hook
from argosy.gitops.application.step_results import Comparison, Pair
from argosy.gitops.diff import masked, masked_pair
from argosy.gitops.live.resource_tree import POD, Node
from argosy.gitops.status.wire_format import given, mapping, mappings
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of

SERVICE: Final = GroupKind("", "Service")
NULL: Final = "null"  # argo: the state of an object that does not exist


def node_wire(node: Node, live: Manifest | None = None) -> dict[str, Any]:
    health = node.health
    fares = given(status=health.health.value, message=health.message) if health and health.health else None
    return {
        **given(group=node.key.group),
        "version": node.version,
        "kind": node.key.kind,
        **given(namespace=node.key.namespace),
        "name": node.key.name,
        **given(
            uid=node.uid,
            parentRefs=[_parent(each.key, each.uid) for each in node.parents],
            info=[{"name": name, "value": value} for name, value in node.info],
            networkingInfo=networking(live or {}),
            resourceVersion=node.resource_version,
            images=list(node.images),
            health=fares,
            createdAt=node.created,
        ),
    }


def _parent(key: ResourceKey, uid: str) -> dict[str, str]:
    return {
        **given(group=key.group),
        "kind": key.kind,
        **given(namespace=key.namespace),
        "name": key.name,
        **given(uid=uid),
    }


def networking(manifest: Manifest) -> dict[str, Any]:
    """argo: Selector and addresses of a Service; labels of a Pod."""
    if not manifest:
        return {}
    kind = key_of(manifest).group_kind
    if kind == POD:
        return given(labels=dict(mapping(manifest["metadata"].get("labels"))))
    if kind == SERVICE:
        balancer = mapping(mapping(manifest.get("status")).get("loadBalancer"))
        selector = dict(mapping(mapping(manifest.get("spec")).get("selector")))
        return given(targetLabels=selector, ingress=[dict(each) for each in mappings(balancer.get("ingress"))])
    return {}


def hosts_wire(nodes: Iterable[Manifest], pods: Iterable[Manifest]) -> list[dict[str, Any]]:
    """argo: The Nodes that run Pods of the Application."""
    wanted = {str(mapping(pod.get("spec")).get("nodeName") or "") for pod in pods} - {""}
    found = sorted(
        (each for each in nodes if each["metadata"]["name"] in wanted), key=lambda each: each["metadata"]["name"]
    )
    return [
        {
            "name": each["metadata"]["name"],
            **given(systemInfo=dict(mapping(mapping(each.get("status")).get("nodeInfo")))),
            **given(labels=dict(mapping(each["metadata"].get("labels")))),
        }
        for each in found
    ]


def diffs_wire(comparison: Comparison, masks: Collection[str], fits: Any) -> list[dict[str, Any]]:
    """argo: All pairs, including equal ones, then hooks."""
    pairs = [_diff(masked_pair(pair, masks)) for pair in comparison.pairs if fits(pair.key)]
    hooks = [each for each in comparison.hooks if each["metadata"].get("name") and fits(key_of(each))]
    return [*pairs, *(_hook(each) for each in masked(hooks, masks) if each is not None)]


def _diff(pair: Pair) -> dict[str, Any]:
    live, desired = pair.live, pair.desired
    compared = (pair.compared or live) if live is not None else None
    predicted = (pair.predicted or live) if desired is not None else None
    version = mapping((live or {}).get("metadata")).get("resourceVersion")
    return {
        **_key(pair.key),
        "targetState": text_of(desired),
        "liveState": text_of(live),
        "normalizedLiveState": text_of(compared),
        "predictedLiveState": text_of(predicted or desired),
        **given(resourceVersion=version, modified=pair.differs),
    }


def _hook(manifest: Manifest) -> dict[str, Any]:
    sides = {"targetState": text_of(manifest), "liveState": NULL, "normalizedLiveState": NULL}
    return {**_key(key_of(manifest)), **sides, "predictedLiveState": NULL, "hook": is_hook(manifest)}


def _key(key: ResourceKey) -> dict[str, str]:
    return {**given(group=key.group), "kind": key.kind, **given(namespace=key.namespace), "name": key.name}


def text_of(manifest: Manifest | None) -> str:
    """argo: Without managedFields, which are not compared."""
    if manifest is None:
        return NULL
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        manifest = {**manifest, "metadata": {name: each for name, each in metadata.items() if name != "managedFields"}}
    return orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS).decode()


def manifest_texts(found: Sequence[Manifest], masks: Collection[str]) -> list[str]:
    return [text_of(each) for each in masked(found, masks) if each is not None]


def version_of(manifest: Manifest) -> str:
    return split_api_version(manifest["apiVersion"])[1]
