"""Plans a promotion: the release, the file edits and the gate results.

In: a RepositorySnapshot, the cluster's state, a PromotionRequest. Out: PromotionPlan. Never: writes; plans file edits
without rendering them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from argosy.errors import ArgosyError, UserError
from argosy.features.promote.argosy_check_of_edited_repository import check_edited_repository
from argosy.features.promote.classified_manifest_fields import PROMOTED_KINDS, Release
from argosy.features.promote.edit_verification import find_unexpected_change
from argosy.features.promote.environment_cluster_state import EnvironmentClusterState, parse_timestamp
from argosy.features.promote.environment_sync_next_step import DeployedRelease, NextStep, find_next_step
from argosy.features.promote.environments_at_commit import EditedTree, EnvironmentSnapshot, RepositorySnapshot
from argosy.features.promote.file_edits import OverlayWriter
from argosy.features.promote.gates import (
    EnvironmentState,
    GateFacts,
    GateResult,
    describe_following_gates,
    evaluate_gates,
    evaluate_renewed_approvals,
    list_holds,
    list_log_holds,
)
from argosy.features.promote.promotion_changes import PromotionChanges, mask_field_value
from argosy.features.promote.promotion_pipeline import PromotionPipeline, normalize_folder
from argosy.features.promote.release_lookup import ReleaseFinder
from argosy.features.promote.shallow_or_behind_clone_gate import check_clone
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment
from argosy.gitops.status.rollback_detection import find_active_rollback
from argosy.gitops.status.sync_hold_annotation import describe_hold, read_hold
from argosy.kube.objects import Manifest


@dataclass(frozen=True)
class PromotionRequest:
    """The arguments of a promotion."""

    target: str
    release: str = ""
    skipped: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class PromotionPlan:
    source: DeliveryEnvironment
    target: DeliveryEnvironment
    release: Release
    replaced: Release  # the current release of the target
    changes: PromotionChanges
    files: dict[str, bytes]  # edited files with their new content
    gate_results: tuple[GateResult, ...]
    request: PromotionRequest
    is_rollback: bool = False  # the target had this release before
    following_gates: tuple[str, ...] = ()  # gates of the environments after the target
    name_prefix: str = ""  # of object names in the target
    commit_count: int = 0  # to the source's files since the target's release
    notes: tuple[str, ...] = field(default=())

    @property
    def is_open(self) -> bool:
        return all(result.is_open for result in self.gate_results)

    @property
    def closed_gates(self) -> list[GateResult]:
        return [result for result in self.gate_results if not result.is_open]


class PromotionPlanner:
    def __init__(
        self, snapshot: RepositorySnapshot, cluster_state: EnvironmentClusterState, now: datetime | None = None
    ) -> None:
        self.snapshot, self.cluster_state = snapshot, cluster_state
        self.releases = ReleaseFinder(snapshot)
        self.now = now or cluster_state.now or datetime.now(UTC)  # compare cluster times with the cluster's clock
        self._deployed_by_environment: dict[str, DeployedRelease | None] = {}
        self._next_steps: dict[str, NextStep | None] = {}
        self._check_results: dict[tuple[tuple[str, bytes], ...], tuple[bool, str]] = {}

    def plan(self, request: PromotionRequest) -> PromotionPlan:
        snapshot, pipeline = self.snapshot, self.snapshot.pipeline
        target = pipeline.find(request.target)
        source = pipeline.find_source(target, request.skipped)
        if request.skipped and not request.reason:
            raise UserError(f"skipping {request.skipped[0]} requires a reason; add --reason TEXT")
        replaced = snapshot.get_release(target)
        release, source_snapshot, is_back = self.releases.choose_release(request.release, source, target)
        target_snapshot = snapshot.get_environment(target)
        changes = snapshot.compute_changes(source_snapshot, target_snapshot)
        files, problem = self._edit_files(changes, source_snapshot, target_snapshot)
        check = partial(self._run_check, files)
        facts = self._gather_facts(source, target, release, check)
        results = (
            _evaluate_rollback(pipeline, target, facts) if is_back else evaluate_gates(pipeline, source, target, facts)
        )
        results = [*check_clone(snapshot.clone), *results]
        if not is_back and not request.skipped:
            results = [*self._check_unpromoted_versions(source, release, request), *results]
        if problem:
            results.insert(0, GateResult("files", False, problem, kind="files"))
        count = 0 if is_back else self._count_commits(replaced, release, source_snapshot)
        notes = tuple(self._list_notes(changes, source_snapshot, target_snapshot, files, replaced))
        prefix = target_snapshot.kustomization.decoration.prefix if target_snapshot.kustomization else ""
        after = tuple(describe_following_gates(pipeline, target))
        return PromotionPlan(
            source,
            target,
            release,
            replaced,
            changes,
            files,
            tuple(results),
            request,
            is_back,
            after,
            prefix,
            count,
            notes,
        )

    def _check_unpromoted_versions(
        self, source: DeliveryEnvironment, release: Release, request: PromotionRequest
    ) -> list[GateResult]:
        """Close the gate if the source's version was committed by hand and thereby skipped the previous environment."""
        before = self.snapshot.pipeline.find_previous(source)
        if (
            before is None
            or release != self.snapshot.get_release(source)
            or not self.snapshot.has_unpromoted_versions(source)
        ):
            return []
        reason = f"{release.name} was written to {source.name} by hand, and has not been in {before.name}"
        reason += f": {request.reason}" if request.reason else ""
        opened_by = "anybody who gives a reason: --reason TEXT"
        return [
            GateResult("way", bool(request.reason), reason, opened_by, f"argosy promote plan --to {source.name}", "way")
        ]

    def find_pending_plan(self, target: DeliveryEnvironment) -> PromotionPlan | None:
        """Plan the next promotion; None if there is nothing to promote."""
        source = self.snapshot.pipeline.find_source(target)
        if not self.snapshot.compute_changes(
            self.snapshot.get_environment(source), self.snapshot.get_environment(target)
        ).moves:
            return None
        return self.plan(PromotionRequest(target.name))

    def resolve_release(self, request: PromotionRequest) -> Release:
        target = self.snapshot.pipeline.find(request.target)
        return self.releases.choose_release(
            request.release, self.snapshot.pipeline.find_source(target, request.skipped), target
        )[0]

    # -- what is written --

    def _edit_files(
        self, changes: PromotionChanges, source_snapshot: EnvironmentSnapshot, target_snapshot: EnvironmentSnapshot
    ) -> tuple[dict[str, bytes], str]:
        """Return the edited files, verified by rendering them; or the reason why they cannot be edited."""
        if not changes.moves:
            return {}, ""
        try:
            plain = self.snapshot.list_plain_manifest_files(target_snapshot)
            writer = OverlayWriter(
                target_snapshot.environment.path, self.snapshot.read_file, source_snapshot.kustomization, plain
            )
            files = {path: text.encode() for path, text in writer.write(changes.moves).items()}
            after = self.snapshot.render_environment(
                target_snapshot.environment, EditedTree(self.snapshot.tree, files), self.snapshot.head
            )
        except UserError as error:
            return {}, str(error)
        if unexpected := find_unexpected_change(changes.moves, target_snapshot.contents, after.contents):
            problem = f"the edited files of {target_snapshot.environment.name} do not render as planned: {unexpected}"
            return {}, f"{writer.path or writer.folder}: {problem}; edit them by hand, and commit them"
        return files, ""

    # -- facts --

    def _run_check(self, files: dict[str, bytes]) -> tuple[bool, str]:
        """Check the edited files; equal edits are checked once."""
        key = tuple(sorted(files.items()))
        if key not in self._check_results:
            self._check_results[key] = check_edited_repository(self.snapshot, files)
        return self._check_results[key]

    def _gather_facts(
        self, source: DeliveryEnvironment, target: DeliveryEnvironment, release: Release, check: Any
    ) -> GateFacts:
        cluster_state, snapshot = self.cluster_state, self.snapshot
        target_state, source_state = self.get_state(target, release), self.get_state(source, release)
        unavailable_reason = cluster_state.unavailable_reason
        if source_state is None and not unavailable_reason:
            has_other_path = cluster_state.apps.get(source.name) is not None
            unavailable_reason = f"Application {source.application} not found"
            unavailable_reason = (
                f"Application {source.application} does not deploy {source.path}"
                if has_other_path
                else unavailable_reason
            )
        notebooks = {
            name: run
            for (environment_name, name), run in cluster_state.notebooks.items()
            if environment_name == source.name
        }
        released = datetime.fromtimestamp(snapshot.repository.get_commit_seconds(release.commit), UTC)
        unpulled_entry = snapshot.describe_unpulled_entry(target)
        return GateFacts(
            self.now,
            snapshot.log,
            release,
            released,
            check,
            source_state,
            target_state,
            notebooks,
            unavailable_reason,
            unpulled_entry,
        )

    def get_state(self, environment: DeliveryEnvironment, release: Release | None = None) -> EnvironmentState | None:
        app = self.cluster_state.apps.get(environment.name)
        if app is None or environment.path not in _list_source_paths(app):
            return None  # an Application of the same name for another path or repository
        status: Manifest = app.get("status") or {}
        health, sync = status.get("health") or {}, status.get("sync") or {}
        state = status.get("operationState") or {}
        history = [item for item in status.get("history") or () if isinstance(item, dict)]
        deployed = parse_timestamp(history[-1].get("deployedAt")) if history else None
        is_bad = state.get("phase") in ("Failed", "Error")
        deployed_revision = find_deployed_revision(status)
        runs = self._contains_release(environment, release, deployed_revision) if release else None
        is_past = bool(runs and release) and not self._still_runs_release(environment, release, deployed_revision)
        hold = read_hold(app["metadata"].get("annotations") or {})
        return EnvironmentState(
            str(health.get("status") or "Unknown"),
            parse_timestamp(health.get("lastTransitionTime")) or parse_timestamp(state.get("finishedAt")),
            str(sync.get("status") or "Unknown"),
            runs and not is_past,
            deployed_revision,
            deployed,
            describe_hold(hold, environment.application) if hold else "",
            f"its last sync {str(state.get('phase')).lower()}" if is_bad else "",
            is_past,
            runs is False and release is not None and self._is_release_unpushed(environment, release),
            str(find_active_rollback(status, _read_target_revision(app)) or ""),
        )

    def _is_release_unpushed(self, environment: DeliveryEnvironment, release: Release) -> bool:
        return self.snapshot.repository.is_unpushed(self._find_first_commit(environment, release))

    def get_deployed_release(self, environment: DeliveryEnvironment) -> DeployedRelease | None:
        """Return the release deployed last; None if there is no cluster data."""
        if environment.name not in self._deployed_by_environment:
            self._deployed_by_environment[environment.name] = self._find_deployed_release(environment)
        return self._deployed_by_environment[environment.name]

    def _find_deployed_release(self, environment: DeliveryEnvironment) -> DeployedRelease | None:
        state = self.get_state(environment)
        if state is None:
            return None
        if not state.revision or not self.snapshot.repository.find_commit(state.revision):
            return DeployedRelease(state.revision)
        try:
            return DeployedRelease(state.revision, self.snapshot.get_release(environment, state.revision))
        except ArgosyError:
            return DeployedRelease(state.revision)  # that old revision cannot be rendered any more

    def get_next_step(self, environment: DeliveryEnvironment) -> NextStep | None:
        """Return the step that brings the environment to the state in Git; None if none is needed."""
        if environment.name not in self._next_steps:
            self._next_steps[environment.name] = self._find_next_step(environment)
        return self._next_steps[environment.name]

    def _find_next_step(self, environment: DeliveryEnvironment) -> NextStep | None:
        snapshot, state = self.snapshot, self.get_state(environment)
        deployed = self.get_deployed_release(environment)
        build_step = partial(find_next_step, environment, state, deployed, snapshot.get_release(environment))
        if build_step(is_unpushed=False) is None:
            return None  # the common case, without a Git call
        newest = snapshot.repository.find_last_change(snapshot.head, snapshot.get_environment(environment).inputs)
        return build_step(is_unpushed=snapshot.repository.is_unpushed(newest))

    def list_holds(self, environment: DeliveryEnvironment) -> list[GateResult]:
        """List the holds of an environment, even if no promotion is pending."""
        return list_holds(environment, GateFacts(self.now, self.snapshot.log, target=self.get_state(environment)))

    def _contains_release(self, environment: DeliveryEnvironment, release: Release, revision: str) -> bool | None:
        """True if the synced revision contains the release, or for a promoted release its promotion commit."""
        if not revision:
            return False
        return self.snapshot.repository.contains(revision, self._find_first_commit(environment, release))

    def _find_first_commit(self, environment: DeliveryEnvironment, release: Release) -> str:
        """Return the first commit at which the environment has the release."""
        earlier = self.releases.find_earlier_release(environment, release.commit)
        return earlier[1] if earlier else release.commit

    def _still_runs_release(self, environment: DeliveryEnvironment, release: Release | None, revision: str) -> bool:
        """True if a later revision still has all promoted fields of the release."""
        assert release is not None
        snapshot, since = self.snapshot, self._find_first_commit(environment, release)
        if not snapshot.repository.count_commits(since, revision, snapshot.get_environment(environment).inputs):
            return True
        old_contents, new_contents = (
            snapshot.get_environment(environment, commit).contents for commit in (since, revision)
        )
        return old_contents.select_values(*PROMOTED_KINDS) == new_contents.select_values(*PROMOTED_KINDS)

    def _count_commits(self, replaced: Release, release: Release, source_snapshot: EnvironmentSnapshot) -> int:
        repository = self.snapshot.repository
        if not repository.find_commit(replaced.commit) or replaced.commit == release.commit:
            return 0
        return repository.count_commits(replaced.commit, release.commit, source_snapshot.inputs)

    def _list_notes(
        self,
        changes: PromotionChanges,
        source_snapshot: EnvironmentSnapshot,
        target_snapshot: EnvironmentSnapshot,
        files: dict[str, bytes],
        replaced: Release,
    ) -> list[str]:
        name, path = source_snapshot.environment.name, target_snapshot.environment.path
        notes = [f"{owner} exists only in {name}: add it to {path} by hand" for owner in changes.missing]
        for stay in changes.doubtful:
            difference = f"{stay.address.owner} {stay.address.path} differs and stays ({stay.reason})"
            source, target = (mask_field_value(stay.address, value) for value in (stay.source, stay.target))
            values = f"{source!r} in the source, {target!r} in the target"
            notes.append(f"{difference}: {values}")
        if replaced.is_by_hand:
            notes.append(
                f"{target_snapshot.environment.name} was changed after its last promotion, by {replaced.commit[:7]}"
            )
        inputs = [*source_snapshot.inputs, *target_snapshot.inputs]
        if dirty := self.snapshot.repository.list_uncommitted(inputs):
            notes.append(f"ignored, because not committed: {', '.join(dirty[:3])}{', …' if len(dirty) > 3 else ''}")
        return notes


