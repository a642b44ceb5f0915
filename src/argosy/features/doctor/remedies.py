"""Finds and proves remedies for an Application with `argosy align`.

In: a reader, an Application, its AppState. Out: ProvenRemedy. Never: writes; promises a result without a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.features.align.proof import Proof, proven
from argosy.features.align.proposals import Wishes, settled
from argosy.gitops.analysis.alignment.proposal import Proposal, ProposalKind
from argosy.gitops.analysis.diagnosis import Remedy
from argosy.gitops.application import Application
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.reconciler.app_state import Look

# Which kinds of proposals answer which rule
ANSWERS: Final[Mapping[str, tuple[ProposalKind, ...]]] = {
    "AGY501": (ProposalKind.IGNORE, ProposalKind.SYNC_OPTION, ProposalKind.ACCEPT),
    "AGY507": (ProposalKind.IGNORE, ProposalKind.SYNC_OPTION),
    "AGY509": (ProposalKind.BRANCH,),
    "AGY510": (ProposalKind.BRANCH, ProposalKind.SELECTORS, ProposalKind.RECREATE),
    "AGY516": (ProposalKind.BRANCH,),
    "AGY517": (ProposalKind.BRANCH, ProposalKind.SELECTORS, ProposalKind.RECREATE),
}


@dataclass(frozen=True)
class Treatment:
    proposals: tuple[Proposal, ...]
    done: tuple[Proposal, ...]  # proposals that need no decision; the proof covers these
    proof: Proof

    @property
    def cures(self) -> bool:
        """True if the proposals that need no decision are proven to help; a cleanup alone does not count."""
        kinds = {each.kind for each in self.done} - {ProposalKind.DROP}
        return bool(kinds) and self.proof.is_good

    def remedies(self, app: str) -> Iterator[tuple[tuple[str, str], Remedy]]:
        for rule, kinds in ANSWERS.items():
            mine = [each for each in self.proposals if each.kind in kinds]
            if mine:
                word = ", ".join(dict.fromkeys(each.fix for each in mine))
                changing = [each for each in mine if each.kind.changes]
                certain = all(each.certain for each in changing) if changing else None
                yield (app, rule), Remedy(word, certain)


async def treat(reader: Reader, app: Application, look: Look | None, apps: Sequence[Application]) -> Treatment:
    found = await settled(reader, app, Wishes(siblings=apps), look)
    return Treatment(tuple(found.proposals), found.done, await proven(reader, app, found.trial, found.look))
