"""Plans a promotion: the release, the file edits and the gate results.

In: a RepositorySnapshot, the cluster's state, a PromotionRequest. Out: PromotionPlan. Never: writes; plans file edits
without rendering them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from argosy.errors import ArgosyError, UserError
from argosy.features.promote.clone_state import stale
from argosy.features.promote.cluster_facts import Answers, time_of
from argosy.features.promote.environment_states import EditedTree, Survey, View
from argosy.features.promote.environments import Way, folder
from argosy.features.promote.file_edits import Writer
from argosy.features.promote.gates import (
    Facts,
    Standing,
    Verdict,
    approvals_again,
    asked_after,
    holds,
    kept_away,
    verdicts,
)
from argosy.features.promote.move_verification import unproven
from argosy.features.promote.moves import Moving, shown
from argosy.features.promote.next_steps import Running, Step, step
from argosy.features.promote.promotion_log import BRINGS, Action, last
from argosy.features.promote.releases import TRAVELS, Release
from argosy.features.promote.repository_check import checked
from argosy.gitops.delivery_file.values import Environment
from argosy.gitops.status.hold import read_hold
from argosy.gitops.status.hold import told as hold_told
from argosy.gitops.status.rollback import rollback_of
from argosy.kube.objects import Manifest


@dataclass(frozen=True)
class Asked:
    """The arguments of a promotion."""

    target: str
    release: str = ""
    skipped: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Plan:
    source: Environment
    target: Environment
    release: Release
    over: Release  # the current release of the target
    moving: Moving
    files: dict[str, bytes]  # edited files with their new content
    verdicts: tuple[Verdict, ...]
    asked: Asked
    is_back: bool = False  # the target had this release before
    afterwards: tuple[str, ...] = ()  # gates of the environments after the target
    prefix: str = ""  # of object names in the target
    commits: int = 0  # to the source's files since the target's release
    notes: tuple[str, ...] = field(default=())

    @property
    def is_open(self) -> bool:
        return all(each.is_open for each in self.verdicts)

    @property
    def closed(self) -> list[Verdict]:
        return [each for each in self.verdicts if not each.is_open]


class Planner:
    def __init__(self, survey: Survey, answers: Answers, now: datetime | None = None) -> None:
        self.survey, self.answers = survey, answers
        self.now = now or answers.now or datetime.now(UTC)  # compare cluster times with the cluster's clock
        self._running: dict[str, Running | None] = {}
        self._steps: dict[str, Step | None] = {}
        self._checks: dict[tuple[tuple[str, bytes], ...], tuple[bool, str]] = {}

    def plan(self, asked: Asked) -> Plan:
        survey, way = self.survey, self.survey.way
        target = way.find(asked.target)
        source = way.source(target, asked.skipped)
        if asked.skipped and not asked.reason:
            raise UserError(f"skipping {asked.skipped[0]} requires a reason; add --reason TEXT")
        over = survey.release(target)
        release, there, is_back = self._chosen(asked, source, target)
        here = survey.view(target)
        moved = survey.moving(there, here)
        files, problem = self._written(moved, there, here)
        check = partial(self._check, files)
        facts = self._facts(source, target, release, check)
        found = _backwards(way, target, facts) if is_back else verdicts(way, source, target, facts)
        found = [*stale(survey.clone), *found]
        if not is_back and not asked.skipped:
            found = [*self._way(source, release, asked), *found]
        if problem:
            found.insert(0, Verdict("files", False, problem, kind="files"))
        count = 0 if is_back else self._commits(over, release, there)
        notes = tuple(self._notes(moved, there, here, files, over))
        prefix = here.file.decoration.prefix if here.file else ""
        after = tuple(asked_after(way, target))
        return Plan(
            source, target, release, over, moved, files, tuple(found), asked, is_back, after, prefix, count, notes
        )

    def _way(self, source: Environment, release: Release, asked: Asked) -> list[Verdict]:
        """Close the gate if the source's version was committed by hand and thereby skipped the previous environment."""
        before = self.survey.way.before(source)
        if before is None or release != self.survey.release(source) or not self.survey.is_from_nowhere(source):
            return []
        why = f"{release.name} was written to {source.name} by hand, and has not been in {before.name}"
        why += f": {asked.reason}" if asked.reason else ""
        who = "anybody who gives a reason: --reason TEXT"
        return [Verdict("way", bool(asked.reason), why, who, f"argosy promote plan --to {source.name}", "way")]

    def pending(self, target: Environment) -> Plan | None:
        """Plan the next promotion; None if there is nothing to promote."""
        source = self.survey.way.source(target)
        if not self.survey.moving(self.survey.view(source), self.survey.view(target)).moves:
            return None
        return self.plan(Asked(target.name))

    def named_release(self, asked: Asked) -> Release:
        target = self.survey.way.find(asked.target)
        return self._chosen(asked, self.survey.way.source(target, asked.skipped), target)[0]

    # -- which release --

    def _chosen(self, asked: Asked, source: Environment, target: Environment) -> tuple[Release, View, bool]:
        """Return the release, its contents, and True if the target had it before."""
        survey = self.survey
        current = survey.release(source)
        if not asked.release or self._is(current, asked.release):
            return current, survey.view(source), False
        if had := self._had(target, asked.release):
            return had[0], survey.view(target, had[1]), True
        commit = self._commit(asked.release) if survey.way.before(source) is None else ""
        if commit and survey.repository.contains(survey.head, commit):
            there = survey.view(source, commit)
            return survey.named(survey.repository.last_change(commit, there.inputs)), there, False
        if had := self._had(source, asked.release):
            return had[0], survey.view(source, had[1]), False
        raise self._unknown(asked.release, source, target)

    def _is(self, release: Release, typed: str) -> bool:
        return typed == release.name or (len(typed) >= 4 and release.commit.startswith(typed))

    def _commit(self, typed: str) -> str:
        repository = self.survey.repository
        if number := re.fullmatch(r"r(\d+)", typed):
            return repository.nth(int(number[1]), self.survey.head)
        return repository.commit_of(typed)

    def _had(self, environment: Environment, typed: str) -> tuple[Release, str] | None:
        """Find a former release of the environment, and a commit that has it."""
        for entry in self.survey.log:
            if entry.environment != environment.name or entry.action not in BRINGS:
                continue
            if entry.release and self._is(entry.release, typed):
                return entry.release, entry.commit
            if entry.over and self._is(entry.over, typed):
                return entry.over, f"{entry.commit}~1"
        return None

    def _unknown(self, typed: str, source: Environment, target: Environment) -> UserError:
        way = self.survey.way
        before = way.before(source)
        while before is not None:
            is_known = self._is(self.survey.release(before), typed) or self._had(before, typed)
            is_first = way.before(before) is None
            if is_known or (is_first and self._commit(typed)):
                there = f"promote it there first: argosy promote run {typed} --to {source.name}"
                why = f"skip it: --skip {source.name} --reason TEXT"
                told = f"{typed} has not been in {source.name}, which is before {target.name}"
                return UserError(f"{told}; {there}, or {why}")
            before = way.before(before)
        return UserError(f"release {typed!r} not found in {source.name}; list releases: argosy promote history")

    def previous(self, target: Environment) -> str:
        """Return the commit of the environment's previous release."""
        if not target.after:
            message = f"{target.name} is the first environment: it gets releases from commits, not from promotions"
            raise UserError(f"{message}; use git revert, or argosy app rollback {target.application}")
        now = self.survey.release(target)
        if now.is_by_hand and (brought := last(self.survey.log, target.name, *BRINGS)) and brought.release:
            return brought.release.commit
        for entry in self.survey.log:
            is_it = entry.environment == target.name and entry.action is Action.PROMOTE and entry.over
            if is_it and entry.release and entry.release.commit == now.commit and entry.over:
                return entry.over.commit
        message = f"{now.name} was not promoted to {target.name}, so its previous release is unknown"
        raise UserError(f"{message}; choose one: argosy promote run RELEASE --to {target.name}, or use git revert")

    # -- what is written --

    def _written(self, moved: Moving, there: View, here: View) -> tuple[dict[str, bytes], str]:
        """Return the edited files, verified by rendering them; or the reason why they cannot be edited."""
        if not moved.moves:
            return {}, ""
        try:
            plain = self.survey.plain(here)
            writer = Writer(here.environment.path, self.survey.read, there.file, plain)
            files = {path: text.encode() for path, text in writer.write(moved.moves).items()}
            after = self.survey.rendered(here.environment, EditedTree(self.survey.tree, files), self.survey.head)
        except UserError as error:
            return {}, str(error)
        if wrong := unproven(moved.moves, here.contents, after.contents):
            told = f"the edited files of {here.environment.name} do not render as planned: {wrong}"
            return {}, f"{writer.path or writer.folder}: {told}; edit them by hand, and commit them"
        return files, ""

    # -- facts --

    def _check(self, files: dict[str, bytes]) -> tuple[bool, str]:
        """Check the edited files; equal edits are checked once."""
        key = tuple(sorted(files.items()))
        if key not in self._checks:
            self._checks[key] = checked(self.survey, files)
        return self._checks[key]

    def _facts(self, source: Environment, target: Environment, release: Release, check: Any) -> Facts:
        answers, survey = self.answers, self.survey
        here, there = self.standing(target, release), self.standing(source, release)
        why = answers.why
        if there is None and not why:
            is_other = answers.apps.get(source.name) is not None
            why = f"Application {source.application} not found"
            why = f"Application {source.application} does not deploy {source.path}" if is_other else why
        notebooks = {name: ran for (place, name), ran in answers.notebooks.items() if place == source.name}
        released = datetime.fromtimestamp(survey.repository.seconds(release.commit), UTC)
        unseen = survey.unseen(target)
        return Facts(self.now, survey.log, release, released, check, there, here, notebooks, why, unseen)

    def standing(self, environment: Environment, release: Release | None = None) -> Standing | None:
        app = self.answers.apps.get(environment.name)
        if app is None or environment.path not in _paths(app):
            return None  # an Application of the same name for another path or repository
        status: Manifest = app.get("status") or {}
        health, sync = status.get("health") or {}, status.get("sync") or {}
        state = status.get("operationState") or {}
        history = [each for each in status.get("history") or () if isinstance(each, dict)]
        deployed = time_of(history[-1].get("deployedAt")) if history else None
        is_bad = state.get("phase") in ("Failed", "Error")
        deployed_revision = find_deployed_revision(status)
        runs = self._runs(environment, release, deployed_revision) if release else None
        is_past = bool(runs and release) and not self._is_as_then(environment, release, deployed_revision)
        hold = read_hold(app["metadata"].get("annotations") or {})
        return Standing(
            str(health.get("status") or "Unknown"),
            time_of(health.get("lastTransitionTime")) or time_of(state.get("finishedAt")),
            str(sync.get("status") or "Unknown"),
            runs and not is_past,
            deployed_revision,
            deployed,
            hold_told(hold, environment.application) if hold else "",
            f"its last sync {str(state.get('phase')).lower()}" if is_bad else "",
            is_past,
            runs is False and release is not None and self._is_unpushed(environment, release),
            str(rollback_of(status, _ref(app)) or ""),
        )

    def _is_unpushed(self, environment: Environment, release: Release) -> bool:
        return self.survey.repository.is_unpushed(self._since(environment, release))

    def running(self, environment: Environment) -> Running | None:
        """Return the release deployed last; None if there is no cluster data."""
        if environment.name not in self._running:
            self._running[environment.name] = self._found_running(environment)
        return self._running[environment.name]

    def _found_running(self, environment: Environment) -> Running | None:
        standing = self.standing(environment)
        if standing is None:
            return None
        if not standing.revision or not self.survey.repository.commit_of(standing.revision):
            return Running(standing.revision)
        try:
            return Running(standing.revision, self.survey.release(environment, standing.revision))
        except ArgosyError:
            return Running(standing.revision)  # that old revision cannot be rendered any more

    def step(self, environment: Environment) -> Step | None:
        """Return the step that brings the environment to the state in Git; None if none is needed."""
        if environment.name not in self._steps:
            self._steps[environment.name] = self._step(environment)
        return self._steps[environment.name]

    def _step(self, environment: Environment) -> Step | None:
        survey, standing = self.survey, self.standing(environment)
        running = self.running(environment)
        asked = partial(step, environment, standing, running, survey.release(environment))
        if asked(is_unpushed=False) is None:
            return None  # the common case, without a Git call
        newest = survey.repository.last_change(survey.head, survey.view(environment).inputs)
        return asked(is_unpushed=survey.repository.is_unpushed(newest))

    def holds(self, environment: Environment) -> list[Verdict]:
        """List the holds of an environment, even if no promotion is pending."""
        return holds(environment, Facts(self.now, self.survey.log, target=self.standing(environment)))

    def _runs(self, environment: Environment, release: Release, revision: str) -> bool | None:
        """True if the synced revision contains the release, or for a promoted release its promotion commit."""
        if not revision:
            return False
        return self.survey.repository.contains(revision, self._since(environment, release))

    def _since(self, environment: Environment, release: Release) -> str:
        """Return the first commit at which the environment has the release."""
        had = self._had(environment, release.commit)
        return had[1] if had else release.commit

    def _is_as_then(self, environment: Environment, release: Release | None, revision: str) -> bool:
        """True if a later revision still has all promoted fields of the release."""
        assert release is not None
        survey, since = self.survey, self._since(environment, release)
        if not survey.repository.count(since, revision, survey.view(environment).inputs):
            return True
        then, now = (survey.view(environment, commit).contents for commit in (since, revision))
        return then.of(*TRAVELS) == now.of(*TRAVELS)

    def _commits(self, over: Release, release: Release, there: View) -> int:
        repository = self.survey.repository
        if not repository.commit_of(over.commit) or over.commit == release.commit:
            return 0
        return repository.count(over.commit, release.commit, there.inputs)

    def _notes(self, moved: Moving, there: View, here: View, files: dict[str, bytes], over: Release) -> list[str]:
        name, path = there.environment.name, here.environment.path
        notes = [f"{owner} exists only in {name}: add it to {path} by hand" for owner in moved.missing]
        for stay in moved.doubts:
            told = f"{stay.at.owner} {stay.at.path} differs and stays ({stay.why})"
            values = f"{shown(stay.at, stay.source)!r} in the source, {shown(stay.at, stay.target)!r} in the target"
            notes.append(f"{told}: {values}")
        if over.is_by_hand:
            notes.append(f"{here.environment.name} was changed after its last promotion, by {over.commit[:7]}")
        inputs = [*there.inputs, *here.inputs]
        if dirty := self.survey.repository.dirty(inputs):
            notes.append(f"ignored, because not committed: {', '.join(dirty[:3])}{', …' if len(dirty) > 3 else ''}")
        return notes