def find_deployed_revision(status: Manifest) -> str:
    """Return the deployed revision: that of the last successful sync, or a later one that needed no sync.

    An Application is Synced once all objects of a revision are applied, even if the sync then failed because a
    notebook or a hook failed. Such a revision does not count as deployed.
    """
    sync, state = status.get("sync") or {}, status.get("operationState") or {}
    history = [item for item in status.get("history") or () if isinstance(item, dict)]
    last_success = str(history[-1].get("revision") or "") if history else ""
    compared = str(sync.get("revision") or "")
    attempted = str((state.get("syncResult") or {}).get("revision") or "")
    has_not_succeeded = attempted == compared and state.get("phase") not in (None, "", "Succeeded")
    return compared if sync.get("status") == "Synced" and not has_not_succeeded else last_success


def _list_source_paths(app: Manifest) -> set[str]:
    spec = app.get("spec") or {}
    sources = [spec.get("source") or {}, *(spec.get("sources") or ())]
    return {normalize_folder(str(source.get("path") or "")) for source in sources if isinstance(source, dict)}


def _read_target_revision(app: Manifest) -> str:
    spec = app.get("spec") or {}
    source: Manifest = spec.get("source") or next(iter(spec.get("sources") or ()), {})
    return str(source.get("targetRevision") or "HEAD")


def _evaluate_rollback(pipeline: PromotionPipeline, target: DeliveryEnvironment, facts: GateFacts) -> list[GateResult]:
    """A rollback needs no gates but the check; holds and releases that were rolled back themselves still block it."""
    assert facts.run_check is not None
    is_green, reason = facts.run_check()
    advice = "" if is_green else "argosy check"
    return [
        *list_log_holds(target, facts),
        *evaluate_renewed_approvals(pipeline, target, facts),
        GateResult("was here", True, "this environment had the release before", kind="back"),
        GateResult("check", is_green, reason, next_command=advice, kind="check"),
    ]
