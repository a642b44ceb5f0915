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
from argosy.features.promote.board import Board, board, visible
from argosy.features.promote.environment_states import NoEnvironments
from argosy.features.promote.service import Session, session, session_in
from argosy.features.promote.session_threads import SessionThreads
from argosy.features.promote.thread_bridge import bridged
from argosy.features.promote.visible_repositories import FoundRepository, find_repository
from argosy.gitops.application import APPLICATION
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.web.middleware.application_masks import mask_texts, masks_of, without_passwords
from argosy.web.object_lookup import application_name, project_of
from argosy.web.owned_objects import EVERYTHING
from argosy.web.request import Asked, Refused

MAX_REMEMBERED: Final = 64  # callers with different permissions
Answer = TypeVar("Answer")


class EnvironmentApplications:
    """Caches the Applications of environments per set of permissions: callers may see different repositories."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def find(self, asked: Asked) -> frozenset[str] | None:
        """Return None if no board was loaded with these permissions yet, and an empty set if it was empty."""
        return self._names.get(_digest(asked))

    def remember(self, asked: Asked, names: Iterable[str]) -> None:
        self._names.pop(_digest(asked), None)
        while len(self._names) >= MAX_REMEMBERED:
            del self._names[next(iter(self._names))]
        self._names[_digest(asked)] = frozenset(names)


def _digest(asked: Asked) -> str:
    return asked.site.identities.permissions(asked.caller).digest


def concerns(asked: Asked, before: Manifest | None, after: Manifest | None) -> bool:
    """True if a changed Application or notebook job may affect an environment."""
    manifest = after or before or {}
    names = asked.site.part(EnvironmentApplications).find(asked)
    if names is None:
        return True
    is_application = manifest.get("kind") == "Application"
    if not names:  # only a changed source or revision can add environments
        return is_application and _source_state(before) != _source_state(after)
    return not is_application or manifest["metadata"]["name"] in names


def _source_state(application: Manifest | None) -> tuple[object, object]:
    status = mapping(mapping(application).get("status"))
    return mapping(application).get("spec"), mapping(status.get("sync")).get("revision")


async def looked(asked: Asked, *, fetches: bool = True) -> tuple[Board | None, str]:
    """Return the visible board, or None and the problem.

    `fetches`: without a clone, read the repositories of the visible Applications.
    """
    if asked.site.options.repository is None and not fetches:
        return None, ""
    try:
        found = await with_session(asked, board)
    except NoEnvironments as error:
        asked.site.part(EnvironmentApplications).remember(asked, ())
        return None, without_passwords(str(error))
    except UserError as error:
        return None, without_passwords(str(error))
    except Refused:
        asked.site.part(EnvironmentApplications).remember(asked, ())
        return None, ""
    asked.site.part(EnvironmentApplications).remember(asked, (stage.application for stage in found.stages))
    found = visible(found, [each.application for each in found.stages if may_on(asked, "get", each.application)])
    masks = masks_of(asked)
    found = replace(found, notes=tuple(map(without_passwords, found.notes)), why=without_passwords(found.why))
    stages = tuple(mask_texts(stage, masks.by_name(stage.application)) for stage in found.stages)
    return replace(found, stages=stages), ""


def may_on(asked: Asked, action: str, application: str) -> bool:
    return asked.may("applications", action, thing_on(asked, application))


def thing_on(asked: Asked, application: str) -> str:
    control = asked.site.desk.control
    app = asked.site.lookout.cache.get(ResourceKey(*APPLICATION, control, application))
    return EVERYTHING if app is None else application_name(asked, project_of(app), control, application)


def can_write(asked: Asked) -> bool:
    """True if this server has a clone to make commits in."""
    return asked.site.options.repository is not None


async def with_session(asked: Asked, work: Callable[[Session], Answer]) -> Answer:
    """Run `work` in a thread, because Git and renders block. Raises Refused if no repository has environments."""
    clone = asked.site.options.repository
    mirrored = None if clone else await find_repository(asked)
    opening = bridged(asked.site.desk, asyncio.get_running_loop())

    def in_clone(place: Path) -> Answer:
        with _opened(place, opening, is_demo=asked.site.options.is_simulated) as found:
            return work(found)

    def in_mirror(mirror: FoundRepository) -> Answer:
        note = _read_only_note(mirror)
        with session_in(mirror.repository, opening, is_offline=False, talk=lambda _: None, source_note=note) as found:
            return work(found)

    threads, rules = asked.site.part(SessionThreads), asked.site.lookout.rules
    if clone is not None:
        return await threads.run(rules.tenant(""), partial(in_clone, clone))
    if mirrored is None:
        raise Refused
    return await threads.run(rules.tenant(mirrored.project), partial(in_mirror, mirrored))


def _read_only_note(mirror: FoundRepository) -> str:
    how = "To promote, run argosy promote in a clone, or start the server with one: argosy serve --repo DIR"
    others = f". Not shown: the environments of {', '.join(mirror.others)}" if mirror.others else ""
    return f"Read from {mirror.url} at {mirror.commit[:7]}. {how}{others}"


@contextmanager
def _opened(repository: Path, opening: Any, *, is_demo: bool) -> Iterator[Session]:
    def demo() -> Path | None:
        return repository if is_demo else None

    with session(repository, opening, demo, is_offline=False, talk=lambda _: None) as found:
        yield found
