"""CustomResourceDefinitions: builds one for schema tests, and checks if a server has established all of them.

In: the schema of a spec, or a cluster. Out: a CRD, or a boolean. Never: waits.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import CRD


def thing_definition(**spec_properties: Any) -> Manifest:
    """The CRD of `things.example.com`, whose spec has these properties."""
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
    """True if there are CRDs, and the server has finished writing to them.

    After a CRD is created, the server adds a finalizer and then the status.
    """
    definitions = (await cluster.list(CRD)).items
    return bool(definitions) and all(map(_is_established, definitions))


def _is_established(definition: Manifest) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    is_accepted = ("Established", "True") in {(condition["type"], condition["status"]) for condition in conditions}
    return is_accepted and bool(definition["metadata"].get("finalizers"))
