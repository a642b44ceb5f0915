"""Opens a promotion session: chooses the repository, reads its environments and the cluster's state.

In: command arguments. Out: PromotionSession. Never: uses another repository than the one it reports on stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from argosy.errors import UserError
from argosy.features.promote import clone_state
from argosy.features.promote.cluster_facts import Answers, ask, refresh
from argosy.features.promote.commits import who
from argosy.features.promote.environment_states import NoEnvironments, Survey
from argosy.features.promote.environments import BY_CONVENTION
from argosy.features.promote.plan import Asked, Plan, Planner
from argosy.features.promote.promotion_log import By
from argosy.features.promote.uncommitted_edits import (
    describe_uncommitted_gates,
    find_delivery_file,
    only_in_working_tree,
)
from argosy.gitops.application_client.client import Opening
from argosy.gitops.delivery_file.values import Environment
from argosy.gitops.workspace.checkouts import Talk
from argosy.gitops.workspace.git_repository import Repository

Demo = Callable[[], Path | None]  # returns the repository of a running demo


@dataclass
class Session:
    survey: Survey
    opening: Opening
    is_offline: bool
    talk: Talk
    is_read_by_engine: bool = False  # the demo's repository: the engine sees commits without a push
    source_note: str = ""  # where the repository was read from, if not from the user's clone

    @cached_property
    def answers(self) -> Answers:
        if self.is_offline:
            return Answers(why="the cluster was not contacted (--offline)")
        return ask(self.opening, self.survey.way)

    @cached_property
    def planner(self) -> Planner:
        return Planner(self.survey, self.answers)

    def plan(self, asked: Asked) -> Plan:
        return self.planner.plan(asked)

    @cached_property
    def waiting(self) -> dict[str, Plan | None]:
        """The next promotion of each environment but the first; None if it is up to date."""
        found: dict[str, Plan | None] = {}
        for each in self.survey.way.environments:
            if each.after and each.name not in self.broken and each.after not in self.broken:
                found[each.name] = self.planner.pending(each)
        return found

    @property
    def advice(self) -> str:
        """The command to run next: an open promotion, then a sync, then a blocked promotion."""
        plans = [plan for plan in self.waiting.values() if plan]
        whole = [each for each in self.survey.way.environments if each.name not in self.broken]
        ready = (f"argosy promote plan --to {plan.target.name}" for plan in plans if plan.is_open)
        full = (each for each in whole if not self.waiting.get(each.name))  # promote before syncing
        steps = (step.command for each in full if (step := self.planner.step(each)))
        waiting = (f"argosy promote plan --to {plan.target.name}" for plan in plans)
        return next(chain(ready, steps, waiting), "")

    @property
    def usual(self) -> str:
        """The target if --to is missing: the first environment with a pending promotion."""
        names = [each.name for each in self.survey.way.environments if each.after]
        return next((name for name, plan in self.waiting.items() if plan), names[0] if names else "ENV")

    @cached_property
    def broken(self) -> dict[str, UserError]:
        """Errors of environments that cannot be rendered; the others are still shown."""
        found: dict[str, UserError] = {}
        for each in self.survey.way.environments:
            try:
                self.survey.view(each)
            except UserError as error:
                found[each.name] = error
        return found

    @cached_property
    def notes(self) -> list[str]:
        """Differences between this clone and its upstream, and uncommitted files."""
        survey, told = self.survey, clone_state.notes(self.survey.clone)
        views = [survey.view(each) for each in survey.way.environments if each.name not in self.broken]
        files = {survey.way.told_by, *(path for view in views for path in view.inputs)} - {BY_CONVENTION}
        if dirty := survey.repository.dirty(sorted(files)):
            told.append(f"ignored, because not committed: {', '.join(dirty[:3])}{', …' if len(dirty) > 3 else ''}")
        return told

    @cached_property
    def uncommitted_gates(self) -> list[str]:
        """Uncommitted edits of argosy.yaml, which promotions ignore."""
        return describe_uncommitted_gates(self.survey)

    def again(self) -> None:
        """Read the repository again if its head moved while this process waited for the lock."""
        if self.survey.repository.head() != self.survey.head:
            self.survey.close()
            self.survey = Survey(self.survey.repository, self.talk)
            self.__dict__.pop("planner", None)

    @property
    def by(self) -> By:
        return who(self.survey, self.answers)

    def environment(self, name: str) -> Environment:
        return self.survey.way.find(name)

    def seen(self, environment: Environment) -> None:
        if self.is_read_by_engine and not self.is_offline:
            refresh(self.opening, self.survey.way, [environment.application])


@contextmanager
def session(folder: Path | None, opening: Opening, demo: Demo, *, is_offline: bool, talk: Talk) -> Iterator[Session]:
    repository, is_demo = _meant(folder, demo, talk)
    with session_in(repository, opening, is_offline=is_offline, talk=talk, is_read_by_engine=is_demo) as opened:
        yield opened


@contextmanager
def session_in(
    repository: Repository, opening: Opening, *, is_offline: bool, talk: Talk, is_read_by_engine: bool = False,
    source_note: str = "",
) -> Iterator[Session]:  # fmt: skip
    opened = Session(Survey(repository, talk), opening, is_offline, talk, is_read_by_engine, source_note)
    try:
        yield opened
    finally:
        opened.survey.close()  # reload_if_moved may have replaced it


def _meant(folder: Path | None, demo: Demo, talk: Talk) -> tuple[Repository, bool]:
    """Choose --repo, else the repository of the current folder if it has environments, else the demo's."""
    if folder is not None:
        if not folder.is_dir() or (named := Repository.open(folder)) is None:
            raise UserError("not a Git repository; use a folder of one", where=str(folder))
        return named, _is_demos(folder, demo)
    here = Repository.open(Path.cwd())
    problem: UserError | None = None
    if here is not None:
        survey = Survey(here, talk) if here.commit_of("HEAD") else None
        try:
            if survey is not None and survey.way:
                return here, False
            problem = UserError("has no commit yet; commit first, then promote", where=str(here.place.folder))
        except NoEnvironments as error:
            path = find_delivery_file(here.place)
            problem = only_in_working_tree(path) if path else error
        finally:
            if survey is not None:
                survey.close()
    if (place := demo()) and (found := Repository.open(place)):
        talk(f"repository: the demo's, {place}")
        return found, True
    if problem is not None:
        raise problem
    advice = "change to a clone, use --repo DIR, or start with: argosy demo"
    raise UserError(f"the current folder is not in a Git repository; {advice}")


def _is_demos(folder: Path, demo: Demo) -> bool:
    place = demo()
    return place is not None and place.resolve() == folder.resolve()
