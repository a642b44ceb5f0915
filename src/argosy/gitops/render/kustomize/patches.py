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
from argosy.gitops.render.kustomize.documents import refuse_directive
from argosy.gitops.render.kustomize.duplicate_elements import without_doubles
from argosy.gitops.render.kustomize.error_lines import Fault, within
from argosy.gitops.render.kustomize.gvk import Gvk, gvk_of
from argosy.gitops.render.kustomize.kustomization_file import first_document
from argosy.gitops.render.kustomize.merge_keys import Node
from argosy.gitops.render.kustomize.resource import Id, Resource, text_of
from argosy.gitops.render.kustomize.resources import Resources
from argosy.gitops.render.kustomize.strategic_merge import Misfit, merge, path_of, without_blanks
from argosy.gitops.render.kustomize.yaml_marks import settle
from argosy.kube.objects import Profile, load_all, load_json
from argosy.kube.patch import json_patch

SchemaOf = Callable[[Gvk], Node | None]
_EXACT: Final = 1 << 53
_INEXACT: Final = re.compile(rb"[0-9]{16}|[0-9]\.0[,\]}]")
"""JSON with numbers that floats cannot hold exactly, or with whole numbers written as floats."""


def apply_patch(resources: Resources, patch: dict[str, Any], text: bytes, schemas: SchemaOf, where: str) -> None:
    """Apply an entry of `patches`."""
    target = patch.get("target")
    if not text and target:
        return  # k8s: an empty file changes nothing; a file with content but without a patch is an error
    # k8s: in a patch with a target, labels and annotations are strings, including nulls.
    documents = _strategic(text, where, as_texts=target is not None)
    if documents is None:
        operations = read_operations(text, where)
        if not target:
            raise RenderError("a JSON patch needs a target: add kind and name of the resource")
        apply_operations(targets_of(resources, target), operations, where)
        return
    if text[:3] == b"---" and load_first(text, where) is None:
        message = "the first document is empty, so the patch is ambiguous: remove a `---`"
        raise Fault(message, where=where, said_at=1)
    options = patch.get("options") or {}
    for number, each in enumerate(documents):
        _check_patch(each, where, number)
    if target is None:
        apply_merges(resources, documents, schemas, where, options)
        return
    if len(documents) > 1:
        raise Fault("several patches share one target: give each its own entry", where=where, number=1)
    for resource in targets_of(resources, target):
        merge_into(resource, documents[0], schemas, where, options)
    resources.drop_empty()
    if options and len(resources.addresses()) < len(resources.listed):
        raise Fault("the patch gives two resources the same name: narrow its target", where=where, number=0)


def apply_merges(
    resources: Resources, documents: list[Any], schemas: SchemaOf, where: str, options: dict[str, Any] | None = None
) -> None:
    """Apply strategic merge patches that name their own target."""
    for number, patch in enumerate(documents):
        _check_patch(patch, where, number)
        metadata = patch["metadata"]
        gvk = gvk_of(str(patch.get("apiVersion") or ""), patch["kind"])
        wanted = Id(gvk, str(metadata["name"]), str(metadata.get("namespace") or ""))
        try:
            found = resources.one(wanted, where, "the patch matches no resource")
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
        raise Fault("a patch must be a mapping or a list of operations: correct it", where=where, number=number)
    metadata = patch.get("metadata")
    # k8s: a patch needs both, even if its target has them.
    if not isinstance(patch.get("kind"), str) or not patch["kind"]:
        message = "the patch has no kind: add it, or use a JSON patch"
        raise Fault(message, where=where, number=number, inside=("kind",))
    if not isinstance(metadata, dict) or not metadata.get("name"):
        message = "the patch has no metadata.name: add it; with a target, any name will do"
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
    without_doubles(resource.manifest, copy, schema)
    shared = resource.shared()
    try:
        resource.manifest = merge(resource.manifest, copy, schema)
    except Misfit as error:
        inside = (*(path_of(copy, error.holder) or ()), error.key)
        raise Fault(f"patch of {before}: {error.message}", where=where, number=number, inside=inside) from None
    resource.spread(shared)
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
        raise Fault("a JSON patch must be a list of mappings: correct it", where=where, number=0)
    for resource in targets:
        resource.remember()
        try:
            changed = json_patch.apply(resource.manifest, operations, lenient_replace=True)
        except PatchError as error:
            inside = (_failing(resource.manifest, operations),)
            raise Fault(f"patch of {resource.id}: {error.message}", where=where, number=0, inside=inside) from error
        # Copy: the targets must not share data with the operations or with each other.
        data = orjson.dumps(changed)
        resource.manifest = orjson.loads(data)
        if _INEXACT.search(data):
            resource.manifest = _through_floats(resource.manifest)
        _check_whole(resource, where)
        resource.aliases = {}
        resource.nulls = None
        notes = resource.mapping("annotations").items()
        resource.written = {key: "" if type(each) in (dict, list) else text_of(each) for key, each in notes}


