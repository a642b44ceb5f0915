"""Gathers the evidence for why fields of an Application's objects differ; `argosy.gitops.analysis` assesses it.

In: a reader, an Application, its compared state. Out: causes by object and pointer. Never: changes anything; fails
because one piece of evidence is unavailable (forbidden, or a host that does not answer).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from argosy.annotations import FIELD_MANAGER
from argosy.errors import ArgosyError, ClusterError, ManifestError, UserError
from argosy.gitops.analysis.difference_cause_detection import find_causes
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.analysis.object_versions_as_cause_evidence import Evidence, read_rejected_fields, translate_pointer
from argosy.gitops.application import Application, Source
from argosy.gitops.application.operations import ResultCode
from argosy.gitops.application.step_results import FieldOrigin, Pair
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.diff_presentation import DifferingObject
from argosy.gitops.application_client.local_source_override import LOCAL_REVISION
from argosy.gitops.application_client.removal_commit_lookup import add_removal_commits
from argosy.gitops.application_client.status_summary import read_synced_revisions, shorten_revision
from argosy.gitops.diff.go_type_round_trip import as_stored, find_manifest_shape
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.source.git.blame import Blame
from argosy.gitops.source.git.refs import SHORT_COMMIT_ID, Refs
from argosy.kube.client import Catalog
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

MAX_CONCURRENT_DRY_RUNS: Final = 8  # concurrent dry runs
MAX_DRY_RUNS: Final = 100  # objects with a dry-run apply
Causes = Mapping[str, Cause]  # by pointer; "" is the whole object


class DryRunResult(NamedTuple):
    """Result of a dry-run apply."""

    applied: Manifest | None = None
    refused: Mapping[str, str] = {}


@dataclass(frozen=True)
class DefaultBranchState:
    """Desired state on the default branch, for an Application that follows another branch."""

    branch: str = ""
    ref: str = ""
    desired: Mapping[ResourceKey, Manifest] = field(default_factory=dict)


async def explain_differences(
    reader: ApplicationReader,
    app: Application,
    app_state: AppState,
    objects: Sequence[DifferingObject],
    refs: Sequence[str] = (),
    *,
    is_brief: bool = False,
) -> dict[ResourceKey, Causes]:
    """Explain every differing field of each object. `is_brief`: without commits and other branches."""
    pairs = {pair.key: pair for pair in app_state.comparison.pairs if pair.differs}
    requests = [
        (pairs[differing.key], [difference.pointer for difference in differing.fields]) for differing in objects
    ]
    evidence_by_key = await gather_evidence(reader, app, app_state, requests, refs, is_brief=is_brief)
    causes_by_key: dict[ResourceKey, Causes] = {}
    for differing in objects:
        object_causes = find_causes(evidence_by_key[differing.key], differing.fields)
        causes_by_key[differing.key] = {
            difference.pointer: cause for difference, cause in zip(differing.fields, object_causes, strict=True)
        }
    return causes_by_key if is_brief else await add_commits(reader, app, app_state.desired, causes_by_key)


async def gather_evidence(
    reader: ApplicationReader,
    app: Application,
    app_state: AppState,
    requests: Sequence[tuple[Pair, Sequence[str]]],
    refs: Sequence[str] = (),
    *,
    is_brief: bool = False,
) -> dict[ResourceKey, Evidence]:
    """Gather the evidence for these objects, with the origins of the given pointers."""
    untracked_refs = describe_untracked_refs(app, refs, app_state.desired.revisions)
    kinds = await reader.list_kinds()
    dry_runs = await _dry_run_applies(reader, [pair for pair, _ in requests])
    skips_default_branch = is_brief or bool(untracked_refs) or not any(pair.differs for pair, _ in requests)
    default_state = (
        DefaultBranchState()
        if skips_default_branch
        else await render_default_branch(reader, app, app_state.desired, refs)
    )
    evidence_by_key: dict[ResourceKey, Evidence] = {}
    for pair, pointers in requests:
        object_evidence = _build_evidence(reader, app, app_state, pair, pointers, kinds)
        evidence_by_key[pair.key] = replace(
            object_evidence,
            predicted=dry_runs[pair.key].applied,
            rejected_fields=dry_runs[pair.key].refused or object_evidence.rejected_fields,
            default_branch=default_state.branch,
            ref=default_state.ref,
            on_default_branch=default_state.desired.get(pair.key),
            other_revision=untracked_refs,
        )
    return evidence_by_key


def describe_untracked_refs(app: Application, refs: Sequence[str], compared_revisions: Sequence[str] = ()) -> str:
    """Return the compared refs if the Application does not track them. `compared_revisions`: their revisions."""
    untracked = [
        shorten_revision(ref) for ref, source in zip(refs, app.sources) if ref and ref != (source.ref or "HEAD")
    ]
    return ", ".join(untracked) if list(compared_revisions) != read_synced_revisions(app) else ""


def _build_evidence(
    reader: ApplicationReader,
    app: Application,
    app_state: AppState,
    pair: Pair,
    pointers: Iterable[str],
    kinds: Catalog,
) -> Evidence:
    result = dict(app.state.list_results({pair.key})).get(pair.key) if app.state else None
    synced = app.state.revisions or (app.state.revision,) if app.state else ()
    return Evidence(
        app.name,
        pair,
        is_served=pair.key.group_kind in kinds,
        rejected_fields=read_rejected_fields(result.message)
        if result and result.result_code is ResultCode.SYNC_FAILED
        else {},
        with_defaults=_fill_defaults(reader, pair.desired),
        was_applied=bool(
            result and result.result_code is ResultCode.SYNCED and tuple(synced) == tuple(app_state.desired.revisions)
        ),
        origins=_find_origins(app_state.desired, pair, pointers),
    )


def _fill_defaults(reader: ApplicationReader, desired: Manifest | None) -> Manifest | None:
    try:
        return (
            as_stored(desired, find_manifest_shape(desired, reader.comparer.find_shape))
            if desired is not None
            else None
        )
    except ManifestError:
        return None


def _find_origins(desired: DesiredState, pair: Pair, pointers: Iterable[str]) -> dict[str, FieldOrigin]:
    if pair.desired is None:
        return {}
    reference = pair.compared or pair.live or pair.desired
    # Live lists may be in another order than in Git.
    pointer_pairs = [
        (live_pointer, translate_pointer(pair.desired, live_pointer, reference)) for live_pointer in pointers
    ]
    origins = (
        (live_pointer, render_result.origins.find(pair.key, desired_pointer))
        for live_pointer, desired_pointer in pointer_pairs
        for render_result in desired.rendered
    )
    return {pointer: origin for pointer, origin in origins if origin is not None}


async def _dry_run_applies(reader: ApplicationReader, pairs: Sequence[Pair]) -> dict[ResourceKey, DryRunResult]:
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_DRY_RUNS)

    async def dry_run(pair: Pair) -> DryRunResult:
        if pair.desired is None or pair.live is None or not pair.differs:
            return DryRunResult()
        async with semaphore:
            try:
                return DryRunResult(
                    await reader.cluster.apply(pair.desired, manager=FIELD_MANAGER, force=True, dry_run=True)
                )
            except ClusterError as error:
                # k8s: a dry run needs permission to write
                return DryRunResult(
                    refused=read_rejected_fields(error.message, error.details) if error.code != 403 else {}
                )
            except ArgosyError:
                return DryRunResult()

    results = await asyncio.gather(*(dry_run(pair) for pair in pairs[:MAX_DRY_RUNS]))
    return {pair.key: DryRunResult() for pair in pairs} | {pair.key: result for pair, result in zip(pairs, results)}


# -- the default branch ------------------------------------------------------------------------------------------------


async def render_default_branch(
    reader: ApplicationReader, app: Application, desired: DesiredState | None = None, refs: Sequence[str] = ()
) -> DefaultBranchState:
    """Render the default branch; empty if the Application tracks it, a tag or a commit, which are chosen on purpose.

    A ref that no longer exists counts as a branch.
    """
    source = app.sources[0] if len(app.sources) == 1 else None
    if source is None or source.chart or (desired and desired.revisions == (LOCAL_REVISION,)):
        return DefaultBranchState()
    ref = (refs[0] if refs else "") or source.ref
    try:
        remote_refs = await _fetch_refs(reader, app, source)
        branch, tracked_branch = remote_refs.default_branch, ref.removeprefix("refs/heads/")
        is_chosen = tracked_branch not in remote_refs.branches and (
            remote_refs.find_commit(tracked_branch) is not None or SHORT_COMMIT_ID.fullmatch(tracked_branch)
        )
        if not branch or is_chosen or remote_refs.find_commit(branch) == remote_refs.find_commit(tracked_branch):
            return DefaultBranchState()
        branch_state = await reader.render_desired_state(app, (branch,))
    except ArgosyError:
        return DefaultBranchState()
    return DefaultBranchState(
        branch,
        tracked_branch,
        {key_of(manifest): manifest for manifest in branch_state.manifests if manifest["metadata"].get("name")},
    )


async def explain_render_error(
    reader: ApplicationReader, app: Application, error: UserError, refs: Sequence[str] = ()
) -> Cause:
    """Explain a render error: perhaps only the tracked branch fails to render."""
    default_state = (
        await render_default_branch(reader, app, refs=refs)
        if not describe_untracked_refs(app, refs)
        else DefaultBranchState()
    )
    problem, _, advice = str(error).partition("; ")
    if not default_state.branch:
        return Cause(CauseKind.UNKNOWN, problem, advice)
    text = f"{default_state.ref} cannot be rendered, and {default_state.branch} can: {problem}"
    return Cause(CauseKind.STALE_BRANCH, text, f"argosy app set {app.name} --revision {default_state.branch}")


async def _fetch_refs(reader: ApplicationReader, app: Application, source: Source) -> Refs:
    return await reader.reconciler_settings.repositories.mirror(source.repo_url, project=app.project).list_refs(
        max_age=60.0
    )


# -- authors -----------------------------------------------------------------------------------------------------------


async def add_commits(
    reader: ApplicationReader, app: Application, desired: DesiredState, causes_by_key: Mapping[ResourceKey, Causes]
) -> dict[ResourceKey, Causes]:
    """Add the commits that wrote, or removed, each value in Git."""
    return await add_removal_commits(reader, app, desired, await _add_blame(reader, app, desired, causes_by_key))


async def _add_blame(
    reader: ApplicationReader, app: Application, desired: DesiredState, causes_by_key: Mapping[ResourceKey, Causes]
) -> dict[ResourceKey, Causes]:
    lines = {
        (cause.file, cause.line)
        for object_causes in causes_by_key.values()
        for cause in object_causes.values()
        if _has_line(cause)
    }
    blames = await asyncio.gather(*(_blame_line(reader, app, desired, *cause) for cause in lines))
    commits = {line: cause for line, cause in zip(lines, blames, strict=True) if cause is not None}
    return {
        key: {
            pointer: _with_commit(cause, commits.get((cause.file, cause.line)))
            for pointer, cause in object_causes.items()
        }
        for key, object_causes in causes_by_key.items()
    }


def _with_commit(cause: Cause, commit: Blame | None) -> Cause:
    if commit is None or not _has_line(cause):
        return cause
    return replace(cause, revision=commit.revision, author=commit.author, subject=commit.subject)


def _has_line(cause: Cause) -> bool:
    return bool(cause.file and cause.line and not cause.repository)


async def _blame_line(
    reader: ApplicationReader, app: Application, desired: DesiredState, file: str, line: int
) -> Blame | None:
    """Blame a line; None if several sources have such a line, or for a local folder."""
    commits: set[Blame] = set()
    for source, revision in zip(desired.sources, desired.revisions):
        if revision == LOCAL_REVISION or source.chart:
            continue
        try:
            mirror = reader.reconciler_settings.repositories.mirror(source.repo_url, project=app.project)
            commit = await mirror.blame(revision, file, line)
        except ArgosyError:
            continue
        commits |= {commit} if commit else set()
    return commits.pop() if len(commits) == 1 else None


__all__ = [
    "Causes",
    "DefaultBranchState",
    "add_commits",
    "describe_untracked_refs",
    "explain_differences",
    "explain_render_error",
    "gather_evidence",
    "render_default_branch",
]
