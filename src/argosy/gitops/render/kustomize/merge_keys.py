"""Merge keys of lists for strategic merge patches, from Kubernetes 1.21. In: a kind. Out: a MergeSchema.

Never: newer schemas.

k8s: kustomize still uses this schema; lists of other kinds are replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.gitops.render.kustomize.gvk import Gvk


class MergeSchema:
    """The schema of a field: its subfields, and for a list the merge keys of its elements."""

    __slots__ = ("_fields", "is_set", "merge_keys")

    def __init__(
        self, fields: Mapping[str, MergeSchema] | None = None, merge_keys: tuple[str, ...] = (), is_set: bool = False
    ) -> None:
        self._fields = fields or {}
        self.merge_keys = merge_keys
        self.is_set = is_set

    def get_field(self, name: str) -> MergeSchema | None:
        return self._fields.get(name)


def _build_list_schema(keys: str, fields: Mapping[str, MergeSchema] | None = None) -> MergeSchema:
    return MergeSchema(fields, tuple(keys.split()))


_SET_SCHEMA: Final = MergeSchema(is_set=True)
_METADATA_SCHEMA: Final = MergeSchema({"ownerReferences": _build_list_schema("uid"), "finalizers": _SET_SCHEMA})
_CONTAINER_FIELDS: Final = {
    "env": _build_list_schema("name"),
    "ports": _build_list_schema("containerPort protocol"),
    "volumeMounts": _build_list_schema("mountPath"),
    "volumeDevices": _build_list_schema("devicePath"),
}
_POD_SPEC_SCHEMA: Final = MergeSchema(
    {
        **{
            name: _build_list_schema("name", _CONTAINER_FIELDS)
            for name in ("containers", "initContainers", "ephemeralContainers")
        },
        "volumes": _build_list_schema("name"),
        "imagePullSecrets": _build_list_schema("name"),
        "hostAliases": _build_list_schema("ip"),
        "topologySpreadConstraints": _build_list_schema("topologyKey whenUnsatisfiable"),
    }
)
_POD_TEMPLATE_SCHEMA: Final = MergeSchema({"metadata": _METADATA_SCHEMA, "spec": _POD_SPEC_SCHEMA})
_STATUS_SCHEMA: Final = MergeSchema(
    {
        "conditions": _build_list_schema("type"),
        "addresses": _build_list_schema("type"),
        "podIPs": _build_list_schema("ip"),
    }
)


def _build_kind_schema(**fields: MergeSchema) -> MergeSchema:
    return MergeSchema({"metadata": _METADATA_SCHEMA, "status": _STATUS_SCHEMA, **fields})


_PLAIN_SCHEMA: Final = _build_kind_schema()
_WORKLOAD_SCHEMA: Final = _build_kind_schema(spec=MergeSchema({"template": _POD_TEMPLATE_SCHEMA}))
_CRON_JOB_SCHEMA: Final = _build_kind_schema(
    spec=MergeSchema(
        {
            "jobTemplate": MergeSchema(
                {"metadata": _METADATA_SCHEMA, "spec": MergeSchema({"template": _POD_TEMPLATE_SCHEMA})}
            )
        }
    )
)
_WEBHOOKS_SCHEMA: Final = _build_kind_schema(webhooks=_build_list_schema("name"))
_SCHEMA_BY_KIND: Final[dict[tuple[str, str, str], MergeSchema]] = {
    ("", "v1", "Pod"): _build_kind_schema(spec=_POD_SPEC_SCHEMA),
    ("", "v1", "PodTemplate"): _build_kind_schema(template=_POD_TEMPLATE_SCHEMA),
    ("", "v1", "ReplicationController"): _WORKLOAD_SCHEMA,
    **{("apps", "v1", kind): _WORKLOAD_SCHEMA for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")},
    ("batch", "v1", "Job"): _WORKLOAD_SCHEMA,
    ("batch", "v1", "CronJob"): _CRON_JOB_SCHEMA,
    ("batch", "v1beta1", "CronJob"): _CRON_JOB_SCHEMA,
    ("", "v1", "Service"): _build_kind_schema(spec=MergeSchema({"ports": _build_list_schema("port protocol")})),
    ("", "v1", "ServiceAccount"): _build_kind_schema(secrets=_build_list_schema("name")),
    ("", "v1", "Node"): _build_kind_schema(spec=MergeSchema({"podCIDRs": _SET_SCHEMA})),
    **{
        ("storage.k8s.io", version, "CSINode"): _build_kind_schema(
            spec=MergeSchema({"drivers": _build_list_schema("name")})
        )
        for version in ("v1", "v1beta1")
    },
    **{
        ("admissionregistration.k8s.io", version, kind): _WEBHOOKS_SCHEMA
        for version in ("v1", "v1beta1")
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    },
    **{
        ("", "v1", kind): _PLAIN_SCHEMA
        for kind in (
            "Namespace",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ConfigMap",
            "Secret",
            "Endpoints",
            "LimitRange",
            "ResourceQuota",
            "Event",
            "Binding",
        )
    },
    **{
        ("rbac.authorization.k8s.io", "v1", kind): _PLAIN_SCHEMA
        for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    },
    ("networking.k8s.io", "v1", "Ingress"): _PLAIN_SCHEMA,
    ("networking.k8s.io", "v1", "NetworkPolicy"): _PLAIN_SCHEMA,
    ("policy", "v1", "PodDisruptionBudget"): _PLAIN_SCHEMA,
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): _PLAIN_SCHEMA,
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): _PLAIN_SCHEMA,
    ("storage.k8s.io", "v1", "StorageClass"): _PLAIN_SCHEMA,
}


def find_builtin_schema(gvk: Gvk) -> MergeSchema | None:
    return _SCHEMA_BY_KIND.get((gvk.group, gvk.version, gvk.kind))


class OpenApiSchemas:
    """Schemas of a kustomization's own OpenAPI document; they replace the built-in schemas."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.definitions: dict[str, Any] = dict(document.get("definitions") or {})
        self._definition_by_kind: dict[tuple[str, str, str], str] = {}
        for name, schema in self.definitions.items():
            for gvk_fields in (schema or {}).get("x-kubernetes-group-version-kind") or ():
                self._definition_by_kind[
                    gvk_fields.get("group", ""), gvk_fields.get("version", ""), gvk_fields.get("kind", "")
                ] = name

    def find_schema(self, gvk: Gvk) -> MergeSchema | None:
        name = self._definition_by_kind.get((gvk.group, gvk.version, gvk.kind))
        return _OpenApiMergeSchema(self, self.definitions[name]) if name else None

    def resolve_references(self, schema: Any) -> dict[str, Any]:
        for _ in range(20):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str):
                break
            schema = {**(self.definitions.get(reference.rpartition("/")[2]) or {}), **_select_patch_extensions(schema)}
        return schema if isinstance(schema, dict) else {}


def _select_patch_extensions(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name.startswith("x-kubernetes-patch")}


class _OpenApiMergeSchema(MergeSchema):
    __slots__ = ("_definitions", "_schema")

    def __init__(self, definitions: OpenApiSchemas, schema: Any) -> None:
        schema = definitions.resolve_references(schema)
        merges = "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
        key = schema.get("x-kubernetes-patch-merge-key")
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) or ((key,) if key else ())
        super().__init__(merge_keys=keys if merges else (), is_set=merges and not keys)
        self._definitions = definitions
        self._schema = definitions.resolve_references(schema["items"]) if "items" in schema else schema

    def get_field(self, name: str) -> MergeSchema | None:
        field_schema = (self._schema.get("properties") or {}).get(name)
        if field_schema is None and isinstance(self._schema.get("additionalProperties"), dict):
            field_schema = self._schema["additionalProperties"]
        return _OpenApiMergeSchema(self._definitions, field_schema) if field_schema is not None else None
