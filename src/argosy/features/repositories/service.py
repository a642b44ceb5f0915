"""Repository and credential template Secrets: list, find, add, update, remove.

In: an ApplicationService, request bodies. Out: documents without secrets. Never: returns a secret; keeps a secret when
the address or proxy changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from argosy.errors import Conflict, SourceRefused, UserError
from argosy.gitops.application.repository_url_parser import is_same_repository, parse_url
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.argocd_secrets_and_config_maps import (
    DeclaredSecret,
    SecretField,
    build_secret_name,
    create_declared_secret,
    declared_secret_to_wire,
    delete_declared_secret,
    list_declared_secrets,
    replace_declared_secret,
    secret_values_from_wire,
)
from argosy.gitops.source.credentials import GIT, RepositoryCredential, inherits_credentials

_OCI_ADDRESS: Final = re.compile(r"(oci://)?[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?")
_SHARED_FIELDS: Final = (
    SecretField("type", "type"),
    SecretField("project", "project"),
    SecretField("username", "username"),
    SecretField("password", "password", is_secret=True),
    SecretField("bearerToken", "bearerToken", is_secret=True),
    SecretField("sshPrivateKey", "sshPrivateKey", is_secret=True),
    SecretField("tlsClientCertData", "tlsClientCertData", is_secret=True),
    SecretField("tlsClientCertKey", "tlsClientCertKey", is_secret=True),
    SecretField("githubAppPrivateKey", "githubAppPrivateKey", is_secret=True),
    SecretField("githubAppID", "githubAppID", int),
    SecretField("githubAppInstallationID", "githubAppInstallationID", int),
    SecretField("githubAppEnterpriseBaseUrl", "githubAppEnterpriseBaseUrl"),
    SecretField("gcpServiceAccountKey", "gcpServiceAccountKey", is_secret=True),
    SecretField("enableOCI", "enableOCI", bool),
    SecretField("insecureOCIForceHttp", "insecureOCIForceHttp", bool),
    SecretField("forceHttpBasicAuth", "forceHttpBasicAuth", bool),
    SecretField("useAzureWorkloadIdentity", "useAzureWorkloadIdentity", bool),
    SecretField("proxy", "proxy"),
    SecretField("noProxy", "noProxy"),
)
_REPOSITORY_FIELDS: Final = (
    SecretField("name", "name"),
    SecretField("insecure", "insecure", bool),
    SecretField("insecureIgnoreHostKey", "insecureIgnoreHostKey", bool),
    SecretField("enableLfs", "enableLfs", bool),
    SecretField("depth", "depth", int),
)
SECRET_KEYS: Final = tuple(field.key for field in _SHARED_FIELDS if field.is_secret)
INSECURE_KEYS: Final = ("insecure", "insecureIgnoreHostKey", "insecureOCIForceHttp")


@dataclass(frozen=True)
class RepositorySecretType:
    """argo: one type of repository Secret, and the API name of its address field."""

    type: str
    prefix: str  # of Secret names
    address_field: str
    noun: str
    fields: tuple[SecretField, ...]


REPOSITORIES: Final = RepositorySecretType(
    "repository", "repo", "repo", "repository", (SecretField("repo", "url"), *_REPOSITORY_FIELDS, *_SHARED_FIELDS)
)
CREDENTIALS: Final = RepositorySecretType(
    "repo-creds", "creds", "url", "repository credentials", (SecretField("url", "url"), *_SHARED_FIELDS)
)
WRITE_REPOSITORIES: Final = RepositorySecretType(
    "repository-write", "repo-write", "repo", "repository", REPOSITORIES.fields
)
WRITE_CREDENTIALS: Final = RepositorySecretType(
    "repo-write-creds", "creds-write", "url", "repository credentials", CREDENTIALS.fields
)


async def list_declared(app_service: ApplicationService, secret_type: RepositorySecretType) -> list[DeclaredSecret]:
    return [
        declared
        for declared in await list_declared_secrets(app_service, secret_type.type)
        if declared.get_stripped("url")
    ]


async def find_declared(
    app_service: ApplicationService, secret_type: RepositorySecretType, url: str, project: str = ""
) -> DeclaredSecret | None:
    """Find by normalized URL: the project's own one if a project is given, else a global one before a scoped one."""
    matches = [
        declared
        for declared in await list_declared(app_service, secret_type)
        if is_same_repository(declared.get_stripped("url"), url)
    ]
    if project:
        return next((declared for declared in matches if declared.get_stripped("project") == project), None)
    return min(matches, key=lambda declared: bool(declared.get_stripped("project")), default=None)


