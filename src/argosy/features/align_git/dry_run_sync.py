"""Predicts the result of a sync with dry-run requests, and compares it with Git.

In: a reader, an Application, its AppState. Out: DryRunSyncResult. Never: changes anything: every request is a dry run.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from argosy.annotations import FIELD_MANAGER, SYNC_OPTIONS
from argosy.errors import ArgosyError, ClusterError
from argosy.gitops.analysis.alignment.observed_application import RECREATE_OPTIONS, RESPECT_OPTION
from argosy.gitops.analysis.object_versions_as_cause_evidence import read_rejected_fields
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import AppComparison, Pair, SyncStatus
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.diff import build_diff_options, compare_manifests, list_jq_questions
from argosy.gitops.live import is_self_referenced, normalize_tracking
from argosy.gitops.reconciler.app_state_comparison import evaluate_jq
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.operation_runner import keep_ignored_fields
from argosy.gitops.sync.client_side_apply_patch_builder import (
    add_last_applied,
    build_apply_patch,
    find_manifest_type,
    set_namespace,
)
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch, strategic_merge
from argosy.kube.resource_key import ResourceKey

MAX_CONCURRENT_REQUESTS: Final = 8
MAX_REASON_CHARACTERS: Final = 160
# Names a stand-in for an object that must be deleted and created again.
DRY_RUN_NAME_SUFFIX: Final = "-argosy-rehearsal"


@dataclass(frozen=True)
class DryRunSyncResult:
    """The predicted state after a sync. `refused` and `unproven` list objects with the reason."""

    status: SyncStatus
    written_count: int = 0
    refused: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


async def run_dry_run_sync(reader: ApplicationReader, app: Application, app_state: AppState) -> DryRunSyncResult:
    comparison = app_state.comparison
    if comparison.status is SyncStatus.SYNCED:
        return DryRunSyncResult(SyncStatus.SYNCED)
    respected_comparison = (
        await keep_ignored_fields(app, comparison, reader.reconciler_settings)
        if RESPECT_OPTION in app.policy.options
        else comparison
    )
    pairs = [pair for pair in respected_comparison.pairs if pair.differs and pair.desired is not None]
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
    responses = await asyncio.gather(*(_predict_object(reader, pair, app_state, semaphore) for pair in pairs))
    refused = tuple(reason for _, reason, _ in responses if reason)
    unproven = _group_by_reason(
        [(pair.key, reason) for pair, (_, _, reason) in zip(pairs, responses, strict=True) if reason]
    )
    predicted = {
        pair.key: manifest for pair, (manifest, _, _) in zip(pairs, responses, strict=True) if manifest is not None
    }
    status = (await _compare_predicted(reader, app, app_state, predicted)).status
    return DryRunSyncResult(status, len(predicted), refused, unproven)


async def _predict_object(
    reader: ApplicationReader, pair: Pair, app_state: AppState, semaphore: asyncio.Semaphore
) -> tuple[Manifest | None, str, str]:
    """Return the predicted manifest, or the refusal, or the reason why it is unknown."""
    desired, live = pair.desired or {}, app_state.live.get(pair.key) or pair.live
    name = f"{pair.key.kind}/{pair.key.name}"
    async with semaphore:
        try:
            return await _send_dry_run(reader, pair, set_namespace(desired, pair.key), live), "", ""
        except ArgosyError as error:
            if isinstance(error, ClusterError) and error.code == 404 and pair.key.namespace and live is None:
                return None, "", f"namespace {pair.key.namespace} or the kind does not exist yet"
            reason = _describe_refusal(error, pair.key.kind == "Secret")
            is_refusal = isinstance(error, ClusterError) and error.code in (400, 409, 422)
            return (None, f"{name}: {reason}", "") if is_refusal else (None, "", reason)


def _group_by_reason(reasons: list[tuple[ResourceKey, str]]) -> tuple[str, ...]:
    """Group objects by reason."""
    lines = []
    for reason in dict.fromkeys(text for _, text in reasons):
        names = [f"{key.kind}/{key.name}" for key, text in reasons if text == reason]
        more_text = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(f"{names[0]}{more_text}: {reason}")
    return tuple(lines)


async def _send_dry_run(reader: ApplicationReader, pair: Pair, desired: Manifest, live: Manifest | None) -> Manifest:
    modified = add_last_applied(desired)
    if live is None:
        return await reader.cluster.create(modified, dry_run=True, manager=FIELD_MANAGER)
    if _requests_recreation(desired):
        return await _create_stand_in(reader, pair, modified)
    if live.get("apiVersion") != modified["apiVersion"]:
        return await reader.cluster.apply(modified, manager=FIELD_MANAGER, force=True, dry_run=True)
    patch = build_apply_patch(modified, live)
    shape = find_manifest_type(modified)
    merged: Any = merge_patch.apply(live, patch) if shape is None else strategic_merge.apply(live, patch, shape)
    return await reader.cluster.replace(merged, dry_run=True, manager=FIELD_MANAGER)


def _requests_recreation(desired: Manifest) -> bool:
    options = str((desired["metadata"].get("annotations") or {}).get(SYNC_OPTIONS) or "").split(",")
    return all(word in options for word in RECREATE_OPTIONS.split(","))


async def _create_stand_in(reader: ApplicationReader, pair: Pair, modified: Manifest) -> Manifest:
    """Create a stand-in with another name (dry run), because the old object still exists."""
    name = f"{pair.key.name[: 253 - len(DRY_RUN_NAME_SUFFIX)]}{DRY_RUN_NAME_SUFFIX}"
    stand_in = {**modified, "metadata": {**modified["metadata"], "name": name}}
    created = await reader.cluster.create(stand_in, dry_run=True, manager=FIELD_MANAGER)
    return {**created, "metadata": {**created["metadata"], "name": pair.key.name}}


async def _compare_predicted(
    reader: ApplicationReader, app: Application, app_state: AppState, predicted: dict[ResourceKey, Manifest]
) -> AppComparison:
    rules, looker = reader.reconciler_settings, reader.comparer
    compare_rules = replace(build_diff_options(app, rules.diff, cache_salt=repr(rules.tracking)), server_side=False)
    desired = {pair.key: pair.desired for pair in app_state.comparison.pairs if pair.desired is not None}
    live = {pair.key: pair.live for pair in app_state.comparison.pairs if pair.live is not None}
    live |= {key: normalize_tracking(desired[key], manifest, rules.tracking) for key, manifest in predicted.items()}
    jq_inputs = list_jq_questions(app_state.desired.manifests, live, compare_rules, find_shape=looker.find_shape)
    return compare_manifests(
        app_state.desired.manifests,
        live,
        compare_rules,
        jq_results=await evaluate_jq(rules, compare_rules, jq_inputs),
        is_own=partial(is_self_referenced, tracking=rules.tracking),
        find_shape=looker.find_shape,
    )


def _describe_refusal(error: Exception, is_secret: bool) -> str:
    """Return the refused fields with the server's reasons, without values, which the server may quote."""
    if is_secret:
        return "refused by the API server"
    if isinstance(error, ClusterError) and (fields := read_rejected_fields(error.message, error.details)):
        return ", ".join(f"{name}: {message.rpartition(': ')[2]}" for name, message in fields.items())
    text = " ".join(str(error).split()).partition("; ")[0]
    return text if len(text) <= MAX_REASON_CHARACTERS else f"{text[: MAX_REASON_CHARACTERS - 1]}…"
