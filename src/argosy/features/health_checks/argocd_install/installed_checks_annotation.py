"""Annotation that records which health checks `argosy setup` installed, because a list entry cannot have a label.

In: the live ArgoCD resource or argocd-cm. Out: patches of it. Never: claims a check that existed before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.features.health_checks.argocd_install.health_settings_object import HEALTH_CHECKS_FIELD, HealthSettings
from argosy.features.health_checks.argocd_install.merge import (
    HEALTH_KEY_PREFIX,
    RequestedHealthCheck,
    find_profile_of_script,
    read_entry_kind,
)
from argosy.gitops.health.setting_kind_names import render_key_kind
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.resource_key import GroupKind

SETUP_HEALTH_ANNOTATION: Final = "argosy.dev/setup-health"


def read_recorded_kinds(location: HealthSettings) -> list[str]:
    return get_annotation(location.live, SETUP_HEALTH_ANNOTATION).split()


def build_install_patch(location: HealthSettings, requested_checks: Sequence[RequestedHealthCheck]) -> Manifest | None:
    """Build the patch that adds the checks and records the new ones; None if nothing changes."""
    patch = location.build_patch(requested_checks)
    if patch is None:
        return None
    existing_scripts = location.scripts
    new_kinds = [
        render_key_kind(*check.group_kind) for check in requested_checks if check.group_kind not in existing_scripts
    ]
    recorded_kinds = sorted({*read_recorded_kinds(location), *new_kinds})
    metadata_changes = {"annotations": {SETUP_HEALTH_ANNOTATION: " ".join(recorded_kinds)}} if new_kinds else {}
    return {**patch, "metadata": {**patch["metadata"], **metadata_changes}}


def build_uninstall_patch(
    location: HealthSettings, requested_checks: Sequence[RequestedHealthCheck]
) -> tuple[Manifest, list[GroupKind]] | None:
    """Build the patch that removes the recorded checks, and list their kinds; None if none are recorded.

    A script that was changed since then is kept.
    """
    recorded_kinds = set(read_recorded_kinds(location))
    if not recorded_kinds:
        return None
    scripts_by_kind = {check.group_kind: check.script for check in requested_checks}
    removed_kinds = [
        group_kind
        for group_kind, script in location.scripts.items()
        if render_key_kind(*group_kind) in recorded_kinds
        and (scripts_by_kind.get(group_kind) == script or find_profile_of_script(group_kind, script))
    ]
    metadata = {
        "resourceVersion": location.live["metadata"]["resourceVersion"],
        "annotations": {SETUP_HEALTH_ANNOTATION: None},
    }
    remaining: dict[str, Any]
    if location.installation.has_operator:
        remaining = {
            "spec": {
                HEALTH_CHECKS_FIELD: [
                    entry for entry in location.entries or () if read_entry_kind(entry) not in removed_kinds
                ]
                or None
            }
        }
    else:
        remaining = {"data": {HEALTH_KEY_PREFIX + render_key_kind(*group_kind): None for group_kind in removed_kinds}}
    return {"metadata": metadata, **remaining}, removed_kinds
