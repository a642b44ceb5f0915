"""Runs the built-in transformers and generators that a kustomization configures. In: their configuration.

Out: changed or generated resources. Never: runs a program; only kustomize's built-in kinds are supported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize import charts, transformation_order
from argosy.gitops.render.kustomize.error_lines import Fault
from argosy.gitops.render.kustomize.field_specs import spec_of
from argosy.gitops.render.kustomize.generators import generate
from argosy.gitops.render.kustomize.images import set_image
from argosy.gitops.render.kustomize.kustomization_fields import (
    ARGS,
    FIELD_SPEC,
    IMAGE,
    PATCH,
    REPLACEMENT,
    SELECTOR,
    Shape,
    known_only,
    shaped,
)
from argosy.gitops.render.kustomize.name_hashes import add_hashes
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.transformers import (
    SpecsOf,
    add_affixes,
    set_entries,
    set_namespace,
    set_replicas,
    specs_of,
)

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.build_level import Accumulated, Level

Given = dict[str, Any]
_SHAPE: Final[Shape] = {
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

_CLOUD_ACCOUNT: Final[Shape] = {
    "cloud": str,
    "kubernetesService": {"namespace": str, "name": str},
    "serviceAccount": {"name": str, "projectId": str},
}


def generated(level: Level, plugin: Resource) -> list[Resource]:
    given = plugin.manifest
    if given.get("apiVersion") == "builtin" and given["kind"] == charts.PLUGIN:
        chart = _shaped(plugin, charts.PLUGIN_SHAPE)
        return charts.inflated(level, {"chartHome": "charts", **chart}, plugin.file)
    if given.get("apiVersion") == "builtin" and given["kind"] == "IAMPolicyGenerator":
        return [_cloud_account(_shaped(plugin, _CLOUD_ACCOUNT), plugin)]
    kinds = {"ConfigMapGenerator": "ConfigMap", "SecretGenerator": "Secret"}
    kind = kinds.get(given["kind"])
    if given.get("apiVersion") != "builtin" or kind is None:
        raise _refused(plugin)
    given = _shaped(plugin, {**ARGS, "type": str})
    arguments = {"name": plugin.name, "namespace": plugin.namespace, **given}
    return [generate(kind, arguments, {}, level.read, plugin.file)]


def _cloud_account(given: Given, plugin: Resource) -> Resource:
    if given.get("cloud") != "gke":
        raise plugin.fault(f"cloud is {given.get('cloud') or ''!r}: only gke is supported", "cloud")
    here, there = given.get("kubernetesService") or {}, given.get("serviceAccount") or {}
    account = f"{there.get('name') or ''}@{there.get('projectId') or ''}.iam.gserviceaccount.com"
    metadata = {"annotations": {"iam.gke.io/gcp-service-account": account}, "name": here.get("name") or ""}
    if here.get("namespace"):
        metadata["namespace"] = here["namespace"]
    return Resource({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, plugin.file)


def transform(level: Level, into: Accumulated, plugin: Resource) -> None:
    run = _TRANSFORMERS.get(plugin.manifest["kind"])
    if plugin.manifest.get("apiVersion") != "builtin" or run is None:
        raise _refused(plugin)
    run(level, into, _shaped(plugin, _SHAPE), plugin.file)


def _shaped(plugin: Resource, shape: Shape) -> Given:
    # k8s: unlike a kustomization, these may have unknown fields.
    try:
        found: Given = shaped(known_only(plugin.manifest, shape), shape, plugin.file)
    except Fault as fault:
        fault.about = (plugin.manifest["kind"], plugin.name)
        raise
    return {**found, "metadata": plugin.metadata}


def _refused(plugin: Resource) -> RenderError:
    message = f"{plugin.id} would run a program, which is not allowed: use a built-in transformer or generator"
    if plugin.manifest.get("apiVersion") == "builtin":
        message = f"{plugin.manifest['kind']} is not a built-in kind: correct it, or remove it"
    return plugin.fault(message)


def _specs(given: Given) -> SpecsOf:
    return specs_of(spec_of(each) for each in given.get("fieldSpecs") or ())


def _affixes(level: Level, into: Accumulated, given: Given, where: str) -> None:
    if given.get("fieldSpecs") is None:
        raise RenderError("fieldSpecs are missing: list the fields to change, or set an empty list", where=where)
    add_affixes(into.resources, given.get("prefix") or "", given.get("suffix") or "", _specs(given))


def _namespace(level: Level, into: Accumulated, given: Given, where: str) -> None:
    namespace = given["metadata"].get("namespace") or ""
    if not namespace:
        return  # k8s: only the transformer's own metadata.namespace is used
    subjects = given.get("setRoleBindingSubjects") or "defaultOnly"
    unset_only = bool(given.get("unsetOnly"))
    set_namespace(into.resources, namespace, _specs(given), unset_only=unset_only, subjects=subjects)


def _labels(level: Level, into: Accumulated, given: Given, where: str) -> None:
    set_entries(into.resources, given.get("labels") or {}, _specs(given))


def _annotations(level: Level, into: Accumulated, given: Given, where: str) -> None:
    set_entries(into.resources, given.get("annotations") or {}, _specs(given))


def _image(level: Level, into: Accumulated, given: Given, where: str) -> None:
    set_image(into.resources, given.get("imageTag") or {}, _specs(given), where)


def _replicas(level: Level, into: Accumulated, given: Given, where: str) -> None:
    replica = given.get("replica") or {}
    specs = [spec_of(each) for each in given.get("fieldSpecs") or ()]
    set_replicas(into.resources, replica.get("name") or "", replica.get("count") or 0, specs, where)


def _patch(level: Level, into: Accumulated, given: Given, where: str) -> None:
    transformation_order.any_patch(level, into.resources, given)


def _json_patch(level: Level, into: Accumulated, given: Given, where: str) -> None:
    transformation_order.json_patch(level, into.resources, given, given.get("jsonOp") or "")


def _merge_patches(level: Level, into: Accumulated, given: Given, where: str) -> None:
    for path in given.get("paths") or ():
        transformation_order.merge_patch(level, into.resources, path)
    if given.get("patches"):
        transformation_order.merge_patch(level, into.resources, f"{given['patches']}\n")


def _replacements(level: Level, into: Accumulated, given: Given, where: str) -> None:
    for each in given.get("replacements") or ():
        transformation_order.replaced(level, into.resources, each)


def _hash(level: Level, into: Accumulated, given: Given, where: str) -> None:
    add_hashes(into.resources.listed)
    for resource in into.resources.listed:
        resource.wants_hash = False


def _add_value(level: Level, into: Accumulated, given: Given, where: str) -> None:
    for target in given.get("targets") or ():
        path = target.get("fieldPath") or ""
        for resource in into.resources.select(target.get("selector") or {}, where):
            resource.visit(path, _valued(given.get("value") or ""), str)


def _valued(value: str) -> Callable[[dict[str, Any], str], None]:
    def put(holder: dict[str, Any], name: str) -> None:
        holder[name] = value

    return put


_TRANSFORMERS: dict[str, Callable[[Level, Accumulated, Given, str], None]] = {
    "PrefixTransformer": _affixes,
    "SuffixTransformer": _affixes,
    "PrefixSuffixTransformer": _affixes,
    "NamespaceTransformer": _namespace,
    "LabelTransformer": _labels,
    "AnnotationsTransformer": _annotations,
    "ImageTagTransformer": _image,
    "ReplicaCountTransformer": _replicas,
    "PatchTransformer": _patch,
    "PatchJson6902Transformer": _json_patch,
    "PatchStrategicMergeTransformer": _merge_patches,
    "ReplacementTransformer": _replacements,
    "HashTransformer": _hash,
    "ValueAddTransformer": _add_value,
}
