"""Applies patches, source additions and removals, and edited specs to an Application manifest.

In: the current Application, user input. Out: its manifest. Never: writes it; changes its status.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import PatchError, UserError
from argosy.gitops.application_client.spec_flags import Given, new_source
from argosy.kube.objects import load
from argosy.kube.patch import json_patch, merge_patch

JSON, MERGE = "json", "merge"
KINDS: Final = (JSON, MERGE)


def patched(manifest: Mapping[str, Any], text: str, kind: str) -> dict[str, Any]:
    """argo: apply a JSON patch unless `merge` is requested."""
    patch = read_patch(text)
    document = copy.deepcopy(dict(manifest))
    try:
        if kind == MERGE:
            made = merge_patch.apply(document, patch)
        else:
            made = json_patch.apply(document, patch if isinstance(patch, list) else [patch])
    except PatchError as error:
        raise UserError(f"cannot apply the patch: {error}", where="--patch") from error
    if not isinstance(made, dict) or not isinstance(made.get("metadata"), dict):
        raise UserError("the result is not an Application; change fields below /spec or /metadata", where="--patch")
    return made


def read_patch(text: str) -> Any:
    """Parse a patch; YAML is accepted too, as in kubectl."""
    if not text.strip():
        raise UserError("no patch given; pass JSON with --patch", where="--patch")
    found = load(text, where="--patch")
    if not isinstance(found, dict | list):
        raise UserError("the patch is neither an object nor a list; pass JSON", where="--patch")
    return found


def with_source(manifest: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """argo: append a source; only for an Application with spec.sources."""
    made = copy.deepcopy(dict(manifest))
    many = (made.get("spec") or {}).get("sources")
    if not many:
        told = "move its source into spec.sources first, with: argosy app edit"
        raise UserError(f"cannot add source: application {_name(made)} does not have spec.sources defined; {told}")
    made["spec"]["sources"] = [*many, new_source(given)]
    return made


def without_source(manifest: Mapping[str, Any], position: int | None, name: str) -> dict[str, Any]:
    if not name and (position is None or position <= 0):
        raise UserError("value of source-position must be greater than 0; the first is 1", where="--source-position")
    if name and position is not None:
        raise UserError("only one of source-position and source-name can be specified; omit one")
    made = copy.deepcopy(dict(manifest))
    many = (made.get("spec") or {}).get("sources") or []
    if not many:
        raise UserError(f"{_name(made)}: it does not have multiple sources; change the only one with: argosy app set")
    if len(many) == 1:
        raise UserError(f"{_name(made)}: cannot remove the only source remaining; delete the Application instead")
    place = _place(many, position, name)
    made["spec"]["sources"] = [*many[:place], *many[place + 1 :]]
    return made


def _place(many: list[dict[str, Any]], position: int | None, name: str) -> int:
    if name:
        for place, source in enumerate(many):
            if source.get("name") == name:
                return place
        raise UserError(f"unknown source name {name!r}; use --source-position", where="--source-name")
    assert position is not None
    if position > len(many):
        told = f"no source at position {position}; the application has {len(many)}"
        raise UserError(told, where="--source-position")
    return position - 1


def with_spec(manifest: Mapping[str, Any], spec: Any) -> dict[str, Any]:
    if not isinstance(spec, dict):
        raise UserError(f"{_name(manifest)}: the edited text is not a spec; it must be a map of fields")
    return {**manifest, "spec": spec}


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("name"))
