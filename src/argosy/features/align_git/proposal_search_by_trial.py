"""Finds proposals for an Application by trial: each one is applied in memory and compared again.

In: a reader, an Application. Out: proposals in order, and the trial with all of them applied. Never: writes; proposes
a change without an improvement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.align_git.in_memory_alignment_trial import (
    ApplicationTrial,
    apply_proposals,
    compare_trial,
    load_kustomizations,
)
from argosy.gitops.analysis.alignment.git_change_proposal_types import PROPOSAL_ORDER, Proposal, ProposalKind
from argosy.gitops.analysis.alignment.observed_application import (
    ObservedApplication,
    ObservedObject,
    count_unresolved_fields,
)
from argosy.gitops.analysis.alignment.proposal_builder import build_proposals
from argosy.gitops.analysis.alignment.published_guide_rule_proposals import propose_documented
from argosy.gitops.analysis.difference_cause_kinds import CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.diff_presentation import list_differing_objects
from argosy.gitops.application_client.difference_cause_evidence import explain_differences, render_default_branch
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.status_json_conversions import as_mappings
from argosy.kube.objects import key_of
from argosy.kube.resource_key import ResourceKey

MAX_TRIAL_ROUNDS: Final = 4
_REFUSED_CAUSES: Final = frozenset({CauseKind.IMMUTABLE, CauseKind.REFUSED})


@dataclass(frozen=True)
class AlignOptions:
    """Which proposals may be applied without further confirmation."""

    allows_recreation: bool = False
    accepts_uncertain: bool = False  # also uncertain proposals, except recreation
    uses_documented_rules: bool = False
    siblings: Sequence[Application] = ()  # all Applications; the refs they track show the usual branch
    protected_files: frozenset[str] = frozenset()  # files that must not change, because other Applications need them

    def allows(self, proposal: Proposal) -> bool:
        if not proposal.kind.changes_git:
            return False
        if proposal.kind is ProposalKind.RECREATE:
            return proposal.certain or self.allows_recreation
        return proposal.certain or self.accepts_uncertain


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial: applied and remaining proposals, and the state with them."""

    trial: ApplicationTrial
    done: tuple[Proposal, ...] = ()
    remaining: tuple[Proposal, ...] = ()
    app_state: AppState | None = None
    fault: str = ""  # why it cannot be compared
    objects: tuple[ObservedObject, ...] = field(default=())  # that still differ

    @property
    def proposals(self) -> list[Proposal]:
        return sorted((*self.done, *self.remaining), key=lambda proposal: PROPOSAL_ORDER.index(proposal.kind))

    @property
    def refusal_count(self) -> int:
        return sum(cause.kind in _REFUSED_CAUSES for seen_object in self.objects for _, cause in seen_object.fields)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Sort key; lower is better."""
        return self.app_state is None, self.refusal_count, count_unresolved_fields(self.objects)


async def list_proposals(
    reader: ApplicationReader, app: Application, app_state: AppState | None = None, siblings: Sequence[Application] = ()
) -> list[Proposal]:
    """List proposals only. `app_state` saves the first comparison."""
    return (await find_best_trial(reader, app, AlignOptions(siblings=siblings), app_state)).proposals


async def find_best_trial(
    reader: ApplicationReader, app: Application, options: AlignOptions, first_state: AppState | None = None
) -> TrialResult:
    """Try the tracked ref, and the default branch if that is better."""
    tracked_result = await _run_trial(reader, ApplicationTrial(app), options, first_state)
    if (
        tracked_result.app_state is not None
        and not tracked_result.objects
        and not any(proposal.file for proposal in tracked_result.done)
    ):
        return tracked_result  # no need to edit a file on a branch that may be abandoned
    default = await render_default_branch(
        reader, app, tracked_result.app_state.desired if tracked_result.app_state else None
    )
    if not default.branch:
        return tracked_result
    tracked_ref = app.sources[0].ref or "HEAD"
    branch = Proposal(app.name, ProposalKind.BRANCH, "", "", ref=default.branch)
    default_result = await _run_trial(reader, await apply_proposals(reader, ApplicationTrial(app), [branch]), options)
    if default_result.app_state is None or not _is_better(app, tracked_result, default_result, options):
        return tracked_result
    branch = _build_branch_proposal(app, branch, tracked_result, default_result, tracked_ref, options)
    if not options.allows(branch):
        return TrialResult(
            tracked_result.trial,
            tracked_result.done,
            (*tracked_result.remaining, branch),
            tracked_result.app_state,
            tracked_result.fault,
            tracked_result.objects,
        )
    return TrialResult(
        default_result.trial,
        (branch, *default_result.done),
        default_result.remaining,
        default_result.app_state,
        "",
        default_result.objects,
    )


def _is_better(
    app: Application, tracked_result: TrialResult, default_result: TrialResult, options: AlignOptions
) -> bool:
    if default_result.rank < tracked_result.rank:
        return True
    return (
        default_result.rank == tracked_result.rank
        and _has_failed_sync(app)
        and _is_majority_ref(app, default_result.trial, options)
    )


def _build_branch_proposal(
    app: Application,
    branch: Proposal,
    tracked_result: TrialResult,
    default_result: TrialResult,
    tracked_ref: str,
    options: AlignOptions,
) -> Proposal:
    """Build the proposal to track another branch; certain if the current ref cannot be rendered or is refused."""
    rendered = default_result.app_state.desired.rendered if default_result.app_state else ()
    number = sum(1 for part in rendered for render_input, id_ in part.inputs.items() if id_ and not render_input.scope)
    if tracked_result.app_state is None:
        text = f"follow {branch.ref} instead of {tracked_ref}, which cannot be rendered: {tracked_result.fault}"
        is_certain = True
    elif tracked_result.refusal_count or _has_failed_sync(app):
        text = f"follow {branch.ref} instead of {tracked_ref}, whose sync the server refuses"
        is_certain = tracked_result.refusal_count > default_result.refusal_count or _is_majority_ref(
            app, default_result.trial, options
        )
    else:
        text = f"follow {branch.ref} instead of {tracked_ref}, which is behind the live state"
        is_certain = False
    read = f"everything that it reads on {branch.ref} is there ({number} files and folders), and renders"
    evidence = (read, *_describe_sibling_refs(default_result.trial, options))
    return Proposal(app.name, ProposalKind.BRANCH, text, branch.ref, is_certain, evidence, ref=branch.ref)


def _has_failed_sync(app: Application) -> bool:
    types = {str(condition.get("type")) for condition in as_mappings(app.status.get("conditions"))}
    return ConditionType.SYNC_ERROR.value in types or bool(app.state and app.state.phase in ("Failed", "Error"))


def _describe_sibling_refs(trial: ApplicationTrial, options: AlignOptions) -> list[str]:
    """Count the Applications of the repository that track the same ref."""
    refs = [item.sources[0].ref or "HEAD" for item in _list_repository_siblings(trial, options)]
    ref = trial.app.sources[0].ref
    number = sum(item in (ref, "HEAD") for item in refs)
    return [f"{number} of {len(refs)} Applications of this repository follow {ref}"] if number else []


def _is_majority_ref(app: Application, trial: ApplicationTrial, options: AlignOptions) -> bool:
    refs = [item.sources[0].ref or "HEAD" for item in _list_repository_siblings(trial, options) if item.key != app.key]
    return sum(item in (trial.app.sources[0].ref, "HEAD") for item in refs) * 2 > len(refs)


def _list_repository_siblings(trial: ApplicationTrial, options: AlignOptions) -> list[Application]:
    return [sibling for sibling in options.siblings if sibling.sources and sibling.sources[0].repo_url == trial.url]


# -- trying ----------------------------------------------------------------------------------------------------------


async def _run_trial(
    reader: ApplicationReader, trial: ApplicationTrial, options: AlignOptions, first_state: AppState | None = None
) -> TrialResult:
    """Apply proposals in rounds until none is left that needs no confirmation."""
    done: list[Proposal] = []
    candidates: list[Proposal] = []
    observation, app_state = ObservedApplication(trial.app), first_state
    for _ in range(MAX_TRIAL_ROUNDS):
        try:
            app_state = app_state or await compare_trial(reader, trial)
        except ArgosyError as error:
            return TrialResult(trial, tuple(done), fault=str(error).partition("; ")[0])
        observation = await observe_application(reader, trial, app_state)
        editable = {
            path: item for path, item in observation.kustomizations.items() if path not in options.protected_files
        }
        observation = replace(observation, kustomizations=editable)
        candidates = propose_documented(observation) if options.uses_documented_rules else build_proposals(observation)
        trial, new = await _apply_proposals(
            reader, trial, [p for p in candidates if options.allows(p) and p not in done]
        )
        if not new:
            break
        app_state = None
        done += new
    if app_state is None:
        app_state = await compare_trial(reader, trial)
        observation = await observe_application(reader, trial, app_state)
    remaining = [item for item in candidates if item not in done]
    return TrialResult(trial, tuple(done), tuple(remaining), app_state, "", observation.objects)


async def _apply_proposals(
    reader: ApplicationReader, trial: ApplicationTrial, proposals: Sequence[Proposal]
) -> tuple[ApplicationTrial, list[Proposal]]:
    """Apply all proposals that can be applied; a file that is not YAML, such as a template, is skipped."""
    application_proposals = [proposal for proposal in proposals if not proposal.file]
    trial, done = await apply_proposals(reader, trial, application_proposals), application_proposals
    for proposal in proposals:
        if proposal.file:
            try:
                trial, done = await apply_proposals(reader, trial, [proposal]), [*done, proposal]
            except ArgosyError:
                continue
    return trial, done


async def observe_application(
    reader: ApplicationReader, trial: ApplicationTrial, app_state: AppState
) -> ObservedApplication:
    """Collect everything that proposals are based on."""
    rules = reader.reconciler_settings
    differing_objects = list_differing_objects(app_state.comparison, rules.diff.masked_annotations)
    causes = await explain_differences(reader, trial.app, app_state, differing_objects, is_brief=True)
    pairs = {pair.key: pair for pair in app_state.comparison.pairs}
    objects = tuple(
        ObservedObject(pairs[item.key], tuple((field, causes[item.key][field.pointer]) for field in item.fields))
        for item in differing_objects
    )
    refused = any(cause.kind is CauseKind.IMMUTABLE for item in objects for _, cause in item.fields)
    return ObservedApplication(
        trial.app,
        objects,
        {key_of(item): item for item in app_state.desired.manifests if item["metadata"].get("name")},
        tuple((item.type.value, item.message) for item in app_state.conditions),
        app_state.health.health is HealthStatus.HEALTHY,
        rules.diff.ignore_status != "all",
        await load_kustomizations(reader, trial, app_state.desired) if refused else {},
        _find_source_files(app_state, objects),
    )


def _find_source_files(app_state: AppState, objects: Iterable[ObservedObject]) -> dict[ResourceKey, str]:
    homes = {}
    for seen_object in objects:
        origins = (part.origins.find(seen_object.key, "") for part in app_state.desired.rendered)
        own_origin = next((origin for origin in origins if origin is not None and not origin.repository), None)
        if own_origin is not None:
            homes[seen_object.key] = own_origin.file
    return homes
