"""CustomResourceDefinitions of an embedded cluster.

In: a cluster. Out: whether the server is done with its definitions. Never: waits by itself.
"""

from __future__ import annotations

from argosy.cluster import Cluster
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind

DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


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
