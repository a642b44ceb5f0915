"""Serves `/environments`: releases, pending promotions and gates, with actions to promote, approve and hold.

In: a request. Out: a board, a plan to confirm, a commit. Never: shows an environment whose Application the caller may
not see; promotes without planning again; commits in the name of the server's user instead of the caller.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.promote.board import Board, plan_view
from argosy.features.promote.plan import Asked as Planned
from argosy.features.promote.promotion_log import By
from argosy.features.promote.requested_actions import DEEDS, do
from argosy.features.promote.service import Session
from argosy.features.promote.visible_board import can_write, concerns, looked, may_on, thing_on, with_session
from argosy.gitops.application import APPLICATION
from argosy.kube.names import GroupKind, ResourceKey
from argosy.web.live_updates.live_parts import Live, touches_kinds
from argosy.web.owned_objects import JOB
from argosy.web.page_templates import part, render_page_state
from argosy.web.request import Asked, Refused
from argosy.web.responses import Page, Redirect
from argosy.web.route import Filtered, Found, May, Route

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
OWNER: Final = "system:masters"  # k8s: the group of the user who started the demo
MOST_REASON: Final = 500


async def page(asked: Asked) -> Page:
    return Page("promote/environments.html", await values(asked))


async def values(asked: Asked) -> dict[str, Any]:
    found, problem = await looked(asked)
    return {
        "title": "Environments",
        "is_live": True,
        "section": "environments",
        "state": _state(found),
        "board": found,
        "problem": problem,
        "has_repository": can_write(asked),
        "may": {each.name: _deeds(asked, each.application) for each in found.stages} if found else {},
        "paths": {each.name: path_of(asked, each.application) for each in found.stages} if found else {},
        "commands": COMMANDS,
    }


def _state(found: Board | None) -> str:
    words = [each.health for each in found.stages] if found else []
    return "bad" if "Degraded" in words else "busy" if "Progressing" in words else "ok" if words else ""


async def environment(asked: Asked) -> Found | None:
    """Find the environment `{env}`, with the RBAC object of its Application and the permission for action `{deed}`."""
    deed = asked.values.get("deed", "")
    if deed and (deed not in DEEDS or not can_write(asked)):
        return None
    name = asked.values["env"]

    def found(opened: Session) -> str | None:
        return next((each.application for each in opened.survey.way.environments if each.name == name), None)

    try:
        application = await with_session(asked, found)
    except (UserError, Refused):
        return None
    action = f"{ACTION}/{NEEDS[deed]}" if deed else ""
    return None if application is None else Found(name, thing_on(asked, application), action=action)


async def plan_page(asked: Asked) -> Page:
    """Show the plan of a promotion, for confirmation."""
    plan = await with_session(asked, lambda opened: plan_view(opened.plan(Planned(asked.subject))))
    return Page(
        "promote/promotion.html",
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
    if not can_write(asked):
        raise Refused
    form, deed, by = await asked.form(), asked.values["deed"], _by(asked)
    reason = " ".join(form.text("reason").split())[:MOST_REASON]
    commit = form.text("commit")
    await with_session(asked, lambda opened: do(opened, deed, asked.subject, by, commit=commit, reason=reason))
    return Redirect(f"/environments?said={SAID[deed]}")


def _by(asked: Asked) -> By:
    caller = asked.caller
    is_account = caller.kind not in ("person", "project")
    is_owner = asked.site.options.is_simulated and is_account and caller.name == "admin"  # holds the demo's kubeconfig
    return By(caller.name, "page", (*caller.groups, *((OWNER,) if is_owner else ())))


def _deeds(asked: Asked, application: str) -> list[str]:
    if not can_write(asked):
        return []
    return [word for word in ("promote", "approve", "hold") if may_on(asked, f"{ACTION}/{word}", application)]


def path_of(asked: Asked, application: str) -> str:
    control = asked.site.desk.control
    known = asked.site.lookout.cache.get(ResourceKey(*APPLICATION, control, application))
    return f"/apps/{control}/{application}" if known else ""


ROUTES = (
    Route("GET", "/environments", Filtered("applications", "get"), page, "Show the environments page."),
    Route(
        "GET",
        "/environments/{env}/promote",
        May("applications", "get", environment),
        plan_page,
        "Show a promotion plan.",
    ),
    Route(
        "POST", "/environments/{env}/{deed}", May("applications", ACTION, environment), done, "Promote, approve, hold."
    ),
)


async def build_updates(asked: Asked) -> dict[str, str]:
    shown = await values(asked)
    board = shown["board"]
    if board is None:
        return render_page_state(shown)
    may, paths = shown["may"], shown["paths"]
    stages = {
        stage.id: part("promote/parts.html", "stage", stage, may[stage.name], paths[stage.name])
        for stage in board.stages
    }
    return stages | {"promotions": part("promote/parts.html", "promotions", board.history)} | render_page_state(shown)


LISTS: Final = Filtered("applications", "get")
LIVE = (Live("/environments", LISTS, build_updates, touches_kinds(GroupKind(*APPLICATION), JOB), concerns),)
