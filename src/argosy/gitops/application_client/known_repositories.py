"""Repositories that are configured in repository Secrets.

In: an ApplicationService. Out: facts about each repository. Never: a credential, in any form.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

from argosy.annotations import SECRET_TYPE
from argosy.errors import ClusterError, UserError
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import SECRET

CREDENTIAL_KEYS: Final = (
    "username",
    "password",
    "bearerToken",
    "sshPrivateKey",
    "tlsClientCertData",
    "githubAppPrivateKey",
)


class RepositoryFacts(NamedTuple):
    type: str
    name: str
    url: str
    insecure: bool
    oci: bool
    lfs: bool
    has_credentials: bool
    project: str


async def list_repositories(service: ApplicationService) -> list[RepositoryFacts]:
    repositories = []
    for secret in await _list_secrets(service, "repository"):
        values = _decode_data(secret)
        is_insecure = any(values.get(name) == "true" for name in ("insecure", "insecureIgnoreHostKey"))
        repositories.append(
            RepositoryFacts(
                values.get("type") or "git",
                values.get("name", ""),
                values.get("url", ""),
                is_insecure,
                values.get("enableOCI") == "true",
                values.get("enableLfs") == "true",
                any(values.get(name) for name in CREDENTIAL_KEYS),
                values.get("project", ""),
            )
        )
    return sorted(repositories, key=lambda repository: repository.url)


async def load_repository(service: ApplicationService, url: str) -> RepositoryFacts:
    for repository in await list_repositories(service):
        if repository.url == url:
            return repository
    raise UserError(f"repository {url!r} not found; list repositories: argocd repo list")


async def _list_secrets(service: ApplicationService, secret_type: str) -> list[Manifest]:
    try:
        listing = await service.cluster.list(
            SECRET, namespace=service.control_namespace, labels=f"{SECRET_TYPE}={secret_type}"
        )
    except ClusterError as error:
        if error.code == 403:
            raise UserError(
                f"you may not read Secrets in {service.control_namespace}; ask for the permission"
            ) from error
        raise
    return [dict(secret) for secret in listing.items]


def _decode_data(secret: Manifest) -> dict[str, str]:
    values: dict[str, str] = {}
    data: dict[str, Any] = secret.get("data") or {}
    for name, value in data.items():
        try:
            values[name] = base64.b64decode(value or "").decode().strip()
        except (binascii.Error, ValueError, TypeError):
            values[name] = ""
    return values
