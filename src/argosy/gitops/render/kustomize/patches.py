"""Applies strategic merge patches and JSON patches. In: a patch and its target. Out: changed resources.

Never: guesses the target of a patch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import orjson

from argosy.errors import ManifestError, PatchError, RenderError
from argosy.gitops.render.kustomize.duplicate_merge_key_removal import remove_duplicate_elements
from argosy.gitops.render.kustomize.error_lines import LocatedError, prepend_path
from argosy.gitops.render.kustomize.explicit_nulls_and_scalar_texts import restore_patch_values
from argosy.gitops.render.kustomize.gvk import Gvk, parse_gvk
from argosy.gitops.render.kustomize.kustomization_file import cut_first_document
from argosy.gitops.render.kustomize.merge_keys import MergeSchema
from argosy.gitops.render.kustomize.resource import KustomizeResource, ResourceId, scalar_to_json_text
from argosy.gitops.render.kustomize.resource_file_parser import reject_yaml_directive
from argosy.gitops.render.kustomize.resource_map import KustomizeResources
from argosy.gitops.render.kustomize.strategic_merge import PatchMismatch, find_path, merge_patch, remove_blank_values
from argosy.kube.objects import YamlDialect, read_json, read_yaml_documents
from argosy.kube.patch import json_patch

FindSchema = Callable[[Gvk], MergeSchema | None]
_MAX_EXACT_FLOAT: Final = 1 << 53
_INEXACT_NUMBER: Final = re.compile(rb"[0-9]{16}|[0-9]\.0[,\]}]")
"""JSON with numbers that floats cannot hold exactly, or with whole numbers written as floats."""


def apply_patch(
    resources: KustomizeResources, patch: dict[str, Any], text: bytes, find_schema: FindSchema, where: str
) -> None:
    """Apply an entry of `patches`."""
    target = patch.get("target")
    if not text and target:
        return  # k8s: an empty file changes nothing; a file with content but without a patch is an error
    # k8s: in a patch with a target, labels and annotations are strings, including nulls.
    documents = _read_strategic_patches(text, where, as_texts=target is not None)
    if documents is None:
        operations = read_json_patch(text, where)
        if not target:
            raise RenderError("a JSON patch needs a target: add kind and name of the resource")
        apply_json_patch(select_targets(resources, target), operations, where)
        return
    if text[:3] == b"---" and load_first_document(text, where) is None:
        message = "the first document is empty, so the patch is ambiguous: remove a `---`"
        raise LocatedError(message, where=where, text_line=1)
    options = patch.get("options") or {}
    for number, document in enumerate(documents):
        _check_patch(document, where, number)
    if target is None:
        apply_strategic_merges(resources, documents, find_schema, where, options)
        return
    if len(documents) > 1:
        raise LocatedError("several patches share one target: give each its own entry", where=where, document_index=1)
    for resource in select_targets(resources, target):
        merge_patch_into(resource, documents[0], find_schema, where, options)
    resources.drop_empty()
    if options and len(resources.index_by_id()) < len(resources.items):
        raise LocatedError(
            "the patch gives two resources the same name: narrow its target", where=where, document_index=0
        )


def apply_strategic_merges(
    resources: KustomizeResources,
    documents: list[Any],
    find_schema: FindSchema,
    where: str,
    options: dict[str, Any] | None = None,
) -> None:
    """Apply strategic merge patches that name their own target."""
    for number, patch in enumerate(documents):
        _check_patch(patch, where, number)
        metadata = patch["metadata"]
        gvk = parse_gvk(str(patch.get("apiVersion") or ""), patch["kind"])
        target_id = ResourceId(gvk, str(metadata["name"]), str(metadata.get("namespace") or ""))
        try:
            resource = resources.get_single(target_id, where, "the patch matches no resource")
        except RenderError as error:
            raise prepend_path(error, "metadata", "name", document_index=number) from None
        merge_patch_into(resource, patch, find_schema, where, options or {}, number)
    resources.drop_empty()


def select_targets(resources: KustomizeResources, target: dict[str, Any]) -> list[KustomizeResource]:
    try:
        return resources.select(target, "")
    except RenderError as error:
        raise prepend_path(error, "target") from None


def _check_patch(patch: Any, where: str, number: int) -> None:
    if not isinstance(patch, dict):
        raise LocatedError(
            "a patch must be a mapping or a list of operations: correct it", where=where, document_index=number
        )
    metadata = patch.get("metadata")
    # k8s: a patch needs both, even if its target has them.
    if not isinstance(patch.get("kind"), str) or not patch["kind"]:
        message = "the patch has no kind: add it, or use a JSON patch"
        raise LocatedError(message, where=where, document_index=number, path=("kind",))
    if not isinstance(metadata, dict) or not metadata.get("name"):
        message = "the patch has no metadata.name: add it; with a target, any name will do"
        raise LocatedError(message, where=where, document_index=number, path=("metadata", "name"))


def merge_patch_into(
    resource: KustomizeResource,
    patch: dict[str, Any],
    find_schema: FindSchema,
    where: str,
    options: dict[str, Any],
    number: int = 0,
) -> None:
    allow_rename, allow_kind_change = bool(options.get("allowNameChange")), bool(options.get("allowKindChange"))
    old_id = resource.id
    if allow_rename or allow_kind_change:
        resource.save_current_id()
    patch_fields = {
        key: value for key, value in patch.items() if key != "apiVersion" and (allow_kind_change or key != "kind")
    }
    schema = find_schema(resource.gvk)
    remove_blank_values(resource.manifest, schema, resource.nulls)
    patch_copy = orjson.loads(orjson.dumps(patch_fields))
    remove_duplicate_elements(resource.manifest, patch_copy, schema)
    shared_entries = resource.list_shared_entries()
    try:
        resource.manifest = merge_patch(resource.manifest, patch_copy, schema)
    except PatchMismatch as error:
        inside = (*(find_path(patch_copy, error.holder) or ()), error.key)
        raise LocatedError(
            f"patch of {old_id}: {error.message}", where=where, document_index=number, path=inside
        ) from None
    resource.propagate_shared_entries(shared_entries)
    if resource.manifest:
        _restore_identity(resource, old_id, allow_rename)


def _restore_identity(resource: KustomizeResource, old_id: ResourceId, allow_rename: bool) -> None:
    metadata = resource.metadata
    if not allow_rename:
        metadata["name"] = old_id.name
    if old_id.namespace:
        metadata["namespace"] = old_id.namespace
    else:
        metadata.pop("namespace", None)


def apply_json_patch(targets: list[KustomizeResource], operations: Any, where: str) -> None:
    if not isinstance(operations, list) or not all(isinstance(item, dict) for item in operations):
        raise LocatedError("a JSON patch must be a list of mappings: correct it", where=where, document_index=0)
    for resource in targets:
        resource.save_current_id()
        try:
            changed = json_patch.apply(resource.manifest, operations, lenient_replace=True)
        except PatchError as error:
            inside = (_find_failing_operation(resource.manifest, operations),)
            raise LocatedError(
                f"patch of {resource.id}: {error.message}", where=where, document_index=0, path=inside
            ) from error
        # Copy: the targets must not share data with the operations or with each other.
        data = orjson.dumps(changed)
        resource.manifest = orjson.loads(data)
        if _INEXACT_NUMBER.search(data):
            resource.manifest = _round_trip_floats(resource.manifest)
        _check_identity(resource, where)
        resource.aliases = {}
        resource.nulls = None
        annotation_items = resource.get_metadata_map("annotations").items()
        resource.written_annotations = {
            key: "" if type(item) in (dict, list) else scalar_to_json_text(item) for key, item in annotation_items
        }


def _round_trip_floats(value: Any) -> Any:
    """k8s: a patched resource is converted through JSON in which all numbers are floats."""
    if type(value) is dict:
        return {key: _round_trip_floats(item) for key, item in value.items()}
    if type(value) is list:
        return [_round_trip_floats(item) for item in value]
    if type(value) is float and value.is_integer() and abs(value) < _MAX_EXACT_FLOAT:
        return int(value)
    if type(value) is int and abs(value) > _MAX_EXACT_FLOAT:
        rounded = int(Decimal(repr(float(value))))
        return rounded if -(1 << 63) <= rounded < 1 << 64 else float(rounded)
    return value


def _check_identity(resource: KustomizeResource, where: str) -> None:
    manifest = resource.manifest
    name = resource.metadata.get("name") if isinstance(manifest, dict) else None
    if not name or isinstance(name, dict | list) or not manifest.get("kind"):
        old_id = resource.history[-1]
        raise LocatedError(
            f"patch of {old_id}: it removes kind or metadata.name: keep both", where=where, document_index=0
        )


def _read_strategic_patches(text: bytes, where: str, *, as_texts: bool = False) -> list[Any] | None:
    """Return the strategic merge patches of a text; None if it contains a list, which must be a JSON patch."""
    if text[:1] == b"[":
        return None
    try:
        documents = _load_documents(text, where, as_texts=as_texts)
    except RenderError:
        # k8s: text that kustomize's own reader rejects may be a JSON patch, whose reader accepts more.
        if text.lstrip()[:1] == b"-":
            return None
        raise
    return None if any(type(document) is list for document in documents) else documents


def _find_failing_operation(manifest: Any, operations: list[Any]) -> int:
    for i, operation in enumerate(operations):
        try:
            manifest = json_patch.apply(manifest, [operation], lenient_replace=True)
        except PatchError:
            return i
    return 0


def read_json_patch(text: bytes, where: str) -> list[Any]:
    """k8s: JSON if it starts with a bracket, else one document that is parsed like Kubernetes YAML."""
    try:
        operations: Any = read_json(text, where=where).value if text[:1] == b"[" else load_first_document(text, where)
    except ManifestError as error:
        hint = " (a patch that starts with [ must be JSON)" if text[:1] == b"[" else ""
        raise LocatedError(f"{error.message}{hint}", where=error.where, text_line=error.line) from error
    if not operations:
        message = "the JSON patch is empty: add operations, or remove it"
        raise LocatedError(message, where=where, document_index=0)
    return operations  # type: ignore[no-any-return]


def load_first_document(text: bytes, where: str) -> Any:
    return next(iter(read_yaml_documents(cut_first_document(text), where=where)), None)


def read_patch_documents(text: bytes, where: str) -> list[Any]:
    """Return the documents of a patch of either kind; a JSON patch is one document."""
    documents = _read_strategic_patches(text, where)
    return [read_json_patch(text, where)] if documents is None else documents


def read_strategic_patches(text: bytes, where: str, *, as_texts: bool = False) -> list[Any]:
    return _load_documents(text, where, as_texts=as_texts)


def _load_documents(text: bytes, where: str, *, as_texts: bool = False) -> list[Any]:
    reject_yaml_directive(text, where)
    try:
        documents = read_yaml_documents(text, dialect=YamlDialect.KUSTOMIZE, where=where)
    except ManifestError as error:
        raise LocatedError(error.message, where=error.where, text_line=error.line) from error
    restore_patch_values(documents, text, as_texts=as_texts)
    patches = [document for document in documents if document is not None]
    if not patches:
        raise LocatedError("the patch is empty: add changes, or remove it", where=where)
    return patches
