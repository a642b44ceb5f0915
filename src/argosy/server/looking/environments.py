"""Environments and their promotions, as far as somebody may see them.

In: a request. Out: a board; what a session of promotions answers. Never: an environment whose Application the caller
may not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from argosy.desk.boards.environments import Board, board, visible
from argosy.desk.promoting.bridge import bridged
from argosy.desk.promoting.session import Session, session, session_in
from argosy.model.application import APPLICATION
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest
from argosy.model.names import ResourceKey
from argosy.server.asked import Asked, Refused
from argosy.server.looking.environment_repositories import FoundRepository, find_repository
from argosy.server.looking.owned import EVERYTHING
from argosy.server.resolving import application_name, project_of

Answer = TypeVar("Answer")


class Known:
    """Applications of environments, when they were last looked at: changes of all others are of no consequence."""

    def __init__(self) -> None:
        self.applications: frozenset[str] | None = None


def concerns(asked: Asked, before: Manifest | None, after: Manifest | None) -> bool:
    """Whether a change of an Application, or of a notebook that may be a gate, is one of an environment."""
    manifest = after or before or {}
    known = asked.site.part(Known).applications
    return known is None or manifest.get("kind") != "Application" or manifest["metadata"]["name"] in known


async def looked(asked: Asked, *, fetches: bool = True) -> tuple[Board | None, str]:
    """What may be seen of it; nothing, and why, where that cannot be.

    `fetches`: where there is no clone, the repositories of Applications are read.
    """
    if asked.site.options.repository is None and not fetches:
        return None, ""
    try:
        found = await with_session(asked, board)
    except UserError as error:
        return None, str(error)
    except Refused:
        return None, ""
    asked.site.part(Known).applications = frozenset(each.application for each in found.stages)
    return visible(found, [each.application for each in found.stages if may_on(asked, "get", each.application)]), ""


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
    """In a thread: Git and renders wait for nobody. Raises Refused where no repository has environments."""
    clone = asked.site.options.repository
    mirrored = None if clone else await find_repository(asked)
    opening = bridged(asked.site.desk, asyncio.get_running_loop())

    def in_clone(place: Path) -> Answer:
        with _opened(place, opening, is_demo=asked.site.options.is_simulated) as found:
            return work(found)

    def in_mirror(mirror: FoundRepository) -> Answer:
        note = _read_only_note(mirror)
        with session_in(
            mirror.repository, opening, is_offline=False, talk=lambda _: None, source_note=note
        ) as found:
            return work(found)

    if clone is not None:
        return await asyncio.to_thread(in_clone, clone)
    if mirrored is None:
        raise Refused
    return await asyncio.to_thread(in_mirror, mirrored)


def _read_only_note(mirror: FoundRepository) -> str:
    how = "To promote, type argosy promote in a clone, or start the page with one: argosy serve --repo DIR"
    others = f". Not shown: the environments of {', '.join(mirror.others)}" if mirror.others else ""
    return f"Read from {mirror.url} at {mirror.commit[:7]}. {how}{others}"


@contextmanager
def _opened(repository: Path, opening: Any, *, is_demo: bool) -> Iterator[Session]:
    def demo() -> Path | None:
        return repository if is_demo else None

    with session(repository, opening, demo, is_offline=False, talk=lambda _: None) as found:
        yield found
