"""Finds and proves remedies for an Application with `argosy align`.

In: a reader, an Application, its AppState. Out: ProvenRemedy. Never: writes; promises a result without a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.features.align_git.dry_run_sync_proof import AlignmentProof, prove_trial
from argosy.features.align_git.proposal_search_by_trial import AlignOptions, find_best_trial
from argosy.gitops.analysis.alignment.git_change_proposal_types import Proposal, ProposalKind
from argosy.gitops.analysis.diagnosis_table_and_score import Remedy
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.reconciler.app_state_values import AppState

# Which kinds of proposals answer which rule
PROPOSALS_BY_RULE: Final[Mapping[str, tuple[ProposalKind, ...]]] = {
    "AGY501": (ProposalKind.IGNORE, ProposalKind.SYNC_OPTION, ProposalKind.ACCEPT),
    "AGY507": (ProposalKind.IGNORE, ProposalKind.SYNC_OPTION),
    "AGY509": (ProposalKind.BRANCH,),
    "AGY510": (ProposalKind.BRANCH, ProposalKind.SELECTORS, ProposalKind.RECREATE),
    "AGY516": (ProposalKind.BRANCH,),
    "AGY517": (ProposalKind.BRANCH, ProposalKind.SELECTORS, ProposalKind.RECREATE),
}


@dataclass(frozen=True)
class ProvenRemedy:
    proposals: tuple[Proposal, ...]
    done: tuple[Proposal, ...]  # proposals that need no decision; the proof covers these
    proof: AlignmentProof

    @property
    def is_proven_to_help(self) -> bool:
        """True if the proposals that need no decision are proven to help; a cleanup alone does not count."""
        kinds = {proposal.kind for proposal in self.done} - {ProposalKind.DROP}
        return bool(kinds) and self.proof.is_proven

    def iterate_remedies(self, app: str) -> Iterator[tuple[tuple[str, str], Remedy]]:
        for rule, kinds in PROPOSALS_BY_RULE.items():
            matching = [proposal for proposal in self.proposals if proposal.kind in kinds]
            if matching:
                word = ", ".join(dict.fromkeys(proposal.fix for proposal in matching))
                changing = [proposal for proposal in matching if proposal.kind.changes_git]
                certain = all(proposal.certain for proposal in changing) if changing else None
                yield (app, rule), Remedy(word, certain)


async def find_remedy(
    reader: ApplicationReader, app: Application, app_state: AppState | None, apps: Sequence[Application]
) -> ProvenRemedy:
    trial_result = await find_best_trial(reader, app, AlignOptions(siblings=apps), app_state)
    return ProvenRemedy(
        tuple(trial_result.proposals),
        trial_result.done,
        await prove_trial(reader, app, trial_result.trial, trial_result.app_state),
    )
