"""CustomResourceDefinitions: one to try schemas with, and whether a server is done with its own.

In: the schema of a spec, or a cluster. Out: a definition, or a verdict. Never: waits by itself.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


def thing_definition(**spec_properties: Any) -> Manifest:
    """The definition of `things.example.com`, whose spec has these properties."""
    spec = {"type": "object", "properties": spec_properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def are_established(cluster: Cluster) -> bool:
    """True if there are definitions, and the server writes into none of them any more.

    It does so for a moment after a definition was made: a finalizer, then the status.
    """
    definitions = (await cluster.list(DEFINITION)).items
    return bool(definitions) and all(map(_is_established, definitions))


def _is_established(definition: Manifest) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    is_accepted = ("Established", "True") in {(condition["type"], condition["status"]) for condition in conditions}
    return is_accepted and bool(definition["metadata"].get("finalizers"))
