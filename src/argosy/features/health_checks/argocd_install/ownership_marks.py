"""Annotation that records which health checks `argosy setup` installed, because a list entry cannot have a label.

In: the live ArgoCD resource or argocd-cm. Out: patches of it. Never: claims a check that existed before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.features.health_checks.argocd_install.merge import KEY_PREFIX, Check, kind_in, profile_with
from argosy.features.health_checks.argocd_install.settings_location import FIELD, Place
from argosy.gitops.health.kind_keys import joined
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, annotation

BROUGHT: Final = "argosy.dev/setup-health"


def marks(place: Place) -> list[str]:
    return annotation(place.live, BROUGHT).split()


def with_marks(place: Place, wanted: Sequence[Check]) -> Manifest | None:
    """Build the patch that adds the checks and records the new ones; None if nothing changes."""
    patch = place.patch(wanted)
    if patch is None:
        return None
    there = place.scripts
    new = [joined(*check.of) for check in wanted if check.of not in there]
    names = sorted({*marks(place), *new})
    note = {"annotations": {BROUGHT: " ".join(names)}} if new else {}
    return {**patch, "metadata": {**patch["metadata"], **note}}


def without_marked(place: Place, wanted: Sequence[Check]) -> tuple[Manifest, list[GroupKind]] | None:
    """Build the patch that removes the recorded checks, and list their kinds; None if none are recorded.

    A script that was changed since then is kept.
    """
    names = set(marks(place))
    if not names:
        return None
    ours = {check.of: check.script for check in wanted}
    gone = [
        of
        for of, script in place.scripts.items()
        if joined(*of) in names and (ours.get(of) == script or profile_with(of, script))
    ]
    metadata = {"resourceVersion": place.live["metadata"]["resourceVersion"], "annotations": {BROUGHT: None}}
    left: dict[str, Any]
    if place.installation.is_operated:
        left = {"spec": {FIELD: [each for each in place.entries or () if kind_in(each) not in gone] or None}}
    else:
        left = {"data": {KEY_PREFIX + joined(*of): None for of in gone}}
    return {"metadata": metadata, **left}, gone
