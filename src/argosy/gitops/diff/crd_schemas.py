"""The shapes of custom kinds, from the CRDs in the cluster.

In: a function that lists the CRDs. Out: a shape with its defaults, or None without a CRD. Never: raises for an invalid
CRD; compiles an unchanged CRD twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from argosy.errors import ArgosyError
from argosy.kube.objects import Manifest
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.resource_key import split_api_version
from argosy.kube.schema.crd.compiled_schema import compile_schema


class CrdShapes:
    def __init__(self, list_crds: Callable[[], Iterable[Manifest]]) -> None:
        self._list_crds = list_crds
        self._compiled: dict[tuple[str, str], tuple[object, Shape | None]] = {}

    def __call__(self, api_version: str, kind: str) -> Shape | None:
        group, version = split_api_version(api_version)
        found_crd = next((crd for crd in self._list_crds() if _defines_kind(crd, group, kind)), None)
        if found_crd is None:
            return None
        metadata = found_crd["metadata"]
        version_mark = metadata.get("uid"), metadata.get("resourceVersion")
        entry = self._compiled.get((api_version, kind))
        if entry is None or entry[0] != version_mark:
            entry = self._compiled[api_version, kind] = version_mark, _compile_shape(found_crd["spec"], version)
        return entry[1]


def _defines_kind(definition: Manifest, group: str, kind: str) -> bool:
    spec = definition.get("spec")
    return isinstance(spec, dict) and spec.get("group") == group and (spec.get("names") or {}).get("kind") == kind


def _compile_shape(spec: Mapping[str, Any], version: str) -> Shape | None:
    try:
        crd_version = next(
            (candidate for candidate in spec.get("versions") or () if candidate.get("name") == version), None
        )
        schema = ((crd_version or {}).get("schema") or {}).get("openAPIV3Schema")
        return compile_schema(schema, is_root=True) if schema else None
    except (ArgosyError, AttributeError, KeyError, TypeError, ValueError):
        return None
