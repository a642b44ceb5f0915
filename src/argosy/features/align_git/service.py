"""Aligns several Applications: proposals, edited files and proof.

In: a reader, Applications, a working tree. Out: Alignment. Never: a status without a comparison; writes; prints.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.align_git.dry_run_sync_proof import AlignmentProof, prove_trial
from argosy.features.align_git.in_memory_alignment_trial import ApplicationTrial, load_tree
from argosy.features.align_git.proposal_search_by_trial import AlignOptions, TrialResult, find_best_trial
from argosy.features.align_git.working_tree_edits import WorkingTreeEdits
from argosy.gitops.analysis.alignment.git_change_proposal_types import Proposal, ProposalKind
from argosy.gitops.analysis.alignment.sync_and_health_counts import AlignmentTally, count_statuses
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader

MAX_CONCURRENT_APPLICATIONS: Final = 4
ReportAlignProgress = Callable[[int], None]


@dataclass(frozen=True)
class AlignedApplication:
    """One Application: its proposals, the applied ones, the edited files and the proof."""

    app: Application
    proposals: tuple[Proposal, ...]
    done: tuple[Proposal, ...]
    proof: AlignmentProof
    paths: tuple[str, ...] = ()
    manual_steps: tuple[str, ...] = ()  # manual steps, each with the reason
    parent: str = ""  # the Application that creates this one
    broken_by: tuple[str, ...] = ()  # files edited for other Applications that break this one

    @property
    def is_accepted(self) -> bool:
        """True if it may stay OutOfSync: Healthy, without errors, and an operator sets the differing fields."""
        has_accept_proposal = any(proposal.kind is ProposalKind.ACCEPT for proposal in self.proposals)
        after_sync = self.proof.synced
        return (
            has_accept_proposal
            and after_sync.health == "Healthy"
            and not after_sync.errors
            and not self.proof.dry_run.refused
        )

    @property
    def is_aligned(self) -> bool:
        return (self.proof.is_proven or self.is_accepted) and not self.manual_steps

    def to_wire(self) -> dict[str, Any]:
        return {
            "application": self.app.name,
            "proposals": [proposal.to_wire() | {"done": proposal in self.done} for proposal in self.proposals],
            **self.proof.to_wire(),
            "files": list(self.paths),
            "byHand": list(self.manual_steps),
        }


@dataclass(frozen=True)
class Alignment:
    apps: tuple[AlignedApplication, ...]
    files: WorkingTreeEdits | None

    @property
    def before(self) -> AlignmentTally:
        return count_statuses(aligned.proof.before for aligned in self.apps)

    @property
    def after(self) -> AlignmentTally:
        """Compared with the current live state."""
        return count_statuses(aligned.proof.after for aligned in self.apps)

    @property
    def synced(self) -> AlignmentTally:
        """After a dry-run sync of each Application."""
        return count_statuses(aligned.proof.synced for aligned in self.apps)

    @property
    def is_aligned(self) -> bool:
        return all(aligned.is_aligned for aligned in self.apps)

    @property
    def sync_order(self) -> list[str]:
        """Names of Applications to sync, parents before children, because a parent creates its children."""
        changed = [aligned for aligned in self.apps if aligned.paths or aligned.proof.after.sync != "Synced"]
        parents = {aligned.parent for aligned in changed if aligned.paths} - {""}
        names = [aligned.app.name for aligned in self.apps if aligned.app.name in parents]
        names += sorted(parents - set(names))
        out_of_sync = (
            aligned for aligned in changed if aligned.proof.after.sync != "Synced" and not aligned.proof.fault
        )
        return [*names, *(aligned.app.name for aligned in out_of_sync if aligned.app.name not in names)]

    def to_wire(self) -> dict[str, Any]:
        return {
            "applications": [aligned.to_wire() for aligned in self.apps],
            "before": self.before.to_wire(),
            "after": self.after.to_wire(),
            "afterSync": self.synced.to_wire(),
            "syncInOrder": self.sync_order,
        }


async def align_applications(
    reader: ApplicationReader,
    apps: Sequence[Application],
    files: WorkingTreeEdits | None,
    options: AlignOptions,
    report_progress: ReportAlignProgress = lambda number: None,
) -> Alignment:
    """Without files, proposals are only proven. `report_progress` gets the number of finished Applications.

    If an edit would break another Application, everything is tried again without that file.
    """
    alignment = await _align_once(reader, apps, files, options, report_progress)
    protected_files = frozenset(path for aligned in alignment.apps for path in aligned.broken_by)
    if not protected_files:
        return alignment
    if files is not None:
        files.reset()
    return await _align_once(reader, apps, files, replace(options, protected_files=protected_files), report_progress)


async def _align_once(
    reader: ApplicationReader,
    apps: Sequence[Application],
    files: WorkingTreeEdits | None,
    options: AlignOptions,
    report_progress: ReportAlignProgress,
) -> Alignment:
    semaphore, counter = asyncio.Semaphore(MAX_CONCURRENT_APPLICATIONS), itertools.count(1)

    async def run_trial(app: Application) -> TrialResult:
        async with semaphore:
            result = await find_best_trial(reader, app, options)
            report_progress(next(counter))
            return result

    results = await asyncio.gather(*(run_trial(app) for app in apps))
    written = [files.apply_proposals(item.trial, item.done) if files else ([], []) for item in results]
    edits = _collect_edits(results, files)
    all_by_name = {item.name: item for item in (*options.siblings, *apps)}
    aligned = []
    for app, item, (paths, faults) in zip(apps, results, written, strict=True):
        proof = await _prove_with_shared_edits(reader, app, item, edits)
        parent = all_by_name.get(app.parent)
        if parent is not None and files is not None:
            faults += await _describe_unread_changes(reader, app, parent, files)
        name = parent.name if parent else ""
        broken = await _find_breaking_files(reader, proof, item, edits)
        aligned.append(
            AlignedApplication(app, tuple(item.proposals), item.done, proof, tuple(paths), tuple(faults), name, broken)
        )
    known_keys = {app.key for app in apps}
    others = [item for item in options.siblings if item.key not in known_keys and not item.deletion_timestamp]
    return Alignment((*aligned, *await _prove_affected_applications(reader, others, results, edits)), files)


def _collect_edits(results: Sequence[TrialResult], files: WorkingTreeEdits | None) -> dict[str, tuple[bytes, bytes]]:
    """Return old and new content of edited source files by path."""
    source_edits = {
        path: (result.trial.bases[path], new) for result in results for path, new in result.trial.files.items()
    }
    return source_edits | {
        path: (old.encode(), new.encode()) for path, (old, new) in (files.changed if files else {}).items()
    }


async def _prove_affected_applications(
    reader: ApplicationReader,
    others: Sequence[Application],
    results: Sequence[TrialResult],
    edits: Mapping[str, tuple[bytes, bytes]],
) -> list[AlignedApplication]:
    """Check Applications that were not selected but read an edited file."""
    urls = {item.trial.url for item in results if item.trial.files}
    aligned = []
    for app in (item for item in others if item.sources and item.sources[0].repo_url in urls):
        try:
            result = TrialResult(ApplicationTrial(app), app_state=await reader.compare(app, from_git=True))
        except ArgosyError:
            continue
        if await _find_shared_edits(reader, result, edits):
            proof = await _prove_with_shared_edits(reader, app, result, edits)
            aligned.append(
                AlignedApplication(
                    app, (), (), proof, broken_by=await _find_breaking_files(reader, proof, result, edits)
                )
            )
    return aligned


async def _find_breaking_files(
    reader: ApplicationReader, proof: AlignmentProof, result: TrialResult, edits: Mapping[str, tuple[bytes, bytes]]
) -> tuple[str, ...]:
    """Return the shared edits if they make the API server refuse a previously Synced Application."""
    if proof.before.sync != "Synced" or not proof.dry_run.refused:
        return ()
    return tuple(await _find_shared_edits(reader, result, edits))


async def _describe_unread_changes(
    reader: ApplicationReader, app: Application, parent: Application, files: WorkingTreeEdits
) -> list[str]:
    """argo: the parent creates the Application from Git; if it tracks another branch, it does not see the change."""
    changed = files.changed
    changed_paths = [entry.path for entry in files.applications.get(app.name, ()) if entry.path in changed]
    if not changed_paths or not parent.sources:
        return []
    try:
        tree = await load_tree(reader, ApplicationTrial(parent))
        is_read = (
            tree.find_entry(changed_paths[0]) is not None
            and tree.read_file(changed_paths[0]) == changed[changed_paths[0]][0].encode()
        )
    except ArgosyError:
        return []
    if is_read:
        return []
    ref = parent.sources[0].ref or "HEAD"
    problem = (
        f"it is created by {parent.name}, which tracks {ref}, where {changed_paths[0]} differs from this working tree"
    )
    return [f"{problem}: bring the change there, or let {parent.name} track this branch"]


async def _prove_with_shared_edits(
    reader: ApplicationReader, app: Application, result: TrialResult, edits: Mapping[str, tuple[bytes, bytes]]
) -> AlignmentProof:
    """Prove the trial together with the edits of other Applications in files that it reads."""
    shared = await _find_shared_edits(reader, result, edits)
    if not shared:
        return await prove_trial(reader, app, result.trial, result.app_state)
    return await prove_trial(reader, app, replace(result.trial, files={**shared, **result.trial.files}))


async def _find_shared_edits(
    reader: ApplicationReader, result: TrialResult, edits: Mapping[str, tuple[bytes, bytes]]
) -> dict[str, bytes]:
    """Return edited files that it reads, if their old content is equal in its tree."""
    if result.app_state is None:
        return {}
    read = {
        render_input.path
        for part in result.app_state.desired.rendered
        for render_input in part.inputs
        if not render_input.scope
    }
    chosen = {
        path: old_and_new for path, old_and_new in edits.items() if path in read and path not in result.trial.files
    }
    if not chosen:
        return {}
    try:
        tree = await load_tree(reader, result.trial)
        return {path: new for path, (old, new) in chosen.items() if tree.read_file(path) == old}
    except ArgosyError:
        return {}
