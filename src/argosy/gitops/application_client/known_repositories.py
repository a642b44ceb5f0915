"""Repositories that are configured in repository Secrets.

In: an ApplicationService. Out: facts about each repository. Never: a credential, in any form.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

from argosy.annotations import SECRET_TYPE
from argosy.errors import ClusterError, UserError
from argosy.gitops.application_client.client import Desk
from argosy.gitops.reconciler.settings_watch import SECRET
from argosy.kube.objects import Manifest

SECRETS: Final = ("username", "password", "bearerToken", "sshPrivateKey", "tlsClientCertData", "githubAppPrivateKey")


class Repository(NamedTuple):
    type: str
    name: str
    url: str
    insecure: bool
    oci: bool
    lfs: bool
    has_credentials: bool
    project: str


async def repositories_of(desk: Desk) -> list[Repository]:
    found = []
    for secret in await _secrets(desk, "repository"):
        values = _texts(secret)
        is_insecure = any(values.get(name) == "true" for name in ("insecure", "insecureIgnoreHostKey"))
        found.append(
            Repository(
                values.get("type") or "git",
                values.get("name", ""),
                values.get("url", ""),
                is_insecure,
                values.get("enableOCI") == "true",
                values.get("enableLfs") == "true",
                any(values.get(name) for name in SECRETS),
                values.get("project", ""),
            )
        )
    return sorted(found, key=lambda each: each.url)


async def repository_at(desk: Desk, url: str) -> Repository:
    for each in await repositories_of(desk):
        if each.url == url:
            return each
    raise UserError(f"repository {url!r} not found; list repositories: argocd repo list")


async def _secrets(desk: Desk, kind: str) -> list[Manifest]:
    try:
        found = await desk.cluster.list(SECRET, namespace=desk.control, labels=f"{SECRET_TYPE}={kind}")
    except ClusterError as error:
        if error.code == 403:
            raise UserError(f"you may not read Secrets in {desk.control}; ask for the permission") from error
        raise
    return [dict(each) for each in found.items]


def _texts(secret: Manifest) -> dict[str, str]:
    found: dict[str, str] = {}
    data: dict[str, Any] = secret.get("data") or {}
    for name, value in data.items():
        try:
            found[name] = base64.b64decode(value or "").decode().strip()
        except (binascii.Error, ValueError, TypeError):
            found[name] = ""
    return found
