"""Creates and deletes tokens of project roles.

In: an application service, a project and a role. Out: a token, shown once. Never: stores more than its id and times.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import Conflict, UserError
from argosy.gitops.application_client.application_service import MAX_WRITE_ATTEMPTS, ApplicationService, utc_now
from argosy.gitops.application_client.appproject_operations import load_project
from argosy.gitops.application_client.role_token_lists import SPEC_FIELD, STATUS_FIELD, combine_role_tokens
from argosy.gitops.policy.builtin_and_project_roles import format_role_subject
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import SECRET
from argosy.web.auth.account_password_token_store import generate_token_id
from argosy.web.auth.accounts import (
    ACCOUNTS_SECRET,
    SIGNING_KEY,
    TokenRecord,
    decode_secret_data,
    read_role_token_records,
)
from argosy.web.auth.derived_token_limits import NO_LIMITS, TokenLimits
from argosy.web.auth.signed_tokens import ISSUER, TokenClaims, check_signing_key, sign_token


async def add_role_token(
    service: ApplicationService,
    project: str,
    role: str,
    *,
    lifetime_seconds: int = 0,
    token_id: str = "",
    limits: TokenLimits = NO_LIMITS,
) -> str:
    if lifetime_seconds < 0:
        raise UserError("token lifetime must not be negative; use 0 for no expiry")
    records: list[TokenRecord] = []

    def append_record(roles: list[dict[str, Any]], status: dict[str, Any]) -> None:
        role_entry = _find_role(roles, project, role)
        existing = read_role_token_records(role_entry.get(SPEC_FIELD))
        # argo: deletes by this time
        issued = max([int(utc_now().timestamp()), *(other.issued_at + 1 for other in existing)])
        record = TokenRecord(
            token_id or generate_token_id(), issued, issued + lifetime_seconds if lifetime_seconds else 0
        )
        if any(other.id == record.id for other in existing):
            raise UserError(f"token id {record.id!r} has been used; choose another id")
        limits.check_expiry(record)
        entry = {"iat": record.issued_at, "id": record.id, **({"exp": record.expires_at} if record.expires_at else {})}
        role_entry[SPEC_FIELD] = [*(role_entry.get(SPEC_FIELD) or ()), entry]
        records[:] = [record]

    secret = await service.cluster.get(ResourceKey(*SECRET, service.control_namespace, ACCOUNTS_SECRET))
    key = decode_secret_data(secret).get(SIGNING_KEY, b"")
    check_signing_key(key)
    await _update_project(service, project, append_record)
    (record,) = records
    subject = format_role_subject(project, role)
    claims = TokenClaims(
        ISSUER, subject, record.id, record.issued_at, record.expires_at, record.issued_at, parents=limits.parents
    )
    return sign_token(claims, key)


async def remove_role_token(
    service: ApplicationService, project: str, role: str, *, issued: int = 0, token_id: str = ""
) -> None:
    """Delete a token by its id or by its issue time."""

    def is_selected(record: TokenRecord) -> bool:
        return record.id == token_id if token_id else record.issued_at == issued

    def drop_record(roles: list[dict[str, Any]], status: dict[str, Any]) -> None:
        role_entry = _find_role(roles, project, role)
        by_role = status.get(STATUS_FIELD) or {}
        status_entry = by_role.get(role) or {}
        records = [
            *read_role_token_records(role_entry.get(SPEC_FIELD)),
            *read_role_token_records(status_entry.get("items")),
        ]
        if not any(map(is_selected, records)):
            raise UserError(f"role {role!r} of project {project!r} has no such token; read the project to list them")
        role_entry[SPEC_FIELD] = _drop_selected(role_entry.get(SPEC_FIELD), is_selected)
        if status_entry:
            status[STATUS_FIELD] = {
                **by_role,
                role: {"items": _drop_selected(status_entry.get("items"), is_selected)},
            }

    await _update_project(service, project, drop_record)


def _drop_selected(items: Any, is_selected: Any) -> list[Any]:
    return [item for item in items or () if not any(map(is_selected, read_role_token_records([item])))]


def _find_role(roles: list[dict[str, Any]], project: str, name: str) -> dict[str, Any]:
    for role in roles:
        if role.get("name") == name:
            return role
    raise UserError(f"project {project!r} does not have role {name[:60]!r}; add it first")


async def _update_project(service: ApplicationService, project: str, change: Any) -> None:
    for _ in range(MAX_WRITE_ATTEMPTS):
        manifest = combine_role_tokens(await load_project(service, project))
        spec, status = dict(manifest.get("spec") or {}), dict(manifest.get("status") or {})
        roles = [dict(role) for role in spec.get("roles") or () if isinstance(role, dict)]
        change(roles, status)
        updated = {**manifest, "spec": {**spec, "roles": roles}, "status": status}
        try:
            await service.cluster.replace(combine_role_tokens(updated))
        except Conflict:
            continue
        return
    raise UserError(f"project {project!r}: gave up after {MAX_WRITE_ATTEMPTS} write conflicts; try again")