def rbac_name(declared: DeclaredSecret) -> str:
    """argo: object name in RBAC policies."""
    project, url = declared.get_stripped("project"), declared.get_stripped("url")
    return f"{project}/{url}" if project else url


def repository_to_wire(declared: DeclaredSecret, secret_type: RepositorySecretType) -> dict[str, Any]:
    wire = declared_secret_to_wire(declared, secret_type.fields)
    if "proxy" in wire:
        wire["proxy"] = _strip_user(wire["proxy"])
    if secret_type.address_field == "repo":
        wire.setdefault("type", "git")
    return wire


def has_inherited_credentials(declared: DeclaredSecret, credentials: Iterable[RepositoryCredential]) -> bool:
    try:
        url = parse_url(declared.get_stripped("url"))
    except SourceRefused:
        return False
    project, source_type = declared.get_stripped("project"), declared.get_stripped("type") or GIT
    return inherits_credentials(credentials, url, project, source_type)


def _strip_user(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def read_values(body: Mapping[str, Any], secret_type: RepositorySecretType) -> dict[str, str]:
    values = secret_values_from_wire(body, secret_type.fields, secret_type.noun)
    url = values.get("url", "")
    if not url:
        raise UserError(
            f"{secret_type.address_field} is required; send the URL of the repository", where=secret_type.noun
        )
    if values.get("type", "git") not in ("git", "helm", "oci"):
        raise UserError("invalid type; use git, helm or oci", where=secret_type.noun)
    if values.get("enableOCI") == "true" or values.get("type") == "oci":
        if not _OCI_ADDRESS.fullmatch(url):
            raise UserError(
                f"{secret_type.address_field} is not a registry address; use HOST/PATH", where=secret_type.noun
            )
    else:
        parse_url(url)  # rejects a URL with a password, without repeating it
    return values


async def add_declared(
    app_service: ApplicationService, secret_type: RepositorySecretType, values: Mapping[str, str], *, is_upsert: bool
) -> DeclaredSecret:
    """argo: an existing one must be equal, unless `is_upsert`."""
    project = values.get("project", "")
    existing = await find_declared(app_service, secret_type, values["url"], project)
    if existing is not None and existing.get_stripped("project") == project:
        if {key: text for key, text in existing.values.items() if text} == dict(values):
            return existing
        if not is_upsert:
            raise UserError(f"existing {secret_type.noun} spec is different; use upsert flag to force update")
        return await replace_declared_secret(app_service, existing, keep_secrets(existing, values))
    try:
        return await create_declared_secret(
            app_service, secret_type.type, build_secret_name(secret_type.prefix, values["url"], project), values
        )
    except Conflict:
        raise UserError(
            f"the Secret name for this {secret_type.noun} is taken by another Secret; delete or relabel it first"
        ) from None


async def update_declared(
    app_service: ApplicationService, existing: DeclaredSecret, values: Mapping[str, str]
) -> DeclaredSecret:
    return await replace_declared_secret(app_service, existing, keep_secrets(existing, values))


def keep_secrets(existing: DeclaredSecret, values: Mapping[str, str]) -> dict[str, str]:
    """Add the stored secrets, unless new ones are given, the target changes, the user goes, or checks get weaker."""
    if any(key in values for key in SECRET_KEYS):
        return dict(values)
    is_other_target = any(existing.get_stripped(key) != values.get(key, "").strip() for key in ("url", "proxy"))
    is_other_target |= (existing.get_stripped("type") or "git") != (values.get("type") or "git")
    is_weaker = any(values.get(key) == "true" and existing.get_stripped(key) != "true" for key in INSECURE_KEYS)
    is_user_removed = bool(existing.get_stripped("username")) and not values.get("username", "").strip()
    if is_other_target or is_weaker or is_user_removed:
        return dict(values)
    return {**{key: existing.values[key] for key in SECRET_KEYS if existing.values.get(key)}, **values}


async def remove_declared(app_service: ApplicationService, declared: DeclaredSecret) -> None:
    await delete_declared_secret(app_service, declared)
