"""Loads the environments board as far as the caller may see it, and runs promotion sessions for pages.

In: a request. Out: an EnvironmentBoard; the result of a session. Never: shows an environment whose Application the
caller may not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from argosy.errors import UserError
from argosy.features.promote.cluster_thread_bridge import bridge_service
from argosy.features.promote.environments_at_commit import NoEnvironments
from argosy.features.promote.environments_board import EnvironmentBoard, build_board, filter_visible_stages
from argosy.features.promote.fair_thread_pool import SessionThreads
from argosy.features.promote.service import PromotionSession, open_repository_session, open_session
from argosy.features.promote.visible_repositories import EnvironmentRepository, RepositoryFinder
from argosy.gitops.redaction.per_application_secret_masks import mask_texts, mask_url_passwords
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION
from argosy.web.objects_of_visible_applications import ALL_APPLICATIONS
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.requested_application_lookup import get_application_rbac_name, read_project_name

MAX_REMEMBERED: Final = 64  # callers with different permissions
Answer = TypeVar("Answer")


class EnvironmentApplications:
    """Caches the Applications of environments per set of permissions: callers may see different repositories."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def find(self, request: RequestContext) -> frozenset[str] | None:
        """Return None if no board was loaded with these permissions yet, and an empty set if it was empty."""
        return self._names.get(_get_permissions_digest(request))

    def remember(self, request: RequestContext, names: Iterable[str]) -> None:
        self._names.pop(_get_permissions_digest(request), None)
        while len(self._names) >= MAX_REMEMBERED:
            del self._names[next(iter(self._names))]
        self._names[_get_permissions_digest(request)] = frozenset(names)


class EnvironmentBoards:
    """Loads boards, and runs sessions; keeps what the pages and the API have in common between requests."""

    def __init__(self, repositories: RepositoryFinder | None = None) -> None:
        self._repositories = repositories or RepositoryFinder()
        self._threads = SessionThreads()
        self.applications = EnvironmentApplications()

    def may_affect_environments(self, request: RequestContext, before: Manifest | None, after: Manifest | None) -> bool:
        """True if a changed Application or notebook job may affect an environment."""
        manifest = after or before or {}
        names = self.applications.find(request)
        if names is None:
            return True
        is_application = manifest.get("kind") == "Application"
        if not names:  # only a changed source or revision can add environments
            return is_application and _read_spec_and_revision(before) != _read_spec_and_revision(after)
        return not is_application or manifest["metadata"]["name"] in names

    async def load_visible(
        self, request: RequestContext, *, fetches: bool = True
    ) -> tuple[EnvironmentBoard | None, str]:
        """Return the visible board, or None and the problem.

        `fetches`: without a clone, read the repositories of the visible Applications.
        """
        if request.options.repository is None and not fetches:
            return None, ""
        try:
            board = await self.run_with_session(request, build_board)
        except NoEnvironments as error:
            self.applications.remember(request, ())
            return None, mask_url_passwords(str(error))
        except UserError as error:
            return None, mask_url_passwords(str(error))
        except NotFoundOrForbidden:
            self.applications.remember(request, ())
            return None, ""
        self.applications.remember(request, (stage.application for stage in board.stages))
        return _filter_and_mask(request, board), ""

    async def run_with_session(self, request: RequestContext, work: Callable[[PromotionSession], Answer]) -> Answer:
        """Run `work` in a thread, because Git and renders block. Raises Refused if no repository has environments."""
        clone = request.options.repository
        mirrored = None if clone else await self._repositories.find(request)
        opening = bridge_service(request.service, asyncio.get_running_loop())

        def in_clone(place: Path) -> Answer:
            with _open_clone_session(place, opening, is_demo=request.options.is_simulated) as opened_session:
                return work(opened_session)

        def in_mirror(mirror: EnvironmentRepository) -> Answer:
            note = _build_read_only_note(mirror)
            with open_repository_session(
                mirror.repository, opening, is_offline=False, log=lambda _: None, source_note=note
            ) as opened_session:
                return work(opened_session)

        rules = request.cluster_view.rules
        if clone is not None:
            return await self._threads.run(rules.build_tenant(""), partial(in_clone, clone))
        if mirrored is None:
            raise NotFoundOrForbidden
        return await self._threads.run(rules.build_tenant(mirrored.project), partial(in_mirror, mirrored))


def _filter_and_mask(request: RequestContext, board: EnvironmentBoard) -> EnvironmentBoard:
    """Leave out stages that the caller may not see, and mask the others with the Secrets of their Applications."""
    applications = [
        stage.application for stage in board.stages if is_permitted_on_application(request, "get", stage.application)
    ]
    board = filter_visible_stages(board, applications)
    board = replace(board, notes=tuple(map(mask_url_passwords, board.notes)), why=mask_url_passwords(board.why))
    find_mask = request.masks.get_mask_for_application
    return replace(board, stages=tuple(mask_texts(stage, find_mask(stage.application)) for stage in board.stages))


def _get_permissions_digest(request: RequestContext) -> str:
    return request.authenticator.permissions(request.caller).digest


def _read_spec_and_revision(application: Manifest | None) -> tuple[object, object]:
    status = as_mapping(as_mapping(application).get("status"))
    return as_mapping(application).get("spec"), as_mapping(status.get("sync")).get("revision")


def is_permitted_on_application(request: RequestContext, action: str, application: str) -> bool:
    return request.is_allowed("applications", action, build_rbac_object(request, application))


def build_rbac_object(request: RequestContext, application: str) -> str:
    control = request.service.control_namespace
    app = request.cluster_view.cache.get(ResourceKey(*APPLICATION, control, application))
    return (
        ALL_APPLICATIONS
        if app is None
        else get_application_rbac_name(request, read_project_name(app), control, application)
    )


def has_writable_clone(request: RequestContext) -> bool:
    """True if this server has a clone to make commits in."""
    return request.options.repository is not None


def _build_read_only_note(mirror: EnvironmentRepository) -> str:
    advice = "To promote, run argosy promote in a clone, or start the server with one: argosy serve --repo DIR"
    others = f". Not shown: the environments of {', '.join(mirror.others)}" if mirror.others else ""
    return f"Read from {mirror.url} at {mirror.commit[:7]}. {advice}{others}"


@contextmanager
def _open_clone_session(repository: Path, open_service: Any, *, is_demo: bool) -> Iterator[PromotionSession]:
    def demo() -> Path | None:
        return repository if is_demo else None

    with open_session(repository, open_service, demo, is_offline=False, log=lambda _: None) as opened_session:
        yield opened_session