def _through_floats(value: Any) -> Any:
    """k8s: a patched resource is converted through JSON in which all numbers are floats."""
    if type(value) is dict:
        return {key: _through_floats(each) for key, each in value.items()}
    if type(value) is list:
        return [_through_floats(each) for each in value]
    if type(value) is float and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if type(value) is int and abs(value) > _EXACT:
        rounded = int(Decimal(repr(float(value))))
        return rounded if -(1 << 63) <= rounded < 1 << 64 else float(rounded)
    return value


def _check_whole(resource: Resource, where: str) -> None:
    manifest = resource.manifest
    name = resource.metadata.get("name") if isinstance(manifest, dict) else None
    if not name or isinstance(name, dict | list) or not manifest.get("kind"):
        was = resource.history[-1]
        raise Fault(f"patch of {was}: it removes kind or metadata.name: keep both", where=where, number=0)


def _strategic(text: bytes, where: str, *, as_texts: bool = False) -> list[Any] | None:
    """Return the strategic merge patches of a text; None if it contains a list, which must be a JSON patch."""
    if text[:1] == b"[":
        return None
    try:
        documents = _documents(text, where, as_texts=as_texts)
    except RenderError:
        # k8s: text that kustomize's own reader rejects may be a JSON patch, whose reader accepts more.
        if text.lstrip()[:1] == b"-":
            return None
        raise
    return None if any(type(each) is list for each in documents) else documents


def _failing(manifest: Any, operations: list[Any]) -> int:
    for place, each in enumerate(operations):
        try:
            manifest = json_patch.apply(manifest, [each], lenient_replace=True)
        except PatchError:
            return place
    return 0


def read_operations(text: bytes, where: str) -> list[Any]:
    """k8s: JSON if it starts with a bracket, else one document that is parsed like Kubernetes YAML."""
    try:
        found: Any = load_json(text, where=where).value if text[:1] == b"[" else load_first(text, where)
    except ManifestError as error:
        what = " (a patch that starts with [ must be JSON)" if text[:1] == b"[" else ""
        raise Fault(f"{error.message}{what}", where=error.where, said_at=error.line) from error
    if not found:
        message = "the JSON patch is empty: add operations, or remove it"
        raise Fault(message, where=where, number=0)
    return found  # type: ignore[no-any-return]


def load_first(text: bytes, where: str) -> Any:
    return next(iter(load_all(first_document(text), where=where)), None)


def read_either(text: bytes, where: str) -> list[Any]:
    """Return the documents of a patch of either kind; a JSON patch is one document."""
    documents = _strategic(text, where)
    return [read_operations(text, where)] if documents is None else documents


def read_patches(text: bytes, where: str, *, as_texts: bool = False) -> list[Any]:
    return _documents(text, where, as_texts=as_texts)


def _documents(text: bytes, where: str, *, as_texts: bool = False) -> list[Any]:
    refuse_directive(text, where)
    try:
        documents = load_all(text, profile=Profile.KUSTOMIZE, where=where)
    except ManifestError as error:
        raise Fault(error.message, where=error.where, said_at=error.line) from error
    settle(documents, text, as_texts=as_texts)
    found = [each for each in documents if each is not None]
    if not found:
        raise Fault("the patch is empty: add changes, or remove it", where=where)
    return found
