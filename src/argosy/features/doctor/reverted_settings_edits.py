"""Finds edits of argocd-cm and argocd-rbac-cm that the operator reverted, from Events.

In: a cluster, the settings of an Argo CD with an operator. Out: one violation per edited key. Never: fails if Events
are not readable; repeats an edit from before the last change of the ArgoCD resource.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.health_checks.argocd_install.merge import HEALTH_KEY_PREFIX
from argosy.gitops.analysis.live_view import InstallationView
from argosy.gitops.analysis.rule_violation import FileLocation, Violation
from argosy.gitops.application.argocd_settings_revert_event_constants import EDITED_KEY, SETTINGS_RESTORED
from argosy.gitops.coexistence.argocd_settings_location import SETTINGS_CONFIG_MAP_NAME
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import EVENT

RBAC_CONFIG_MAP: Final = "argocd-rbac-cm"
_EDITED_KEY_PATTERN: Final = re.compile(EDITED_KEY.format(key="(.+)").replace("[", r"\[").replace("]", r"\]"))


async def list_reverted_edits(
    reads: OptionalReads, view: InstallationView, known_keys: Collection[str]
) -> list[Violation]:
    """List reverted edits, except of `known_keys`, which are already explained."""
    edits = {
        (name, key): None
        for event in await _list_revert_events(reads, view.namespace)
        if str(event.get("lastTimestamp") or "") >= view.changed_at
        for name, key in [_read_edit(event)]
        if key and key not in known_keys
    }
    return [_build_violation(name, key, view.owner) for name, key in sorted(edits)]


async def _list_revert_events(reads: OptionalReads, namespace: str) -> list[Manifest]:
    try:
        listing = await reads.cluster.list(EVENT, namespace=namespace, fields=f"reason={SETTINGS_RESTORED}")
    except ArgosyError:
        return []
    return list(listing.items)


def _read_edit(event: Manifest) -> tuple[str, str]:
    """Return the ConfigMap and the key that an Event is about."""
    involved = as_mapping(event.get("involvedObject"))
    match = _EDITED_KEY_PATTERN.fullmatch(str(involved.get("fieldPath") or ""))
    return str(involved.get("name") or ""), match[1] if match else ""


def _build_violation(name: str, key: str, owner: str) -> Violation:
    problem = f"{key} of {name} was edited by hand, and the operator has taken the edit back"
    object_name = f"ConfigMap/{name}"
    fix = f"expected behaviour, use the CR: {_describe_cr_field(name, key)} of ArgoCD {owner}"
    return Violation(
        FileLocation(object_name), f"{problem}: it writes {name} from the ArgoCD CR {owner}", fix, object_name, key
    )


def _describe_cr_field(name: str, key: str) -> str:
    if name == RBAC_CONFIG_MAP:
        return "spec.rbac"
    is_check = name == SETTINGS_CONFIG_MAP_NAME and key.startswith(HEALTH_KEY_PREFIX)
    return "argosy health apply, or spec.resourceHealthChecks" if is_check else "spec.extraConfig"
