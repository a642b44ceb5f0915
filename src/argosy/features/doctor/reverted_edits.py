"""Finds edits of argocd-cm and argocd-rbac-cm that the operator reverted, from Events.

In: a cluster, the settings of an Argo CD with an operator. Out: one violation per edited key. Never: fails if Events
are not readable; repeats an edit from before the last change of the ArgoCD resource.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.doctor.optional_reads import Asking
from argosy.features.health_checks.argocd_install.merge import KEY_PREFIX
from argosy.gitops.analysis.live_view import SettingsView
from argosy.gitops.analysis.violation import Place, Sight
from argosy.gitops.application.settings_events import EDITED_KEY, SETTINGS_RESTORED
from argosy.gitops.coexistence.argocd_settings import SETTINGS
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

EVENT: Final = GroupKind("", "Event")
POLICY: Final = "argocd-rbac-cm"
_FIELD: Final = re.compile(EDITED_KEY.format(key="(.+)").replace("[", r"\[").replace("]", r"\]"))


async def find_hand_edits(asking: Asking, view: SettingsView, known: Collection[str]) -> list[Sight]:
    """List reverted edits, except of `known_keys`, which are already explained."""
    edits = {
        (name, key): None
        for event in await _list_events(asking, view.namespace)
        if str(event.get("lastTimestamp") or "") >= view.changed
        for name, key in [_read_edit(event)]
        if key and key not in known
    }
    return [_explain(name, key, view.owner) for name, key in sorted(edits)]


async def _list_events(asking: Asking, namespace: str) -> list[Manifest]:
    try:
        listing = await asking.cluster.list(EVENT, namespace=namespace, fields=f"reason={SETTINGS_RESTORED}")
    except ArgosyError:
        return []
    return list(listing.items)


def _read_edit(event: Manifest) -> tuple[str, str]:
    """Return the ConfigMap and the key that an Event is about."""
    involved = mapping(event.get("involvedObject"))
    found = _FIELD.fullmatch(str(involved.get("fieldPath") or ""))
    return str(involved.get("name") or ""), found[1] if found else ""


def _explain(name: str, key: str, owner: str) -> Sight:
    what = f"{key} of {name} was edited by hand, and the operator has taken the edit back"
    place = f"ConfigMap/{name}"
    way = f"expected behaviour, use the CR: {_name_field(name, key)} of ArgoCD {owner}"
    return Sight(Place(place), f"{what}: it writes {name} from the ArgoCD CR {owner}", way, place, key)


def _name_field(name: str, key: str) -> str:
    if name == POLICY:
        return "spec.rbac"
    is_check = name == SETTINGS and key.startswith(KEY_PREFIX)
    return "argosy health apply, or spec.resourceHealthChecks" if is_check else "spec.extraConfig"
