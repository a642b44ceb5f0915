"""Reads and writes manifests: Kubernetes objects as plain JSON data, which are copied and never mutated.

In: YAML or JSON text. Out: plain data, or YAML text. Never: does I/O; accepts input beyond its limits.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from argosy.kube.names import ResourceKey, split_api_version

if TYPE_CHECKING:
    from argosy.kube.objects.input_limits import Limits
    from argosy.kube.objects.json_reader import JsonRead, load_json
    from argosy.kube.objects.manifests import load, load_all, read_manifests
    from argosy.kube.objects.yaml_scalars import Profile
    from argosy.kube.objects.yaml_writer import dump, dump_all

__all__ = [
    "JsonRead",
    "Limits",
    "Manifest",
    "Profile",
    "annotation",
    "dump",
    "dump_all",
    "key_of",
    "key_of_source",
    "load",
    "load_all",
    "load_json",
    "read_manifests",
]

# Readers and writers are imported on first use: most importers need only keys and types.
_HOMES: Final = {
    "JsonRead": "json_reader",
    "load_json": "json_reader",
    "Limits": "input_limits",
    "load": "manifests",
    "load_all": "manifests",
    "read_manifests": "manifests",
    "Profile": "yaml_scalars",
    "dump": "yaml_writer",
    "dump_all": "yaml_writer",
}

Manifest = dict[str, Any]


def key_of(manifest: Manifest) -> ResourceKey:
    """Return the key of a manifest. Raises ManifestError if apiVersion, kind or metadata.name is missing."""
    try:
        return _key_of(manifest)
    except (KeyError, TypeError, AttributeError) as error:
        from argosy.errors import ManifestError

        message = "a manifest needs apiVersion, kind and metadata.name; add the missing field"
        raise ManifestError(message) from error


def key_of_source(manifest: Manifest) -> ResourceKey:
    """Return the key of a manifest from Git; `generateName` replaces a missing name."""
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("name") and metadata.get("generateName"):
        manifest = {**manifest, "metadata": {**metadata, "name": str(metadata["generateName"])}}
    return key_of(manifest)


def _key_of(manifest: Manifest) -> ResourceKey:
    group, _ = split_api_version(manifest["apiVersion"])
    metadata = manifest["metadata"]
    return ResourceKey(group, manifest["kind"], metadata.get("namespace") or "", metadata["name"])


def annotation(manifest: Manifest, name: str, default: str = "") -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(name, default))


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
