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
from argosy.features.promote import shallow_or_behind_clone_gate
from argosy.features.promote.commits import identify_actor
from argosy.features.promote.environment_cluster_state import (
    EnvironmentClusterState,
    fetch_cluster_state,
    request_refresh,
)
from argosy.features.promote.environments_at_commit import NoEnvironments, RepositorySnapshot
from argosy.features.promote.plan import PromotionPlan, PromotionPlanner, PromotionRequest
from argosy.features.promote.promotion_log_trailers import PromotionActor
from argosy.features.promote.promotion_pipeline import BY_CONVENTION
from argosy.features.promote.uncommitted_delivery_file import (
    build_uncommitted_file_error,
    describe_uncommitted_changes,
    find_delivery_file,
)
from argosy.gitops.application_client.application_service import ServiceOpener
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment
from argosy.gitops.workspace.command_file_tree_cache import ShowProgress
from argosy.gitops.workspace.git_repository import GitRepository

FindDemoRepository = Callable[[], Path | None]  # returns the repository of a running demo


@dataclass
class PromotionSession:
    snapshot: RepositorySnapshot
    open_service: ServiceOpener
    is_offline: bool
    log: ShowProgress
    is_read_by_engine: bool = False  # the demo's repository: the engine sees commits without a push
    source_note: str = ""  # where the repository was read from, if not from the user's clone

    @cached_property
    def cluster_state(self) -> EnvironmentClusterState:
        if self.is_offline:
            return EnvironmentClusterState(unavailable_reason="the cluster was not contacted (--offline)")
        return fetch_cluster_state(self.open_service, self.snapshot.pipeline)

    @cached_property
    def planner(self) -> PromotionPlanner:
        return PromotionPlanner(self.snapshot, self.cluster_state)

    def plan(self, request: PromotionRequest) -> PromotionPlan:
        return self.planner.plan(request)

    @cached_property
    def pending_plans(self) -> dict[str, PromotionPlan | None]:
        """The next promotion of each environment but the first; None if it is up to date."""
        plans: dict[str, PromotionPlan | None] = {}
        for environment in self.snapshot.pipeline.environments:
            if (
                environment.after
                and environment.name not in self.build_errors
                and environment.after not in self.build_errors
            ):
                plans[environment.name] = self.planner.find_pending_plan(environment)
        return plans

    @property
    def next_command(self) -> str:
        """The command to run next: an open promotion, then a sync, then a blocked promotion."""
        plans = [plan for plan in self.pending_plans.values() if plan]
        buildable = [
            environment
            for environment in self.snapshot.pipeline.environments
            if environment.name not in self.build_errors
        ]
        ready = (f"argosy promote plan --to {plan.target.name}" for plan in plans if plan.is_open)
        # Promote before syncing.
        up_to_date = (environment for environment in buildable if not self.pending_plans.get(environment.name))
        steps = (step.command for environment in up_to_date if (step := self.planner.get_next_step(environment)))
        blocked = (f"argosy promote plan --to {plan.target.name}" for plan in plans)
        return next(chain(ready, steps, blocked), "")

    @property
    def default_target(self) -> str:
        """The target if --to is missing: the first environment with a pending promotion."""
        names = [environment.name for environment in self.snapshot.pipeline.environments if environment.after]
        return next((name for name, plan in self.pending_plans.items() if plan), names[0] if names else "ENV")

    @cached_property
    def build_errors(self) -> dict[str, UserError]:
        """Errors of environments that cannot be rendered; the others are still shown."""
        errors: dict[str, UserError] = {}
        for environment in self.snapshot.pipeline.environments:
            try:
                self.snapshot.get_environment(environment)
            except UserError as error:
                errors[environment.name] = error
        return errors

    @cached_property
    def notes(self) -> list[str]:
        """Differences between this clone and its upstream, and uncommitted files."""
        snapshot, messages = self.snapshot, shallow_or_behind_clone_gate.list_clone_notes(self.snapshot.clone)
        views = [
            snapshot.get_environment(environment)
            for environment in snapshot.pipeline.environments
            if environment.name not in self.build_errors
        ]
        files = {snapshot.pipeline.defined_in, *(path for view in views for path in view.inputs)} - {BY_CONVENTION}
        if dirty := snapshot.repository.list_uncommitted(sorted(files)):
            messages.append(f"ignored, because not committed: {', '.join(dirty[:3])}{', …' if len(dirty) > 3 else ''}")
        return messages

    @cached_property
    def uncommitted_edit_notes(self) -> list[str]:
        """Uncommitted edits of argosy.yaml, which promotions ignore."""
        return describe_uncommitted_changes(self.snapshot)

    def reload_if_moved(self) -> None:
        """Read the repository again if its head moved while this process waited for the lock."""
        if self.snapshot.repository.get_head() != self.snapshot.head:
            self.snapshot.close()
            self.snapshot = RepositorySnapshot(self.snapshot.repository, self.log)
            self.__dict__.pop("planner", None)

    @property
    def actor(self) -> PromotionActor:
        return identify_actor(self.snapshot, self.cluster_state)

    def find_environment(self, name: str) -> DeliveryEnvironment:
        return self.snapshot.pipeline.find(name)

    def refresh_application(self, environment: DeliveryEnvironment) -> None:
        if self.is_read_by_engine and not self.is_offline:
            request_refresh(self.open_service, self.snapshot.pipeline, [environment.application])


