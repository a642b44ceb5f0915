"""The `ephemeralcontainers` subresource of Pods: adds debug containers to a running Pod.

In: the requested and the live Pod. Out: the Pod with only its ephemeral containers changed, and field errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.kube.objects import Manifest
from argosy.kube.schema.field_error import Fault, forbidden

PART = "ephemeralcontainers"
_FIELD = "spec.ephemeralContainers"


def only_debuggers(new: Manifest, old: Manifest) -> Manifest:
    """k8s: all other changes in the request are ignored."""
    spec = {name: value for name, value in (old.get("spec") or {}).items() if name != "ephemeralContainers"}
    asked = (new.get("spec") or {}).get("ephemeralContainers")
    if asked:
        spec["ephemeralContainers"] = asked
    return {**old, "metadata": {**old["metadata"], **_owners(new)}, "spec": spec}


def _owners(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest["metadata"].items() if name == "managedFields"}


def faults(new: Manifest, old: Manifest) -> Sequence[Fault]:
    asked = {each.get("name"): each for each in (new.get("spec") or {}).get("ephemeralContainers") or ()}
    found = []
    for before in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = before.get("name")
        if name not in asked:
            found.append(forbidden(_FIELD, f'existing ephemeral containers "{name}" may not be removed'))
        elif asked[name] != before:
            found.append(forbidden(_FIELD, f'existing ephemeral containers "{name}" may not be changed'))
    return found
