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
from argosy.gitops.analysis.alignment.observation import RECREATE, RESPECT
from argosy.gitops.analysis.evidence import refused_fields
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Comparison, Pair, SyncStatus
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.diff import compare, questions, rules_for
from argosy.gitops.live import is_self_referenced, settle
from argosy.gitops.reconciler.app_state import Look, removed_by
from argosy.gitops.reconciler.operation import respected
from argosy.gitops.sync.client_side_patch import patch_of, placed, shape_of, with_last_applied
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch, strategic_merge

AT_ONCE: Final = 8
LONGEST: Final = 160
STANDS_IN: Final = "-argosy-rehearsal"  # names a stand-in for an object that must be deleted and created again


@dataclass(frozen=True)
class Rehearsal:
    """The predicted state after a sync. `refused` and `unproven` list objects with the reason."""

    status: SyncStatus
    written: int = 0
    refused: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


async def rehearsed(reader: Reader, app: Application, look: Look) -> Rehearsal:
    comparison = look.comparison
    if comparison.status is SyncStatus.SYNCED:
        return Rehearsal(SyncStatus.SYNCED)
    wanted = await respected(app, comparison, reader.rules) if RESPECT in app.policy.options else comparison
    pairs = [pair for pair in wanted.pairs if pair.differs and pair.desired is not None]
    gate = asyncio.Semaphore(AT_ONCE)
    said = await asyncio.gather(*(_asked(reader, pair, look, gate) for pair in pairs))
    refused = tuple(each for _, each, _ in said if each)
    unproven = _counted([(pair.key, each) for pair, (_, _, each) in zip(pairs, said, strict=True) if each])
    made = {pair.key: found for pair, (found, _, _) in zip(pairs, said, strict=True) if found is not None}
    status = (await _compared(reader, app, look, made)).status
    return Rehearsal(status, len(made), refused, unproven)


async def _asked(reader: Reader, pair: Pair, look: Look, gate: asyncio.Semaphore) -> tuple[Manifest | None, str, str]:
    """Return the predicted manifest, or the refusal, or the reason why it is unknown."""
    desired, live = pair.desired or {}, look.live.get(pair.key) or pair.live
    name = f"{pair.key.kind}/{pair.key.name}"
    async with gate:
        try:
            return await _sent(reader, pair, placed(desired, pair.key), live), "", ""
        except ArgosyError as error:
            if isinstance(error, ClusterError) and error.code == 404 and pair.key.namespace and live is None:
                return None, "", f"namespace {pair.key.namespace} or the kind does not exist yet"
            told = _short(error, pair.key.kind == "Secret")
            is_refusal = isinstance(error, ClusterError) and error.code in (400, 409, 422)
            return (None, f"{name}: {told}", "") if is_refusal else (None, "", told)


def _counted(said: list[tuple[ResourceKey, str]]) -> tuple[str, ...]:
    """Group objects by reason."""
    told = []
    for reason in dict.fromkeys(each for _, each in said):
        names = [f"{key.kind}/{key.name}" for key, each in said if each == reason]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        told.append(f"{names[0]}{more}: {reason}")
    return tuple(told)


async def _sent(reader: Reader, pair: Pair, desired: Manifest, live: Manifest | None) -> Manifest:
    modified = with_last_applied(desired)
    if live is None:
        return await reader.cluster.create(modified, dry_run=True, manager=FIELD_MANAGER)
    if _is_recreated(desired):
        return await _anew(reader, pair, modified)
    if live.get("apiVersion") != modified["apiVersion"]:
        return await reader.cluster.apply(modified, manager=FIELD_MANAGER, force=True, dry_run=True)
    patch = patch_of(modified, live)
    shape = shape_of(modified)
    made: Any = merge_patch.apply(live, patch) if shape is None else strategic_merge.apply(live, patch, shape)
    return await reader.cluster.replace(made, dry_run=True, manager=FIELD_MANAGER)


def _is_recreated(desired: Manifest) -> bool:
    options = str((desired["metadata"].get("annotations") or {}).get(SYNC_OPTIONS) or "").split(",")
    return all(word in options for word in RECREATE.split(","))


async def _anew(reader: Reader, pair: Pair, modified: Manifest) -> Manifest:
    """Create a stand-in with another name (dry run), because the old object still exists."""
    name = f"{pair.key.name[: 253 - len(STANDS_IN)]}{STANDS_IN}"
    double = {**modified, "metadata": {**modified["metadata"], "name": name}}
    made = await reader.cluster.create(double, dry_run=True, manager=FIELD_MANAGER)
    return {**made, "metadata": {**made["metadata"], "name": pair.key.name}}


async def _compared(reader: Reader, app: Application, look: Look, made: dict[ResourceKey, Manifest]) -> Comparison:
    rules, looker = reader.rules, reader.looker
    compare_rules = replace(rules_for(app, rules.compare, mark=repr(rules.tracking)), server_side=False)
    desired = {pair.key: pair.desired for pair in look.comparison.pairs if pair.desired is not None}
    live = {pair.key: pair.live for pair in look.comparison.pairs if pair.live is not None}
    live |= {key: settle(desired[key], found, rules.tracking) for key, found in made.items()}
    asked = questions(look.assembled.desired, live, compare_rules, shape_of=looker.shape_of)
    return compare(
        look.assembled.desired,
        live,
        compare_rules,
        removed=await removed_by(rules, compare_rules, asked),
        is_own=partial(is_self_referenced, tracking=rules.tracking),
        shape_of=looker.shape_of,
    )


def _short(error: Exception, is_secret: bool) -> str:
    """Return the refused fields with the server's reasons, without values, which the server may quote."""
    if is_secret:
        return "refused by the API server"
    if isinstance(error, ClusterError) and (fields := refused_fields(error.message, error.details)):
        return ", ".join(f"{name}: {said.rpartition(': ')[2]}" for name, said in fields.items())
    text = " ".join(str(error).split()).partition("; ")[0]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
