"""`/environments`: what each environment has, what would come next, and what is in the way; and what is done about it.

In: a request. Out: a board, a plan to confirm, a commit. Never: an environment whose Application the caller may not
see; a promotion that was not planned anew; the name of whoever runs the server in place of who asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from argosy.desk.boards.environments import Board, board, plan_view, visible
from argosy.desk.promoting.bridge import bridged
from argosy.desk.promoting.deeds import DEEDS, do
from argosy.desk.promoting.planning import Asked as Planned
from argosy.desk.promoting.session import Session, session
from argosy.model.application import APPLICATION
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest
from argosy.model.names import ResourceKey
from argosy.promote.log import By
from argosy.server.answers import Page, Redirect
from argosy.server.asked import Asked, Refused
from argosy.server.pages.owned import EVERYTHING
from argosy.server.resolving import application_name, project_of
from argosy.server.routes import Filtered, Found, May, Route

COMMANDS: Final = (
    "argosy promote status",
    "argosy promote plan --to staging",
    "argosy serve --repo .",
)
ACTION: Final = "action/argosy.dev/Environment"  # argo: an action of an Application: promote, approve, hold
NEEDS: Final = {"promote": "promote", "approve": "approve", "reject": "approve", "hold": "hold", "resume": "hold"}
SAID: Final = {
    "promote": "promoted", "approve": "approved", "reject": "rejected", "hold": "env-held", "resume": "env-resumed",
}  # fmt: skip
OWNER: Final = "system:masters"  # k8s: what whoever started a demo is in its cluster
MOST_REASON: Final = 500
Answer = TypeVar("Answer")


async def page(asked: Asked) -> Page:
    return Page("environments.html", await values(asked))


async def values(asked: Asked) -> dict[str, Any]:
    found, problem = await looked(asked)
    return {
        "title": "Environments",
        "is_live": True,
        "section": "environments",
        "state": _state(found),
        "board": found,
        "problem": problem,
        "has_repository": asked.site.options.repository is not None,
        "may": {each.name: _deeds(asked, each.application) for each in found.stages} if found else {},
        "paths": {each.name: path_of(asked, each.application) for each in found.stages} if found else {},
        "commands": COMMANDS,
    }


def _state(found: Board | None) -> str:
    words = [each.health for each in found.stages] if found else []
    return "bad" if "Degraded" in words else "busy" if "Progressing" in words else "ok" if words else ""


class Known:
    """Applications of environments, when they were last looked at: changes of all others are of no consequence."""

    def __init__(self) -> None:
        self.applications: frozenset[str] | None = None


def concerns(asked: Asked, before: Manifest | None, after: Manifest | None) -> bool:
    """Whether a change of an Application, or of a notebook that may be a gate, is one of an environment."""
    manifest = after or before or {}
    known = asked.site.part(Known).applications
    return known is None or manifest.get("kind") != "Application" or manifest["metadata"]["name"] in known


async def looked(asked: Asked) -> tuple[Board | None, str]:
    """What may be seen of it; nothing, and why, where that cannot be."""
    if asked.site.options.repository is None:
        return None, ""
    try:
        found = await _with(asked, board)
    except UserError as error:
        return None, str(error)
    asked.site.part(Known).applications = frozenset(each.application for each in found.stages)
    return visible(found, [each.application for each in found.stages if _may(asked, "get", each.application)]), ""


async def environment(asked: Asked) -> Found | None:
    """By `{env}`; the subject is its name, its thing that of its Application. `{deed}` says which action is meant."""
    deed = asked.values.get("deed", "")
    if asked.site.options.repository is None or (deed and deed not in DEEDS):
        return None
    name = asked.values["env"]

    def found(opened: Session) -> str | None:
        return next((each.application for each in opened.survey.way.environments if each.name == name), None)

    try:
        application = await _with(asked, found)
    except UserError:
        return None
    action = f"{ACTION}/{NEEDS[deed]}" if deed else ""
    return None if application is None else Found(name, _thing(asked, application), action=action)


async def plan_page(asked: Asked) -> Page:
    """What would happen, to be confirmed."""
    plan = await _with(asked, lambda opened: plan_view(opened.plan(Planned(asked.subject))))
    return Page(
        "promotion.html",
        {
            "title": f"Promote {plan.release} of {plan.source} to {plan.target}",
            "section": "environments",
            "state": "",
            "crumbs": [("Environments", "/environments")],
            "plan": plan,
            "may": _deeds(asked, plan.application),
            "app_path": path_of(asked, plan.application),
        },
    )


async def done(asked: Asked) -> Redirect:
    form, deed, by = await asked.form(), asked.values["deed"], _by(asked)
    reason = " ".join(form.text("reason").split())[:MOST_REASON]
    await _with(asked, lambda opened: do(opened, deed, asked.subject, by, commit=form.text("commit"), reason=reason))
    return Redirect(f"/environments?said={SAID[deed]}")


def _by(asked: Asked) -> By:
    caller = asked.caller
    is_account = caller.kind not in ("person", "project")
    is_owner = asked.site.options.is_simulated and is_account and caller.name == "admin"  # holds the demo's kubeconfig
    return By(caller.name, "page", (*caller.groups, *((OWNER,) if is_owner else ())))


def _deeds(asked: Asked, application: str) -> list[str]:
    return [word for word in ("promote", "approve", "hold") if _may(asked, f"{ACTION}/{word}", application)]


def _may(asked: Asked, action: str, application: str) -> bool:
    return asked.may("applications", action, _thing(asked, application))


def _thing(asked: Asked, application: str) -> str:
    control = asked.site.desk.control
    app = asked.site.lookout.cache.get(ResourceKey(*APPLICATION, control, application))
    return EVERYTHING if app is None else application_name(asked, project_of(app), control, application)


def path_of(asked: Asked, application: str) -> str:
    control = asked.site.desk.control
    known = asked.site.lookout.cache.get(ResourceKey(*APPLICATION, control, application))
    return f"/apps/{control}/{application}" if known else ""


async def _with(asked: Asked, work: Callable[[Session], Answer]) -> Answer:
    """In a thread: Git and renders wait for nobody."""
    repository = asked.site.options.repository
    if repository is None:
        raise Refused
    opening = bridged(asked.site.desk, asyncio.get_running_loop())

    def there() -> Answer:
        with _opened(repository, opening, is_demo=asked.site.options.is_simulated) as found:
            return work(found)

    return await asyncio.to_thread(there)


@contextmanager
def _opened(repository: Path, opening: Any, *, is_demo: bool) -> Iterator[Session]:
    def demo() -> Path | None:
        return repository if is_demo else None

    with session(repository, opening, demo, is_offline=False, talk=lambda _: None) as found:
        yield found


ROUTES = (
    Route("GET", "/environments", Filtered("applications", "get"), page, "Environments, as a page."),
    Route(
        "GET", "/environments/{env}/promote", May("applications", "get", environment), plan_page, "A plan to confirm."
    ),
    Route(
        "POST", "/environments/{env}/{deed}", May("applications", ACTION, environment), done, "Promote, approve, hold."
    ),
)