def find_deployed_revision(status: Manifest) -> str:
    """Return the deployed revision: that of the last successful sync, or a later one that needed no sync.

    An Application is Synced once all objects of a revision are applied, even if the sync then failed because a
    notebook or a hook failed. Such a revision does not count as deployed.
    """
    sync, state = status.get("sync") or {}, status.get("operationState") or {}
    history = [each for each in status.get("history") or () if isinstance(each, dict)]
    last_success = str(history[-1].get("revision") or "") if history else ""
    compared = str(sync.get("revision") or "")
    attempted = str((state.get("syncResult") or {}).get("revision") or "")
    has_not_succeeded = attempted == compared and state.get("phase") not in (None, "", "Succeeded")
    return compared if sync.get("status") == "Synced" and not has_not_succeeded else last_success


def _paths(app: Manifest) -> set[str]:
    spec = app.get("spec") or {}
    sources = [spec.get("source") or {}, *(spec.get("sources") or ())]
    return {folder(str(each.get("path") or "")) for each in sources if isinstance(each, dict)}


def _ref(app: Manifest) -> str:
    spec = app.get("spec") or {}
    source: Manifest = spec.get("source") or next(iter(spec.get("sources") or ()), {})
    return str(source.get("targetRevision") or "HEAD")


def _backwards(way: Way, target: Environment, facts: Facts) -> list[Verdict]:
    """A rollback needs no gates but the check; holds and releases that were rolled back themselves still block it."""
    assert facts.check is not None
    is_green, told = facts.check()
    advice = "" if is_green else "argosy check"
    return [
        *kept_away(target, facts),
        *approvals_again(way, target, facts),
        Verdict("was here", True, "this environment had the release before", kind="back"),
        Verdict("check", is_green, told, next=advice, kind="check"),
    ]
