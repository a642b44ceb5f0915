"""Creates and deletes tokens of project roles.

In: an application service, a project and a role. Out: a token, shown once. Never: stores more than its id and times.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import Conflict, UserError
from argosy.gitops.application_client.client import ATTEMPTS, Desk, clock
from argosy.gitops.application_client.projects import project_named
from argosy.gitops.policy.roles import role_subject
from argosy.kube.names import ResourceKey
from argosy.web.auth.account_changes import new_id
from argosy.web.auth.accounts import SECRET, SIGNING_KEY, TokenMark, marks_of, secret_data
from argosy.web.auth.token_limits import NO_LIMITS, TokenLimits
from argosy.web.auth.tokens import ISSUER, Claims, sign

TOKENS: Final = "jwtTokens"


async def add_role_token(
    desk: Desk, project: str, role: str, *, seconds: int = 0, token_id: str = "", limits: TokenLimits = NO_LIMITS
) -> str:
    if seconds < 0:
        raise UserError("token lifetime must not be negative; use 0 for no expiry")
    made: list[TokenMark] = []

    def added(roles: list[dict[str, Any]], status: dict[str, Any]) -> None:
        mine = _role(roles, project, role)
        known = marks_of(mine.get(TOKENS))
        issued = max([int(clock().timestamp()), *(each.issued + 1 for each in known)])  # argo: deletes by this time
        mark = TokenMark(token_id or new_id(), issued, issued + seconds if seconds else 0)
        if any(each.id == mark.id for each in known):
            raise UserError(f"token id {mark.id!r} has been used; choose another id")
        limits.check_end(mark)
        told = {"iat": mark.issued, "id": mark.id, **({"exp": mark.expires} if mark.expires else {})}
        mine[TOKENS] = [*(mine.get(TOKENS) or ()), told]
        made[:] = [mark]

    await _change(desk, project, added)
    found = await desk.cluster.get(ResourceKey("", "Secret", desk.control, SECRET))
    key = secret_data(found).get(SIGNING_KEY, b"")
    (mark,) = made
    subject = role_subject(project, role)
    claims = Claims(ISSUER, subject, mark.id, mark.issued, mark.expires, mark.issued, parents=limits.parents)
    return sign(claims, key)


async def remove_role_token(desk: Desk, project: str, role: str, *, issued: int = 0, token_id: str = "") -> None:
    """Delete a token by its id or by its issue time."""

    def is_meant(mark: TokenMark) -> bool:
        return mark.id == token_id if token_id else mark.issued == issued

    def removed(roles: list[dict[str, Any]], status: dict[str, Any]) -> None:
        mine = _role(roles, project, role)
        by_role = status.get("jwtTokensByRole") or {}
        other = by_role.get(role) or {}
        had = [*marks_of(mine.get(TOKENS)), *marks_of(other.get("items"))]
        if not any(map(is_meant, had)):
            raise UserError(f"role {role!r} of project {project!r} has no such token; read the project to list them")
        mine[TOKENS] = _without(mine.get(TOKENS), is_meant)
        if other:
            status["jwtTokensByRole"] = {**by_role, role: {"items": _without(other.get("items"), is_meant)}}

    await _change(desk, project, removed)


def _without(items: Any, is_meant: Any) -> list[Any]:
    return [each for each in items or () if not any(map(is_meant, marks_of([each])))]


def _role(roles: list[dict[str, Any]], project: str, name: str) -> dict[str, Any]:
    for each in roles:
        if each.get("name") == name:
            return each
    raise UserError(f"project {project!r} does not have role {name[:60]!r}; add it first")


async def _change(desk: Desk, project: str, make: Any) -> None:
    for _ in range(ATTEMPTS):
        before = await project_named(desk, project)
        spec, status = dict(before.get("spec") or {}), dict(before.get("status") or {})
        roles = [dict(each) for each in spec.get("roles") or () if isinstance(each, dict)]
        make(roles, status)
        after = {**before, "spec": {**spec, "roles": roles}, **({"status": status} if status else {})}
        try:
            await desk.cluster.replace(after)
        except Conflict:
            continue
        return
    raise UserError(f"project {project!r}: gave up after {ATTEMPTS} write conflicts; try again")
