"""Resource tree, hosts and diffs of an Application in Argo CD's JSON format.

In: nodes, pairs, manifests. Out: JSON data. Never: calls a cluster; leaves a value of a Secret in a string.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import orjson

from argosy.gitops.application import Application
from argosy.gitops.application.step_results import AppComparison, Pair
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.diff import mask_pair, mask_secrets
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings, omit_empty
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.well_known_kinds import POD, SERVICE

JSON_NULL: Final = "null"  # argo: the state of an object that does not exist


def node_to_wire(node: ResourceNode, live: Manifest | None = None) -> dict[str, Any]:
    health = node.health
    health_wire = omit_empty(status=health.health.value, message=health.message) if health and health.health else None
    return {
        **omit_empty(group=node.key.group),
        "version": node.version,
        "kind": node.key.kind,
        **omit_empty(namespace=node.key.namespace),
        "name": node.key.name,
        **omit_empty(
            uid=node.uid,
            parentRefs=[_parent_to_wire(parent.key, parent.uid) for parent in node.parents],
            info=[{"name": name, "value": value} for name, value in node.info],
            networkingInfo=build_networking_info(live or {}),
            resourceVersion=node.resource_version,
            images=list(node.images),
            health=health_wire,
            createdAt=node.created,
        ),
    }


def _parent_to_wire(key: ResourceKey, uid: str) -> dict[str, str]:
    return {
        **omit_empty(group=key.group),
        "kind": key.kind,
        **omit_empty(namespace=key.namespace),
        "name": key.name,
        **omit_empty(uid=uid),
    }


def build_networking_info(manifest: Manifest) -> dict[str, Any]:
    """argo: Selector and addresses of a Service; labels of a Pod."""
    if not manifest:
        return {}
    kind = key_of(manifest).group_kind
    if kind == POD:
        return omit_empty(labels=dict(as_mapping(manifest["metadata"].get("labels"))))
    if kind == SERVICE:
        balancer = as_mapping(as_mapping(manifest.get("status")).get("loadBalancer"))
        selector = dict(as_mapping(as_mapping(manifest.get("spec")).get("selector")))
        return omit_empty(
            targetLabels=selector, ingress=[dict(ingress) for ingress in as_mappings(balancer.get("ingress"))]
        )
    return {}


def hosts_to_wire(nodes: Iterable[Manifest], pods: Iterable[Manifest]) -> list[dict[str, Any]]:
    """argo: The Nodes that run Pods of the Application."""
    node_names = {str(as_mapping(pod.get("spec")).get("nodeName") or "") for pod in pods} - {""}
    used_nodes = sorted(
        (node for node in nodes if node["metadata"]["name"] in node_names), key=lambda node: node["metadata"]["name"]
    )
    return [
        {
            "name": node["metadata"]["name"],
            **omit_empty(systemInfo=dict(as_mapping(as_mapping(node.get("status")).get("nodeInfo")))),
            **omit_empty(labels=dict(as_mapping(node["metadata"].get("labels")))),
        }
        for node in used_nodes
    ]


def diffs_to_wire(comparison: AppComparison, masks: Collection[str], matches: Any) -> list[dict[str, Any]]:
    """argo: All pairs, including equal ones, then hooks."""
    pairs = [_pair_to_wire(mask_pair(pair, masks)) for pair in comparison.pairs if matches(pair.key)]
    hooks = [hook for hook in comparison.hooks if hook["metadata"].get("name") and matches(key_of(hook))]
    return [*pairs, *(_hook_to_wire(hook) for hook in mask_secrets(hooks, masks) if hook is not None)]


def _pair_to_wire(pair: Pair) -> dict[str, Any]:
    live, desired = pair.live, pair.desired
    compared = (pair.compared or live) if live is not None else None
    predicted = (pair.predicted or live) if desired is not None else None
    version = as_mapping((live or {}).get("metadata")).get("resourceVersion")
    return {
        **_key_to_wire(pair.key),
        "targetState": manifest_to_json(desired),
        "liveState": _live_to_json(live),
        "normalizedLiveState": manifest_to_json(compared),
        "predictedLiveState": manifest_to_json(predicted or desired),
        **omit_empty(resourceVersion=version, modified=pair.differs),
    }


def _hook_to_wire(manifest: Manifest) -> dict[str, Any]:
    sides = {"targetState": manifest_to_json(manifest), "liveState": JSON_NULL, "normalizedLiveState": JSON_NULL}
    return {**_key_to_wire(key_of(manifest)), **sides, "predictedLiveState": JSON_NULL, "hook": is_hook(manifest)}


def _key_to_wire(key: ResourceKey) -> dict[str, str]:
    return {**omit_empty(group=key.group), "kind": key.kind, **omit_empty(namespace=key.namespace), "name": key.name}


def manifest_to_json(manifest: Manifest | None) -> str:
    """argo: Without managedFields, which are not compared."""
    if manifest is None:
        return JSON_NULL
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        manifest = {
            **manifest,
            "metadata": {name: value for name, value in metadata.items() if name != "managedFields"},
        }
    return _live_to_json(manifest)


def _live_to_json(manifest: Manifest | None) -> str:
    """argo: The live object as it is, with its managedFields."""
    return JSON_NULL if manifest is None else orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS).decode()


def manifests_to_json(manifests: Sequence[Manifest], masks: Collection[str]) -> list[str]:
    return [manifest_to_json(manifest) for manifest in mask_secrets(manifests, masks) if manifest is not None]


def desired_state_to_wire(app: Application, desired_state: DesiredState, masks: Collection[str]) -> dict[str, Any]:
    return {
        "manifests": manifests_to_json(_list_manifests_as_rendered(desired_state), masks),
        "namespace": app.destination.namespace,
        "server": app.destination.with_in_cluster_alias.server,
        "revision": desired_state.revisions[0] if desired_state.revisions else "",
        "sourceType": next(filter(None, desired_state.tools), ""),
    }


def _list_manifests_as_rendered(desired_state: DesiredState) -> list[Manifest]:
    """argo: without the namespaces that the sources do not name."""
    named = {
        (manifest["apiVersion"], manifest["kind"], manifest["metadata"].get("name"), namespace)
        for result in desired_state.rendered
        for manifest in result.manifests
        if (namespace := manifest["metadata"].get("namespace"))
    }
    return [
        manifest
        if (manifest["apiVersion"], manifest["kind"], metadata.get("name"), metadata.get("namespace")) in named
        else {**manifest, "metadata": {name: value for name, value in metadata.items() if name != "namespace"}}
        for manifest in desired_state.manifests
        for metadata in (manifest["metadata"],)
    ]


def get_version_without_group(manifest: Manifest) -> str:
    return split_api_version(manifest["apiVersion"])[1]
