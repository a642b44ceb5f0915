"""The `ephemeralcontainers` subresource of Pods: adds debug containers to a running Pod.

In: the requested and the live Pod. Out: the Pod with only its ephemeral containers changed, and field errors.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.kube.objects import Manifest
from argosy.kube.schema.field_error import FieldError, forbidden

SUBRESOURCE = "ephemeralcontainers"
_FIELD_PATH = "spec.ephemeralContainers"


def keep_only_ephemeral_containers(new: Manifest, old: Manifest) -> Manifest:
    """k8s: all other changes in the request are ignored."""
    spec = {name: value for name, value in (old.get("spec") or {}).items() if name != "ephemeralContainers"}
    requested = (new.get("spec") or {}).get("ephemeralContainers")
    if requested:
        spec["ephemeralContainers"] = requested
    return {**old, "metadata": {**old["metadata"], **_select_managed_fields(new)}, "spec": spec}


def _select_managed_fields(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest["metadata"].items() if name == "managedFields"}


def validate_update(new: Manifest, old: Manifest) -> Sequence[FieldError]:
    requested_by_name = {
        container.get("name"): container for container in (new.get("spec") or {}).get("ephemeralContainers") or ()
    }
    field_errors = []
    for old_container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = old_container.get("name")
        if name not in requested_by_name:
            field_errors.append(forbidden(_FIELD_PATH, f'existing ephemeral containers "{name}" may not be removed'))
        elif requested_by_name[name] != old_container:
            field_errors.append(forbidden(_FIELD_PATH, f'existing ephemeral containers "{name}" may not be changed'))
    return field_errors
