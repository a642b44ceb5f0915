"""Runs the built-in transformers and generators that a kustomization configures. In: their configuration.

Out: changed or generated resources. Never: runs a program; only kustomize's built-in kinds are supported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize import charts, transformer_pipeline
from argosy.gitops.render.kustomize.error_lines import LocatedError
from argosy.gitops.render.kustomize.field_spec_traversal import read_field_spec
from argosy.gitops.render.kustomize.generators import generate_resource
from argosy.gitops.render.kustomize.images import set_image
from argosy.gitops.render.kustomize.kustomization_schema import (
    FIELD_SPEC,
    GENERATOR_ARGUMENTS,
    IMAGE,
    PATCH,
    REPLACEMENT,
    SELECTOR,
    FieldSchema,
    drop_unknown_fields,
    validate_fields,
)
from argosy.gitops.render.kustomize.name_hashes import add_name_hashes
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.transformers import (
    SelectSpecs,
    add_affixes,
    build_spec_selector,
    set_metadata_entries,
    set_namespace,
    set_replicas,
)

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.kustomization_build_state import AccumulatedResources, KustomizationLevel

PluginFields = dict[str, Any]
_TRANSFORMER_SCHEMA: Final[FieldSchema] = {
    **PATCH,
    "prefix": str,
    "suffix": str,
    "namespace": str,
    "unsetOnly": bool,
    "setRoleBindingSubjects": str,
    "labels": (str,),
    "annotations": (str,),
    "imageTag": IMAGE,
    "replica": {"name": str, "count": int},
    "jsonOp": str,
    "paths": [str],
    "patches": str,
    "replacements": [REPLACEMENT],
    "value": str,
    "targets": [{"selector": SELECTOR, "fieldPath": str}],
    "fieldSpecs": [FIELD_SPEC],
}

_IAM_POLICY_SCHEMA: Final[FieldSchema] = {
    "cloud": str,
    "kubernetesService": {"namespace": str, "name": str},
    "serviceAccount": {"name": str, "projectId": str},
}


def run_generator(level: KustomizationLevel, plugin: KustomizeResource) -> list[KustomizeResource]:
    fields = plugin.manifest
    if fields.get("apiVersion") == "builtin" and fields["kind"] == charts.PLUGIN_KIND:
        chart = _read_plugin_fields(plugin, charts.PLUGIN_SCHEMA)
        return charts.inflate_chart(level, {"chartHome": "charts", **chart}, plugin.file)
    if fields.get("apiVersion") == "builtin" and fields["kind"] == "IAMPolicyGenerator":
        return [_build_service_account(_read_plugin_fields(plugin, _IAM_POLICY_SCHEMA), plugin)]
    kinds = {"ConfigMapGenerator": "ConfigMap", "SecretGenerator": "Secret"}
    kind = kinds.get(fields["kind"])
    if fields.get("apiVersion") != "builtin" or kind is None:
        raise _build_unsupported_error(plugin)
    fields = _read_plugin_fields(plugin, {**GENERATOR_ARGUMENTS, "type": str})
    arguments = {"name": plugin.name, "namespace": plugin.namespace, **fields}
    return [generate_resource(kind, arguments, {}, level.read, plugin.file)]


def _build_service_account(fields: PluginFields, plugin: KustomizeResource) -> KustomizeResource:
    if fields.get("cloud") != "gke":
        raise plugin.build_error(f"cloud is {fields.get('cloud') or ''!r}: only gke is supported", "cloud")
    kubernetes_account, cloud_account = fields.get("kubernetesService") or {}, fields.get("serviceAccount") or {}
    account = f"{cloud_account.get('name') or ''}@{cloud_account.get('projectId') or ''}.iam.gserviceaccount.com"
    metadata = {
        "annotations": {"iam.gke.io/gcp-service-account": account},
        "name": kubernetes_account.get("name") or "",
    }
    if kubernetes_account.get("namespace"):
        metadata["namespace"] = kubernetes_account["namespace"]
    return KustomizeResource({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, plugin.file)


def run_transformer(level: KustomizationLevel, accumulated: AccumulatedResources, plugin: KustomizeResource) -> None:
    transformer = _TRANSFORMERS.get(plugin.manifest["kind"])
    if plugin.manifest.get("apiVersion") != "builtin" or transformer is None:
        raise _build_unsupported_error(plugin)
    transformer(level, accumulated, _read_plugin_fields(plugin, _TRANSFORMER_SCHEMA), plugin.file)


def _read_plugin_fields(plugin: KustomizeResource, schema: FieldSchema) -> PluginFields:
    # k8s: unlike a kustomization, these may have unknown fields.
    try:
        fields: PluginFields = validate_fields(drop_unknown_fields(plugin.manifest, schema), schema, plugin.file)
    except LocatedError as error:
        error.resource = (plugin.manifest["kind"], plugin.name)
        raise
    return {**fields, "metadata": plugin.metadata}


def _build_unsupported_error(plugin: KustomizeResource) -> RenderError:
    message = f"{plugin.id} would run a program, which is not allowed: use a built-in transformer or generator"
    if plugin.manifest.get("apiVersion") == "builtin":
        message = f"{plugin.manifest['kind']} is not a built-in kind: correct it, or remove it"
    return plugin.build_error(message)


def _read_field_specs(fields: PluginFields) -> SelectSpecs:
    return build_spec_selector(read_field_spec(item) for item in fields.get("fieldSpecs") or ())


def _add_affixes(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    if fields.get("fieldSpecs") is None:
        raise RenderError("fieldSpecs are missing: list the fields to change, or set an empty list", where=where)
    add_affixes(
        accumulated.resources, fields.get("prefix") or "", fields.get("suffix") or "", _read_field_specs(fields)
    )


def _set_namespace(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    namespace = fields["metadata"].get("namespace") or ""
    if not namespace:
        return  # k8s: only the transformer's own metadata.namespace is used
    subjects = fields.get("setRoleBindingSubjects") or "defaultOnly"
    unset_only = bool(fields.get("unsetOnly"))
    set_namespace(accumulated.resources, namespace, _read_field_specs(fields), unset_only=unset_only, subjects=subjects)


def _set_labels(level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str) -> None:
    set_metadata_entries(accumulated.resources, fields.get("labels") or {}, _read_field_specs(fields))


def _set_annotations(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    set_metadata_entries(accumulated.resources, fields.get("annotations") or {}, _read_field_specs(fields))


def _set_image(level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str) -> None:
    set_image(accumulated.resources, fields.get("imageTag") or {}, _read_field_specs(fields), where)


def _set_replicas(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    replica = fields.get("replica") or {}
    specs = [read_field_spec(item) for item in fields.get("fieldSpecs") or ()]
    set_replicas(accumulated.resources, replica.get("name") or "", replica.get("count") or 0, specs, where)


def _apply_patch(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    transformer_pipeline.apply_patch_entry(level, accumulated.resources, fields)


def _apply_json_patch(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    transformer_pipeline.apply_json_patch_entry(level, accumulated.resources, fields, fields.get("jsonOp") or "")


def _apply_strategic_merges(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    for path in fields.get("paths") or ():
        transformer_pipeline.apply_strategic_merge_entry(level, accumulated.resources, path)
    if fields.get("patches"):
        transformer_pipeline.apply_strategic_merge_entry(level, accumulated.resources, f"{fields['patches']}\n")


def _apply_replacements(
    level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str
) -> None:
    for replacement in fields.get("replacements") or ():
        transformer_pipeline.apply_replacement(level, accumulated.resources, replacement)


def _add_hashes(level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str) -> None:
    add_name_hashes(accumulated.resources.items)
    for resource in accumulated.resources.items:
        resource.needs_hash = False


def _add_value(level: KustomizationLevel, accumulated: AccumulatedResources, fields: PluginFields, where: str) -> None:
    for target in fields.get("targets") or ():
        path = target.get("fieldPath") or ""
        for resource in accumulated.resources.select(target.get("selector") or {}, where):
            resource.visit_field(path, _build_value_setter(fields.get("value") or ""), str)


def _build_value_setter(value: str) -> Callable[[dict[str, Any], str], None]:
    def set_value(holder: dict[str, Any], name: str) -> None:
        holder[name] = value

    return set_value


_TRANSFORMERS: dict[str, Callable[[KustomizationLevel, AccumulatedResources, PluginFields, str], None]] = {
    "PrefixTransformer": _add_affixes,
    "SuffixTransformer": _add_affixes,
    "PrefixSuffixTransformer": _add_affixes,
    "NamespaceTransformer": _set_namespace,
    "LabelTransformer": _set_labels,
    "AnnotationsTransformer": _set_annotations,
    "ImageTagTransformer": _set_image,
    "ReplicaCountTransformer": _set_replicas,
    "PatchTransformer": _apply_patch,
    "PatchJson6902Transformer": _apply_json_patch,
    "PatchStrategicMergeTransformer": _apply_strategic_merges,
    "ReplacementTransformer": _apply_replacements,
    "HashTransformer": _add_hashes,
    "ValueAddTransformer": _add_value,
}
