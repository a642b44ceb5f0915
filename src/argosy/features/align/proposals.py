"""Finds proposals for an Application by trial: each one is applied in memory and compared again.

In: a reader, an Application. Out: proposals in order, and the trial with all of them applied. Never: writes; proposes
a change without an improvement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.align.trial import Trial, changed, kustomizations, look
from argosy.gitops.analysis.alignment.documented_rules import propose_documented
from argosy.gitops.analysis.alignment.observation import AppSight, SeenObject, unanswered
from argosy.gitops.analysis.alignment.proposal import ORDER, Proposal, ProposalKind
from argosy.gitops.analysis.alignment.proposals import propose
from argosy.gitops.analysis.cause import CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Health
from argosy.gitops.application_client.difference_causes import default_branch, explained
from argosy.gitops.application_client.differences import differing
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.wire_format import mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import key_of

ROUNDS: Final = 4
_REFUSED: Final = frozenset({CauseKind.IMMUTABLE, CauseKind.REFUSED})


@dataclass(frozen=True)
class Wishes:
    """Which proposals may be applied without further confirmation."""

    recreates: bool = False
    accepts: bool = False  # also uncertain proposals, except recreation
    is_documented: bool = False
    siblings: Sequence[Application] = ()  # all Applications; the refs they track show the usual branch
    barred: frozenset[str] = frozenset()  # files that must not change, because other Applications need them

    def allows(self, proposal: Proposal) -> bool:
        if not proposal.kind.changes:
            return False
        if proposal.kind is ProposalKind.RECREATE:
            return proposal.certain or self.recreates
        return proposal.certain or self.accepts


@dataclass(frozen=True)
class Settled:
    """The result of a trial: applied and remaining proposals, and the state with them."""

    trial: Trial
    done: tuple[Proposal, ...] = ()
    left: tuple[Proposal, ...] = ()
    look: Look | None = None
    fault: str = ""  # why it cannot be compared
    objects: tuple[SeenObject, ...] = field(default=())  # that still differ

    @property
    def proposals(self) -> list[Proposal]:
        return sorted((*self.done, *self.left), key=lambda each: ORDER.index(each.kind))

    @property
    def refusals(self) -> int:
        return sum(cause.kind in _REFUSED for each in self.objects for _, cause in each.fields)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Sort key; lower is better."""
        return self.look is None, self.refusals, unanswered(self.objects)


async def proposals(
    reader: Reader, app: Application, look: Look | None = None, siblings: Sequence[Application] = ()
) -> list[Proposal]:
    """List proposals only. `app_state` saves the first comparison."""
    return (await settled(reader, app, Wishes(siblings=siblings), look)).proposals


async def settled(reader: Reader, app: Application, wishes: Wishes, first: Look | None = None) -> Settled:
    """Try the tracked ref, and the default branch if that is better."""
    here = await _tried(reader, Trial(app), wishes, first)
    if here.look is not None and not here.objects and not any(each.file for each in here.done):
        return here  # no need to edit a file on a branch that may be abandoned
    elsewhere = await default_branch(reader, app, here.look.assembled if here.look else None)
    if not elsewhere.branch:
        return here
    followed = app.sources[0].ref or "HEAD"
    branch = Proposal(app.name, ProposalKind.BRANCH, "", "", ref=elsewhere.branch)
    there = await _tried(reader, await changed(reader, Trial(app), [branch]), wishes)
    if there.look is None or not _is_better(app, here, there, wishes):
        return here
    branch = _told(app, branch, here, there, followed, wishes)
    if not wishes.allows(branch):
        return Settled(here.trial, here.done, (*here.left, branch), here.look, here.fault, here.objects)
    return Settled(there.trial, (branch, *there.done), there.left, there.look, "", there.objects)


def _is_better(app: Application, here: Settled, there: Settled, wishes: Wishes) -> bool:
    if there.rank < here.rank:
        return True
    return there.rank == here.rank and _has_failed(app) and _is_usual(app, there.trial, wishes)


def _told(app: Application, branch: Proposal, here: Settled, there: Settled, followed: str, wishes: Wishes) -> Proposal:
    """Build the proposal to track another branch; certain if the current ref cannot be rendered or is refused."""
    rendered = there.look.assembled.rendered if there.look else ()
    number = sum(1 for part in rendered for each, id_ in part.inputs.items() if id_ and not each.place)
    if here.look is None:
        text = f"follow {branch.ref} instead of {followed}, which cannot be rendered: {here.fault}"
        is_certain = True
    elif here.refusals or _has_failed(app):
        text = f"follow {branch.ref} instead of {followed}, whose sync the server refuses"
        is_certain = here.refusals > there.refusals or _is_usual(app, there.trial, wishes)
    else:
        text = f"follow {branch.ref} instead of {followed}, which is behind what lives"
        is_certain = False
    read = f"everything that it reads on {branch.ref} is there ({number} files and folders), and renders"
    evidence = (read, *_usual(there.trial, wishes))
    return Proposal(app.name, ProposalKind.BRANCH, text, branch.ref, is_certain, evidence, ref=branch.ref)


