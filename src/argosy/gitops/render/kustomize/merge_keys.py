"""Merge keys of lists for strategic merge patches, from Kubernetes 1.21. In: a kind. Out: a MergeSchema.

Never: newer schemas.

k8s: kustomize still uses this schema; lists of other kinds are replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.gitops.render.kustomize.gvk import Gvk


class Node:
    """The schema of a field: its subfields, and for a list the merge keys of its elements."""

    __slots__ = ("_fields", "is_set", "keys")

    def __init__(
        self, fields: Mapping[str, Node] | None = None, keys: tuple[str, ...] = (), is_set: bool = False
    ) -> None:
        self._fields = fields or {}
        self.keys = keys
        self.is_set = is_set

    def field(self, name: str) -> Node | None:
        return self._fields.get(name)


def _list(keys: str, fields: Mapping[str, Node] | None = None) -> Node:
    return Node(fields, tuple(keys.split()))


_SET: Final = Node(is_set=True)
_META: Final = Node({"ownerReferences": _list("uid"), "finalizers": _SET})
_CONTAINER: Final = {
    "env": _list("name"),
    "ports": _list("containerPort protocol"),
    "volumeMounts": _list("mountPath"),
    "volumeDevices": _list("devicePath"),
}
_POD: Final = Node(
    {
        **{name: _list("name", _CONTAINER) for name in ("containers", "initContainers", "ephemeralContainers")},
        "volumes": _list("name"),
        "imagePullSecrets": _list("name"),
        "hostAliases": _list("ip"),
        "topologySpreadConstraints": _list("topologyKey whenUnsatisfiable"),
    }
)
_TEMPLATE: Final = Node({"metadata": _META, "spec": _POD})
_STATUS: Final = Node({"conditions": _list("type"), "addresses": _list("type"), "podIPs": _list("ip")})


def _kind(**fields: Node) -> Node:
    return Node({"metadata": _META, "status": _STATUS, **fields})


_PLAIN: Final = _kind()
_WORKLOAD: Final = _kind(spec=Node({"template": _TEMPLATE}))
_CRON: Final = _kind(spec=Node({"jobTemplate": Node({"metadata": _META, "spec": Node({"template": _TEMPLATE})})}))
_WEBHOOKS: Final = _kind(webhooks=_list("name"))
_KINDS: Final[dict[tuple[str, str, str], Node]] = {
    ("", "v1", "Pod"): _kind(spec=_POD),
    ("", "v1", "PodTemplate"): _kind(template=_TEMPLATE),
    ("", "v1", "ReplicationController"): _WORKLOAD,
    **{("apps", "v1", kind): _WORKLOAD for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")},
    ("batch", "v1", "Job"): _WORKLOAD,
    ("batch", "v1", "CronJob"): _CRON,
    ("batch", "v1beta1", "CronJob"): _CRON,
    ("", "v1", "Service"): _kind(spec=Node({"ports": _list("port protocol")})),
    ("", "v1", "ServiceAccount"): _kind(secrets=_list("name")),
    ("", "v1", "Node"): _kind(spec=Node({"podCIDRs": _SET})),
    **{("storage.k8s.io", version, "CSINode"): _kind(spec=Node({"drivers": _list("name")}))
       for version in ("v1", "v1beta1")},
    **{("admissionregistration.k8s.io", version, kind): _WEBHOOKS
       for version in ("v1", "v1beta1")
       for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")},
    **{("", "v1", kind): _PLAIN for kind in
       ("Namespace", "PersistentVolume", "PersistentVolumeClaim", "ConfigMap", "Secret", "Endpoints", "LimitRange",
        "ResourceQuota", "Event", "Binding")},
    **{("rbac.authorization.k8s.io", "v1", kind): _PLAIN for kind in
       ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")},
    ("networking.k8s.io", "v1", "Ingress"): _PLAIN,
    ("networking.k8s.io", "v1", "NetworkPolicy"): _PLAIN,
    ("policy", "v1", "PodDisruptionBudget"): _PLAIN,
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): _PLAIN,
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): _PLAIN,
    ("storage.k8s.io", "v1", "StorageClass"): _PLAIN,
}  # fmt: skip


def builtin_node(gvk: Gvk) -> Node | None:
    return _KINDS.get((gvk.group, gvk.version, gvk.kind))


class Definitions:
    """Schemas of a kustomization's own OpenAPI document; they replace the built-in schemas."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.definitions: dict[str, Any] = dict(document.get("definitions") or {})
        self._kinds: dict[tuple[str, str, str], str] = {}
        for name, schema in self.definitions.items():
            for each in (schema or {}).get("x-kubernetes-group-version-kind") or ():
                self._kinds[each.get("group", ""), each.get("version", ""), each.get("kind", "")] = name

    def node(self, gvk: Gvk) -> Node | None:
        name = self._kinds.get((gvk.group, gvk.version, gvk.kind))
        return _OpenApiNode(self, self.definitions[name]) if name else None

    def resolved(self, schema: Any) -> dict[str, Any]:
        for _ in range(20):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str):
                break
            schema = {**(self.definitions.get(reference.rpartition("/")[2]) or {}), **_marks(schema)}
        return schema if isinstance(schema, dict) else {}


def _marks(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name.startswith("x-kubernetes-patch")}


class _OpenApiNode(Node):
    __slots__ = ("_definitions", "_schema")

    def __init__(self, definitions: Definitions, schema: Any) -> None:
        schema = definitions.resolved(schema)
        merges = "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
        key = schema.get("x-kubernetes-patch-merge-key")
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) or ((key,) if key else ())
        super().__init__(keys=keys if merges else (), is_set=merges and not keys)
        self._definitions = definitions
        self._schema = definitions.resolved(schema["items"]) if "items" in schema else schema

    def field(self, name: str) -> Node | None:
        found = (self._schema.get("properties") or {}).get(name)
        if found is None and isinstance(self._schema.get("additionalProperties"), dict):
            found = self._schema["additionalProperties"]
        return _OpenApiNode(self._definitions, found) if found is not None else None
