"""Serves `/environments`: releases, pending promotions and gates, with actions to promote, approve and hold.

In: a request. Out: a board, a plan to confirm, a commit. Never: shows an environment whose Application the caller may
not see; promotes without planning again; commits in the name of the server's user instead of the caller.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.promote.environments_board import EnvironmentBoard, build_plan_view
from argosy.features.promote.page_action_commits import ACTIONS, run_action
from argosy.features.promote.plan import PromotionRequest as Planned
from argosy.features.promote.promotion_log_trailers import PromotionActor
from argosy.features.promote.service import PromotionSession
from argosy.features.promote.visible_board import (
    EnvironmentBoards,
    build_rbac_object,
    has_writable_clone,
    is_permitted_on_application,
)
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, NOTEBOOK_JOB
from argosy.web.live_updates.live_page_definitions import LivePage, build_kind_predicate
from argosy.web.page_templates import render_macro, render_page_state
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.responses import PageResponse, RedirectResponse
from argosy.web.route import FilteredList, RequiresPermission, ResolvedObject, Route

COMMANDS: Final = (
    "argosy promote status",
    "argosy promote plan --to staging",
    "argosy serve --repo .",
)
ACTION: Final = "action/argosy.dev/Environment"  # argo: an action of an Application: promote, approve, hold
PERMISSION_BY_ACTION: Final = {
    "promote": "promote",
    "approve": "approve",
    "reject": "approve",
    "hold": "hold",
    "resume": "hold",
}
FLASH_BY_ACTION: Final = {
    "promote": "promoted", "approve": "approved", "reject": "rejected", "hold": "env-held", "resume": "env-resumed",
}  # fmt: skip
DEMO_OWNER_GROUP: Final = "system:masters"  # k8s: the group of the user who started the demo
MAX_REASON_CHARACTERS: Final = 500


async def show_environments(boards: EnvironmentBoards, request: RequestContext) -> PageResponse:
    return PageResponse("promote/environments.html", await build_page_values(request, boards))


async def build_page_values(request: RequestContext, boards: EnvironmentBoards) -> dict[str, Any]:
    board, problem = await boards.load_visible(request)
    return {
        "title": "Environments",
        "is_live": True,
        "section": "environments",
        "state": _summarize_health(board),
        "board": board,
        "problem": problem,
        "has_repository": has_writable_clone(request),
        "may": {stage.name: _list_permitted_actions(request, stage.application) for stage in board.stages}
        if board
        else {},
        "paths": {stage.name: get_application_path(request, stage.application) for stage in board.stages}
        if board
        else {},
        "commands": COMMANDS,
    }


def _summarize_health(board: EnvironmentBoard | None) -> str:
    health_values = [stage.health for stage in board.stages] if board else []
    return (
        "bad"
        if "Degraded" in health_values
        else "busy"
        if "Progressing" in health_values
        else "ok"
        if health_values
        else ""
    )


async def find_environment(boards: EnvironmentBoards, request: RequestContext) -> ResolvedObject | None:
    """Find the environment `{env}`, with the RBAC object of its Application and the permission for action `{deed}`."""
    action_name = request.path_parameters.get("deed", "")
    if action_name and (action_name not in ACTIONS or not has_writable_clone(request)):
        return None
    name = request.path_parameters["env"]

    def find_application(session: PromotionSession) -> str | None:
        return next(
            (candidate.application for candidate in session.snapshot.pipeline.environments if candidate.name == name),
            None,
        )

    try:
        application = await boards.run_with_session(request, find_application)
    except (UserError, NotFoundOrForbidden):
        return None
    action = f"{ACTION}/{PERMISSION_BY_ACTION[action_name]}" if action_name else ""
    return None if application is None else ResolvedObject(name, build_rbac_object(request, application), action=action)


async def show_plan(boards: EnvironmentBoards, request: RequestContext) -> PageResponse:
    """Show the plan of a promotion, for confirmation."""
    plan = await boards.run_with_session(
        request, lambda session: build_plan_view(session.plan(Planned(request.subject)))
    )
    return PageResponse(
        "promote/promotion.html",
        {
            "title": f"Promote {plan.release} of {plan.source} to {plan.target}",
            "section": "environments",
            "state": "",
            "crumbs": [("Environments", "/environments")],
            "plan": plan,
            "may": _list_permitted_actions(request, plan.application),
            "app_path": get_application_path(request, plan.application),
        },
    )


async def run_requested_action(boards: EnvironmentBoards, request: RequestContext) -> RedirectResponse:
    if not has_writable_clone(request):
        raise NotFoundOrForbidden
    form, action, actor = await request.read_form(), request.path_parameters["deed"], _build_actor(request)
    reason = " ".join(form.get_text("reason").split())[:MAX_REASON_CHARACTERS]
    commit = form.get_text("commit")
    await boards.run_with_session(
        request, lambda session: run_action(session, action, request.subject, actor, commit=commit, reason=reason)
    )
    return RedirectResponse(f"/environments?said={FLASH_BY_ACTION[action]}")


def _build_actor(request: RequestContext) -> PromotionActor:
    caller = request.caller
    is_account = caller.kind not in ("person", "project")
    is_owner = request.options.is_simulated and is_account and caller.name == "admin"  # holds the demo's kubeconfig
    return PromotionActor(caller.name, "page", (*caller.groups, *((DEMO_OWNER_GROUP,) if is_owner else ())))


def _list_permitted_actions(request: RequestContext, application: str) -> list[str]:
    if not has_writable_clone(request):
        return []
    return [
        word
        for word in ("promote", "approve", "hold")
        if is_permitted_on_application(request, f"{ACTION}/{word}", application)
    ]


def get_application_path(request: RequestContext, application: str) -> str:
    control = request.service.control_namespace
    application_manifest = request.cluster_view.cache.get(ResourceKey(*APPLICATION, control, application))
    return f"/apps/{control}/{application}" if application_manifest else ""


def build_routes(boards: EnvironmentBoards) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/environments",
            FilteredList("applications", "get"),
            partial(show_environments, boards),
            "Show the environments page.",
        ),
        Route(
            "GET",
            "/environments/{env}/promote",
            RequiresPermission("applications", "get", partial(find_environment, boards)),
            partial(show_plan, boards),
            "Show a promotion plan.",
        ),
        Route(
            "POST",
            "/environments/{env}/{deed}",
            RequiresPermission("applications", ACTION, partial(find_environment, boards)),
            partial(run_requested_action, boards),
            "Promote, approve, hold.",
        ),
    )


async def build_updates(boards: EnvironmentBoards, request: RequestContext) -> dict[str, str]:
    page_values = await build_page_values(request, boards)
    board = page_values["board"]
    if board is None:
        return render_page_state(page_values)
    may, paths = page_values["may"], page_values["paths"]
    stages = {
        stage.id: render_macro("promote/parts.html", "stage", stage, may[stage.name], paths[stage.name])
        for stage in board.stages
    }
    return (
        stages
        | {"promotions": render_macro("promote/parts.html", "promotions", board.history)}
        | render_page_state(page_values)
    )


LISTS: Final = FilteredList("applications", "get")


def build_live_pages(boards: EnvironmentBoards) -> tuple[LivePage, ...]:
    return (
        LivePage(
            "/environments",
            LISTS,
            partial(build_updates, boards),
            build_kind_predicate(GroupKind(*APPLICATION), NOTEBOOK_JOB),
            boards.may_affect_environments,
        ),
    )
