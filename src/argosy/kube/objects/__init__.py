"""Reads and writes manifests: Kubernetes objects as plain JSON data, which are copied and never mutated.

In: YAML or JSON text. Out: plain data, or YAML text. Never: does I/O; accepts input beyond its limits.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from argosy.kube.resource_key import ResourceKey, split_api_version

if TYPE_CHECKING:
    from argosy.kube.objects.go_json_decoder import ParsedJson, read_json
    from argosy.kube.objects.input_limits import InputLimits
    from argosy.kube.objects.manifest_text_reader import read_manifests, read_yaml, read_yaml_documents
    from argosy.kube.objects.yaml_scalars import YamlDialect
    from argosy.kube.objects.yaml_writer import dump_yaml, dump_yaml_documents

__all__ = [
    "InputLimits",
    "Manifest",
    "ParsedJson",
    "YamlDialect",
    "dump_yaml",
    "dump_yaml_documents",
    "get_annotation",
    "key_of",
    "key_of_desired",
    "list_desired_keys",
    "read_json",
    "read_manifests",
    "read_yaml",
    "read_yaml_documents",
]

# Readers and writers are imported on first use: most importers need only keys and types.
_LAZY_MODULES: Final = {
    "ParsedJson": "go_json_decoder",
    "read_json": "go_json_decoder",
    "InputLimits": "input_limits",
    "read_yaml": "manifest_text_reader",
    "read_yaml_documents": "manifest_text_reader",
    "read_manifests": "manifest_text_reader",
    "YamlDialect": "yaml_scalars",
    "dump_yaml": "yaml_writer",
    "dump_yaml_documents": "yaml_writer",
}

Manifest = dict[str, Any]


def key_of(manifest: Manifest) -> ResourceKey:
    """Return the key of a manifest. Raises ManifestError if apiVersion, kind or metadata.name is missing."""
    try:
        return _build_key(manifest)
    except (KeyError, TypeError, AttributeError) as error:
        from argosy.errors import ManifestError

        message = "a manifest needs apiVersion, kind and metadata.name; add the missing field"
        raise ManifestError(message) from error


def key_of_desired(manifest: Manifest) -> ResourceKey:
    """Return the key of a manifest from Git; `generateName` replaces a missing name, which is empty without it."""
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("name"):
        manifest = {**manifest, "metadata": {**metadata, "name": str(metadata.get("generateName") or "")}}
    return key_of(manifest)


def list_desired_keys(manifests: Iterable[Manifest]) -> list[ResourceKey]:
    """Return a key for each manifest from Git. No object has the key of a manifest with `generateName`.

    k8s: A name contains no `*`, and does not end in `-` or `.`. So `*` is appended to other prefixes, and a number too
    if an earlier manifest has the same prefix.
    """
    keys: list[ResourceKey] = []
    prefix_counts: Counter[ResourceKey] = Counter()
    for manifest in manifests:
        key = key_of_desired(manifest)
        if not manifest["metadata"].get("name"):
            prefix_counts[key] += 1
            if prefix_counts[key] > 1:
                key = key._replace(name=f"{key.name}*{prefix_counts[key]}")
            elif not key.name.endswith(("-", ".")):
                key = key._replace(name=f"{key.name}*")
        keys.append(key)
    return keys


def _build_key(manifest: Manifest) -> ResourceKey:
    group, _ = split_api_version(manifest["apiVersion"])
    metadata = manifest["metadata"]
    return ResourceKey(group, manifest["kind"], metadata.get("namespace") or "", metadata["name"])


def get_annotation(manifest: Manifest, name: str, default: str = "") -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(name, default))


def __getattr__(name: str) -> Any:
    if module_name := _LAZY_MODULES.get(name):
        value = getattr(importlib.import_module(f"{__name__}.{module_name}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