def _has_failed(app: Application) -> bool:
    types = {str(each.get("type")) for each in mappings(app.status.get("conditions"))}
    return ConditionType.SYNC_ERROR.value in types or bool(app.state and app.state.progress in ("Failed", "Error"))


def _usual(trial: Trial, wishes: Wishes) -> list[str]:
    """Count the Applications of the repository that track the same ref."""
    refs = [each.sources[0].ref or "HEAD" for each in _of_the_same(trial, wishes)]
    ref = trial.app.sources[0].ref
    number = sum(each in (ref, "HEAD") for each in refs)
    return [f"{number} of {len(refs)} Applications of this repository follow {ref}"] if number else []


def _is_usual(app: Application, trial: Trial, wishes: Wishes) -> bool:
    refs = [each.sources[0].ref or "HEAD" for each in _of_the_same(trial, wishes) if each.key != app.key]
    return sum(each in (trial.app.sources[0].ref, "HEAD") for each in refs) * 2 > len(refs)


def _of_the_same(trial: Trial, wishes: Wishes) -> list[Application]:
    return [each for each in wishes.siblings if each.sources and each.sources[0].repo_url == trial.url]


# -- trying ----------------------------------------------------------------------------------------------------------


async def _tried(reader: Reader, trial: Trial, wishes: Wishes, first: Look | None = None) -> Settled:
    """Apply proposals in rounds until none is left that needs no confirmation."""
    done: list[Proposal] = []
    found: list[Proposal] = []
    seen, looked = AppSight(trial.app), first
    for _ in range(ROUNDS):
        try:
            looked = looked or await look(reader, trial)
        except ArgosyError as error:
            return Settled(trial, tuple(done), fault=str(error).partition("; ")[0])
        seen = await sight(reader, trial, looked)
        spared = {path: each for path, each in seen.kustomizations.items() if path not in wishes.barred}
        seen = replace(seen, kustomizations=spared)
        found = propose_documented(seen) if wishes.is_documented else propose(seen)
        trial, new = await _carried_out(reader, trial, [p for p in found if wishes.allows(p) and p not in done])
        if not new:
            break
        looked = None
        done += new
    if looked is None:
        looked = await look(reader, trial)
        seen = await sight(reader, trial, looked)
    left = [each for each in found if each not in done]
    return Settled(trial, tuple(done), tuple(left), looked, "", seen.objects)


async def _carried_out(reader: Reader, trial: Trial, proposals: Sequence[Proposal]) -> tuple[Trial, list[Proposal]]:
    """Apply all proposals that can be applied; a file that is not YAML, such as a template, is skipped."""
    own = [each for each in proposals if not each.file]
    trial, done = await changed(reader, trial, own), own
    for each in proposals:
        if each.file:
            try:
                trial, done = await changed(reader, trial, [each]), [*done, each]
            except ArgosyError:
                continue
    return trial, done


async def sight(reader: Reader, trial: Trial, found: Look) -> AppSight:
    """Collect everything that proposals are based on."""
    rules = reader.rules
    shown = differing(found.comparison, rules.compare.masked_annotations)
    causes = await explained(reader, trial.app, found, shown, is_brief=True)
    pairs = {pair.key: pair for pair in found.comparison.pairs}
    objects = tuple(
        SeenObject(pairs[each.key], tuple((field, causes[each.key][field.pointer]) for field in each.fields))
        for each in shown
    )
    refused = any(cause.kind is CauseKind.IMMUTABLE for each in objects for _, cause in each.fields)
    return AppSight(
        trial.app,
        objects,
        {key_of(each): each for each in found.assembled.desired if each["metadata"].get("name")},
        tuple((each.type.value, each.message) for each in found.conditions),
        found.health.health is Health.HEALTHY,
        rules.compare.ignore_status != "all",
        await kustomizations(reader, trial, found.assembled) if refused else {},
        _homes(found, objects),
    )


def _homes(found: Look, objects: Iterable[SeenObject]) -> dict[ResourceKey, str]:
    homes = {}
    for each in objects:
        places = (part.origins.find(each.key, "") for part in found.assembled.rendered)
        home = next((place for place in places if place is not None and not place.repository), None)
        if home is not None:
            homes[each.key] = home.file
    return homes