@contextmanager
def open_session(
    folder: Path | None,
    open_service: ServiceOpener,
    find_demo_repository: FindDemoRepository,
    *,
    is_offline: bool,
    log: ShowProgress,
) -> Iterator[PromotionSession]:
    repository, is_demo = _choose_repository(folder, find_demo_repository, log)
    with open_repository_session(
        repository, open_service, is_offline=is_offline, log=log, is_read_by_engine=is_demo
    ) as promotion_session:
        yield promotion_session


@contextmanager
def open_repository_session(
    repository: GitRepository,
    open_service: ServiceOpener,
    *,
    is_offline: bool,
    log: ShowProgress,
    is_read_by_engine: bool = False,
    source_note: str = "",
) -> Iterator[PromotionSession]:
    promotion_session = PromotionSession(
        RepositorySnapshot(repository, log), open_service, is_offline, log, is_read_by_engine, source_note
    )
    try:
        yield promotion_session
    finally:
        promotion_session.snapshot.close()  # reload_if_moved may have replaced it


def _choose_repository(
    folder: Path | None, find_demo_repository: FindDemoRepository, log: ShowProgress
) -> tuple[GitRepository, bool]:
    """Choose --repo, else the repository of the current folder if it has environments, else the demo's."""
    if folder is not None:
        if not folder.is_dir() or (named := GitRepository.open(folder)) is None:
            raise UserError("not a Git repository; use a folder of one", where=str(folder))
        return named, _is_demo_repository(folder, find_demo_repository)
    current = GitRepository.open(Path.cwd())
    problem: UserError | None = None
    if current is not None:
        snapshot = RepositorySnapshot(current, log) if current.find_commit("HEAD") else None
        try:
            if snapshot is not None and snapshot.pipeline:
                return current, False
            problem = UserError("has no commit yet; commit first, then promote", where=str(current.paths.folder))
        except NoEnvironments as error:
            path = find_delivery_file(current.paths)
            problem = build_uncommitted_file_error(path) if path else error
        finally:
            if snapshot is not None:
                snapshot.close()
    if (demo_folder := find_demo_repository()) and (demo_repository := GitRepository.open(demo_folder)):
        log(f"repository: the demo's, {demo_folder}")
        return demo_repository, True
    if problem is not None:
        raise problem
    advice = "change to a clone, use --repo DIR, or start with: argosy demo"
    raise UserError(f"the current folder is not in a Git repository; {advice}")


def _is_demo_repository(folder: Path, find_demo_repository: FindDemoRepository) -> bool:
    demo_folder = find_demo_repository()
    return demo_folder is not None and demo_folder.resolve() == folder.resolve()
