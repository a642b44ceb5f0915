"""Lists safe fixes: a refresh, a touch of the ArgoCD resource, and proven changes of an Application.

In: an Examination. Out: DoctorFix values, each with a description and an action. Never: changes what Git would undo;
acts without a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.features.align_git.working_tree_edits import find_owner
from argosy.features.doctor.proven_remedies import ProvenRemedy
from argosy.features.doctor.service import Examination
from argosy.features.health_checks.argocd_install.merge import HEALTH_KEY_PREFIX
from argosy.gitops.analysis.alignment.proposed_application_manifest_edits import apply_edits, build_edits
from argosy.gitops.analysis.live_view import LiveApplication
from argosy.gitops.analysis.rules.live.health_checks import BROWSER_ADVICE, REFRESH_ADVICE
from argosy.gitops.analysis.rules.live.stalled_and_repeated_syncs import RESTARTED_AT_ANNOTATION
from argosy.gitops.application_client.application_actions import refresh_and_wait
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.status_summary import read_health_status
from argosy.gitops.coexistence.argocd_settings_location import SETTINGS_CONFIG_MAP_NAME
from argosy.gitops.health.setting_kind_names import render_key_kind
from argosy.kube.controller.object_condition_wait import WaitTimeout, wait_for_object
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import ARGOCD, CONFIG_MAP

REFRESH_TIMEOUT_SECONDS: Final = 30.0
TOUCH_TIMEOUT_SECONDS: Final = 15.0
TIMESTAMP_FORMAT: Final = "%Y-%m-%dT%H:%M:%S%z"

FixAction = Callable[[ApplicationService], Awaitable[str]]


@dataclass(frozen=True)
class DoctorFix:
    """`act` applies the fix and returns the result; None if it must be made in Git, as `text` describes."""

    subject: str
    text: str
    act: FixAction | None = None


def list_fixes(examination: Examination) -> list[DoctorFix]:
    return [
        *_iterate_operator_fixes(examination),
        *_iterate_refresh_fixes(examination),
        *_iterate_proven_fixes(examination),
    ]


# -- the operator -----------------------------------------------------------------------------------------------------


def _iterate_operator_fixes(examination: Examination) -> Iterator[DoctorFix]:
    is_idle = any(
        finding.rule.id == "AGY508" and finding.location.file.startswith("ArgoCD/") for finding in examination.findings
    )
    settings = examination.view.settings
    if not is_idle:
        return
    key = ResourceKey(*ARGOCD, settings.namespace, settings.owner)
    scripts = {
        f"{HEALTH_KEY_PREFIX}{render_key_kind(*of)}": script for of, script in settings.requested_scripts.items()
    }
    expected = {name: scripts[name] for name in settings.missing_keys if name in scripts}

    async def touch(service: ApplicationService) -> str:
        timestamp = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
        await service.cluster.patch(key, {"metadata": {"annotations": {RESTARTED_AT_ANNOTATION: timestamp}}})

        def has_arrived(config: Manifest | None) -> bool:
            return expected.items() <= ((config or {}).get("data") or {}).items()

        config_key = ResourceKey(*CONFIG_MAP, settings.namespace, SETTINGS_CONFIG_MAP_NAME)
        if await wait_for_object(service.cluster, config_key, has_arrived, TOUCH_TIMEOUT_SECONDS):
            return f"{SETTINGS_CONFIG_MAP_NAME} has {', '.join(expected)} now"
        return (
            f"{SETTINGS_CONFIG_MAP_NAME} still lacks {', '.join(expected)} after {TOUCH_TIMEOUT_SECONDS:g} s: "
            "the operator does not act"
        )

    yield DoctorFix(
        f"ArgoCD/{settings.owner}",
        f"touch it ({RESTARTED_AT_ANNOTATION}), so that its operator looks at it anew",
        touch,
    )


# -- stale health -----------------------------------------------------------------------------------------------------


def _iterate_refresh_fixes(examination: Examination) -> Iterator[DoctorFix]:
    by_name = {app.name: app for app in examination.chosen}
    for finding in examination.findings:
        app = by_name.get(finding.location.file.removeprefix("Application/"))
        if finding.rule.id == "AGY512" and app is not None and finding.violation.fix.startswith(REFRESH_ADVICE):
            yield DoctorFix(app.name, f"{REFRESH_ADVICE}, then read its health again", _build_refresh_action(app))


def _build_refresh_action(app: LiveApplication) -> FixAction:
    async def act(service: ApplicationService) -> str:
        after = await refresh_and_wait(service, app.app, is_hard=True, timeout_seconds=REFRESH_TIMEOUT_SECONDS)
        return f"it is {read_health_status(after)} now; {BROWSER_ADVICE}"

    return act


# -- proven changes ---------------------------------------------------------------------------------------------------


def _iterate_proven_fixes(examination: Examination) -> Iterator[DoctorFix]:
    for app in examination.chosen:
        remedy = examination.treatments.get(app.name)
        if remedy is None or not remedy.is_proven_to_help:
            continue
        description = "; ".join(proposal.text for proposal in remedy.done)
        owner = _find_owner(examination, app)
        if owner or any(proposal.file for proposal in remedy.done):
            owner_text = f"{owner} makes it from Git" if owner else "it is about files of its source"
            yield DoctorFix(
                app.name, f"{description}; {owner_text}, so change it there: argosy align {app.name} --write"
            )
            continue
        git_advice = f"; keep the same in Git: argosy align {app.name} --patch -"
        yield DoctorFix(app.name, f"{description} (in the cluster{git_advice})", _build_patch_action(app, remedy))


def _find_owner(examination: Examination, app: LiveApplication) -> str:
    """Return the parent Application or ApplicationSet, which would undo a change in the cluster."""
    parents = (parent.name for parent in examination.view.apps for row in parent.resources if row.key == app.app.key)
    return app.parent or find_owner(app.app) or next(parents, "")


def _build_patch_action(app: LiveApplication, remedy: ProvenRemedy) -> FixAction:
    async def act(service: ApplicationService) -> str:
        after = await service.patch_application(app.app, lambda now: _build_spec_patch(now.wire, remedy))
        with suppress(WaitTimeout):  # no controller refreshes it now; the change stays
            await refresh_and_wait(service, after, is_hard=False, timeout_seconds=TOUCH_TIMEOUT_SECONDS)
        return f"changed; after a sync it is {remedy.proof.synced.render}: argosy app sync {after.name}"

    return act


def _build_spec_patch(wire: Mapping[str, Any], remedy: ProvenRemedy) -> dict[str, Any] | None:
    """Build the patch for the current spec; None if it already has the changes."""
    spec = wire.get("spec") or {}
    new_spec = apply_edits(wire, build_edits(wire, remedy.done)).get("spec") or {}
    change: dict[str, Any] = merge_patch.diff(dict(spec), dict(new_spec))
    return {"spec": change} if change else None
