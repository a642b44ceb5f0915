"""Patches of both kinds. In: patch text and its target. Out: changed resources. Never: guesses what a patch is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from argosy.model.errors import ManifestError, PatchError, RenderError
from argosy.model.manifest import Profile, load_all
from argosy.patch import json_patch
from argosy.render.kustomize.faults import Fault, within
from argosy.render.kustomize.gvk import Gvk, gvk_of
from argosy.render.kustomize.merge_keys import Node
from argosy.render.kustomize.merging import Misfit, merge, path_of, without_blanks
from argosy.render.kustomize.resource import Id, Resource, text_of
from argosy.render.kustomize.resources import Resources

SchemaOf = Callable[[Gvk], Node | None]


def apply_patch(resources: Resources, patch: dict[str, Any], text: bytes, schemas: SchemaOf, where: str) -> None:
    """An entry of `patches`."""
    target = patch.get("target")
    _check_json(text, where)
    documents = _documents(text, where)
    if any(type(each) is list for each in documents):
        if len(documents) != 1 or not documents[0]:
            raise Fault("a patch is one list of operations that is not empty: split or fill it", where=where, number=0)
        if not target:
            raise RenderError("a list of operations needs a target: add kind and name of what it is for")
        apply_operations(targets_of(resources, target), documents[0], where)
        return
    options = patch.get("options") or {}
    for number, each in enumerate(documents):
        _check_patch(each, where, number)
    if target is None:
        apply_merges(resources, documents, schemas, where, options)
        return
    if len(documents) > 1:
        raise Fault("several patches share one target: give each an entry of its own", where=where, number=1)
    for resource in targets_of(resources, target):
        merge_into(resource, documents[0], schemas, where, options)
    resources.drop_empty()


def apply_merges(
    resources: Resources, documents: list[Any], schemas: SchemaOf, where: str, options: dict[str, Any] | None = None
) -> None:
    """Strategic patches that name what they are for."""
    for number, patch in enumerate(documents):
        _check_patch(patch, where, number)
        metadata = patch["metadata"]
        gvk = gvk_of(str(patch.get("apiVersion") or ""), patch["kind"])
        wanted = Id(gvk, str(metadata["name"]), str(metadata.get("namespace") or ""))
        try:
            found = resources.one(wanted, where, "the patch fits nothing")
        except RenderError as error:
            raise within(error, "metadata", "name", number=number) from None
        merge_into(found, patch, schemas, where, options or {}, number)
    resources.drop_empty()


def targets_of(resources: Resources, target: dict[str, Any]) -> list[Resource]:
    try:
        return resources.select(target, "")
    except RenderError as error:
        raise within(error, "target") from None


def _check_patch(patch: Any, where: str, number: int) -> None:
    if not isinstance(patch, dict):
        raise Fault("a patch is neither a map nor a list of operations: correct it", where=where, number=number)
    metadata = patch.get("metadata")
    # k8s: a patch needs both even where its target says them.
    if not isinstance(patch.get("kind"), str) or not patch["kind"]:
        message = "the patch has no kind: add it, or make it a list of operations"
        raise Fault(message, where=where, number=number, inside=("kind",))
    if not isinstance(metadata, dict) or not metadata.get("name"):
        message = "the patch has no metadata.name: add it, any name where there is a target"
        raise Fault(message, where=where, number=number, inside=("metadata", "name"))


def merge_into(
    resource: Resource, patch: dict[str, Any], schemas: SchemaOf, where: str, options: dict[str, Any], number: int = 0
) -> None:
    rename, rekind = bool(options.get("allowNameChange")), bool(options.get("allowKindChange"))
    before = resource.id
    if rename or rekind:
        resource.remember()
    given = {key: value for key, value in patch.items() if key != "apiVersion" and (rekind or key != "kind")}
    schema = schemas(resource.gvk)
    without_blanks(resource.manifest, schema, resource.nulls)
    copy = orjson.loads(orjson.dumps(given))
    try:
        resource.manifest = merge(resource.manifest, copy, schema)
    except Misfit as error:
        inside = (*(path_of(copy, error.holder) or ()), error.key)
        raise Fault(f"patch of {before}: {error.message}", where=where, number=number, inside=inside) from None
    if resource.manifest:
        _restore(resource, before, rename)


def _restore(resource: Resource, before: Id, rename: bool) -> None:
    metadata = resource.metadata
    if not rename:
        metadata["name"] = before.name
    if before.namespace:
        metadata["namespace"] = before.namespace
    else:
        metadata.pop("namespace", None)


def apply_operations(targets: list[Resource], operations: Any, where: str) -> None:
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise Fault("operations of a JSON patch must be a list of maps: correct them", where=where, number=0)
    for resource in targets:
        resource.remember()
        try:
            changed = json_patch.apply(resource.manifest, operations, lenient_replace=True)
        except PatchError as error:
            inside = (_failing(resource.manifest, operations),)
            raise Fault(f"patch of {resource.id}: {error.message}", where=where, number=0, inside=inside) from error
        # Copied: operations must not be shared among the targets, nor the file's own data.
        resource.manifest = orjson.loads(orjson.dumps(changed))
        resource.aliases = {}
        resource.nulls = None
        resource.written = {key: text_of(each) for key, each in resource.mapping("annotations").items()}


def _check_json(text: bytes, where: str) -> None:
    """k8s: a patch whose first character is a bracket is read as JSON, not as YAML."""
    if text[:1] == b"[":
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            message = f"a patch that begins with [ must be JSON ({error.msg}): begin each operation with a dash"
            raise RenderError(message, where=where) from None


def _failing(manifest: Any, operations: list[Any]) -> int:
    for place, each in enumerate(operations):
        try:
            manifest = json_patch.apply(manifest, [each], lenient_replace=True)
        except PatchError:
            return place
    return 0


def read_operations(text: bytes, where: str) -> Any:
    _check_json(text, where)
    documents = _documents(text, where)
    return documents[0] if len(documents) == 1 else documents


def read_patches(text: bytes, where: str) -> list[Any]:
    return _documents(text, where)


def _documents(text: bytes, where: str) -> list[Any]:
    try:
        found = [each for each in load_all(text, profile=Profile.KUSTOMIZE, where=where) if each is not None]
    except ManifestError as error:
        raise Fault(error.message, where=error.where, said_at=error.line) from error
    if not found:
        raise Fault("the patch is empty: write what it changes, or remove it", where=where)
    return found
