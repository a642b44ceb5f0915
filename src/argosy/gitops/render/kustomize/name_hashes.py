"""Adds content hashes to names. In: a ConfigMap or Secret. Out: a suffix of ten characters. Never: hashes the name."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.resource import KustomizeResource

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_VOWEL_REPLACEMENTS = str.maketrans("013ae", "ghkmt")


def add_name_hashes(resources: list[KustomizeResource]) -> None:
    for resource in resources:
        if resource.needs_hash:
            resource.save_current_id()
            resource.metadata["name"] = f"{resource.name}-{compute_content_hash(resource.manifest)}"


def compute_content_hash(manifest: dict[str, Any]) -> str:
    kind = manifest.get("kind")
    # k8s: kustomize reads the name from the wrong field, so it is always empty.
    content: dict[str, Any] = {"kind": kind, "name": "", "data": manifest.get("data", "")}
    if kind == "ConfigMap":
        if "binaryData" in manifest:
            content["binaryData"] = manifest["binaryData"]
    elif kind == "Secret":
        content["type"] = manifest.get("type", "")
        if "stringData" in manifest:
            content["stringData"] = manifest["stringData"]
    else:
        content = {key: value for key, value in manifest.items() if key != "status"}
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except ValueError as error:
        raise RenderError(f"the content of a {kind} cannot be hashed: {error}") from error
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10].translate(_VOWEL_REPLACEMENTS)
