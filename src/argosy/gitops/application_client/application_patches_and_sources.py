"""Applies patches, source additions and removals, and edited specs to an Application manifest.

In: the current Application, user input. Out: its manifest. Never: writes it; changes its status.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import PatchError, UserError
from argosy.gitops.application_client.spec_flags import FlagValues, build_source
from argosy.kube.objects import read_yaml
from argosy.kube.patch import json_patch, merge_patch

JSON, MERGE = "json", "merge"
PATCH_TYPES: Final = (JSON, MERGE)


def apply_patch(manifest: Mapping[str, Any], text: str, patch_type: str) -> dict[str, Any]:
    """argo: apply a JSON patch unless `merge` is requested."""
    patch = read_patch(text)
    document = copy.deepcopy(dict(manifest))
    try:
        if patch_type == MERGE:
            patched_manifest = merge_patch.apply(document, patch)
        else:
            patched_manifest = json_patch.apply(document, patch if isinstance(patch, list) else [patch])
    except PatchError as error:
        raise UserError(f"cannot apply the patch: {error}", where="--patch") from error
    if not isinstance(patched_manifest, dict) or not isinstance(patched_manifest.get("metadata"), dict):
        raise UserError("the result is not an Application; change fields below /spec or /metadata", where="--patch")
    return patched_manifest


def read_patch(text: str) -> Any:
    """Parse a patch; YAML is accepted too, as in kubectl."""
    if not text.strip():
        raise UserError("no patch given; pass JSON with --patch", where="--patch")
    patch = read_yaml(text, where="--patch")
    if not isinstance(patch, dict | list):
        raise UserError("the patch is neither an object nor a list; pass JSON", where="--patch")
    return patch


def add_source(manifest: Mapping[str, Any], flags: FlagValues) -> dict[str, Any]:
    """argo: append a source; only for an Application with spec.sources."""
    changed_manifest = copy.deepcopy(dict(manifest))
    sources = (changed_manifest.get("spec") or {}).get("sources")
    if not sources:
        advice = "move its source into spec.sources first, with: argosy app edit"
        raise UserError(
            f"cannot add source: application {_read_name(changed_manifest)} does not have spec.sources "
            f"defined; {advice}"
        )
    changed_manifest["spec"]["sources"] = [*sources, build_source(flags)]
    return changed_manifest


def remove_source(manifest: Mapping[str, Any], position: int | None, name: str) -> dict[str, Any]:
    if not name and (position is None or position <= 0):
        raise UserError("value of source-position must be greater than 0; the first is 1", where="--source-position")
    if name and position is not None:
        raise UserError("only one of source-position and source-name can be specified; omit one")
    changed_manifest = copy.deepcopy(dict(manifest))
    sources = (changed_manifest.get("spec") or {}).get("sources") or []
    if not sources:
        raise UserError(
            f"{_read_name(changed_manifest)}: it does not have multiple sources; change the only one with: "
            "argosy app set"
        )
    if len(sources) == 1:
        raise UserError(
            f"{_read_name(changed_manifest)}: cannot remove the only source remaining; delete the Application instead"
        )
    index = _find_source_index(sources, position, name)
    changed_manifest["spec"]["sources"] = [*sources[:index], *sources[index + 1 :]]
    return changed_manifest


def _find_source_index(sources: list[dict[str, Any]], position: int | None, name: str) -> int:
    if name:
        for index, source in enumerate(sources):
            if source.get("name") == name:
                return index
        raise UserError(f"unknown source name {name!r}; use --source-position", where="--source-name")
    assert position is not None
    if position > len(sources):
        message = f"no source at position {position}; the application has {len(sources)}"
        raise UserError(message, where="--source-position")
    return position - 1


def replace_spec(manifest: Mapping[str, Any], spec: Any) -> dict[str, Any]:
    if not isinstance(spec, dict):
        raise UserError(f"{_read_name(manifest)}: the edited text is not a spec; it must be a map of fields")
    return {**manifest, "spec": spec}


def _read_name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("name"))
