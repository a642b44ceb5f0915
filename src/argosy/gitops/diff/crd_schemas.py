"""The shapes of custom kinds, from the CRDs in the cluster.

In: a function that lists the CRDs. Out: a shape with its defaults, or None without a CRD. Never: raises for an invalid
CRD; compiles an unchanged CRD twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from argosy.errors import ArgosyError
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.schema.crd.compiled_schema import compile_node


class CustomShapes:
    def __init__(self, definitions: Callable[[], Iterable[Manifest]]) -> None:
        self._definitions = definitions
        self._known: dict[tuple[str, str], tuple[object, Shape | None]] = {}

    def __call__(self, api_version: str, kind: str) -> Shape | None:
        group, version = split_api_version(api_version)
        definition = next((each for each in self._definitions() if _defines(each, group, kind)), None)
        if definition is None:
            return None
        metadata = definition["metadata"]
        mark = metadata.get("uid"), metadata.get("resourceVersion")
        known = self._known.get((api_version, kind))
        if known is None or known[0] != mark:
            known = self._known[api_version, kind] = mark, _shape(definition["spec"], version)
        return known[1]


def _defines(definition: Manifest, group: str, kind: str) -> bool:
    spec = definition.get("spec")
    return isinstance(spec, dict) and spec.get("group") == group and (spec.get("names") or {}).get("kind") == kind


def _shape(spec: Mapping[str, Any], version: str) -> Shape | None:
    try:
        found = next((each for each in spec.get("versions") or () if each.get("name") == version), None)
        schema = ((found or {}).get("schema") or {}).get("openAPIV3Schema")
        return compile_node(schema, resource=True) if schema else None
    except (ArgosyError, AttributeError, KeyError, TypeError, ValueError):
        return None
