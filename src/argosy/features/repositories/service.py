"""Repository and credential template Secrets: list, find, add, update, remove.

In: an ApplicationService, request bodies. Out: documents without secrets. Never: returns a secret; keeps a secret when
the address or proxy changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from argosy.errors import Conflict, UserError
from argosy.gitops.application.repository_url import is_same_repository, parse_url
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.declared_objects import (
    Declared,
    Field,
    all_declared,
    declare,
    declare_anew,
    secret_name,
    told,
    values_of,
    withdraw,
)

_OCI: Final = re.compile(r"(oci://)?[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?")
_SHARED: Final = (
    Field("type", "type"),
    Field("project", "project"),
    Field("username", "username"),
    Field("password", "password", is_secret=True),
    Field("bearerToken", "bearerToken", is_secret=True),
    Field("sshPrivateKey", "sshPrivateKey", is_secret=True),
    Field("tlsClientCertData", "tlsClientCertData", is_secret=True),
    Field("tlsClientCertKey", "tlsClientCertKey", is_secret=True),
    Field("githubAppPrivateKey", "githubAppPrivateKey", is_secret=True),
    Field("githubAppID", "githubAppID", int),
    Field("githubAppInstallationID", "githubAppInstallationID", int),
    Field("githubAppEnterpriseBaseUrl", "githubAppEnterpriseBaseUrl"),
    Field("gcpServiceAccountKey", "gcpServiceAccountKey", is_secret=True),
    Field("enableOCI", "enableOCI", bool),
    Field("insecureOCIForceHttp", "insecureOCIForceHttp", bool),
    Field("forceHttpBasicAuth", "forceHttpBasicAuth", bool),
    Field("useAzureWorkloadIdentity", "useAzureWorkloadIdentity", bool),
    Field("proxy", "proxy"),
    Field("noProxy", "noProxy"),
)
_OF_ONE: Final = (
    Field("name", "name"),
    Field("insecure", "insecure", bool),
    Field("insecureIgnoreHostKey", "insecureIgnoreHostKey", bool),
    Field("enableLfs", "enableLfs", bool),
    Field("depth", "depth", int),
)
SECRET_KEYS: Final = tuple(each.key for each in _SHARED if each.is_secret)
WEAKENING: Final = ("insecure", "insecureIgnoreHostKey", "insecureOCIForceHttp")


@dataclass(frozen=True)
class Shelf:
    """argo: one type of repository Secret, and the API name of its address field."""

    type: str
    prefix: str  # of Secret names
    address: str
    word: str
    fields: tuple[Field, ...]


REPOSITORIES: Final = Shelf("repository", "repo", "repo", "repository", (Field("repo", "url"), *_OF_ONE, *_SHARED))
CREDENTIALS: Final = Shelf("repo-creds", "creds", "url", "repository credentials", (Field("url", "url"), *_SHARED))
WRITE_REPOSITORIES: Final = Shelf("repository-write", "repo-write", "repo", "repository", REPOSITORIES.fields)
WRITE_CREDENTIALS: Final = Shelf("repo-write-creds", "creds-write", "url", "repository credentials", CREDENTIALS.fields)


async def all_on(desk: Desk, shelf: Shelf) -> list[Declared]:
    return [each for each in await all_declared(desk, shelf.type) if each.text("url")]


async def find(desk: Desk, shelf: Shelf, url: str, project: str = "") -> Declared | None:
    """Find by normalized URL: the project's own one if a project is given, else a global one before a scoped one."""
    same = [each for each in await all_on(desk, shelf) if is_same_repository(each.text("url"), url)]
    if project:
        return next((each for each in same if each.text("project") == project), None)
    return min(same, key=lambda each: bool(each.text("project")), default=None)


def thing_of(declared: Declared) -> str:
    """argo: object name in RBAC policies."""
    project, url = declared.text("project"), declared.text("url")
    return f"{project}/{url}" if project else url


def document(declared: Declared, shelf: Shelf) -> dict[str, Any]:
    found = told(declared, shelf.fields)
    if "proxy" in found:
        found["proxy"] = _without_user(found["proxy"])
    if shelf.address == "repo":
        found.setdefault("type", "git")
    return found


def _without_user(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def read_values(given: Mapping[str, Any], shelf: Shelf) -> dict[str, str]:
    values = values_of(given, shelf.fields, shelf.word)
    url = values.get("url", "")
    if not url:
        raise UserError(f"{shelf.address} is required; send the URL of the repository", where=shelf.word)
    if values.get("type", "git") not in ("git", "helm", "oci"):
        raise UserError("invalid type; use git, helm or oci", where=shelf.word)
    if values.get("enableOCI") == "true" or values.get("type") == "oci":
        if not _OCI.fullmatch(url):
            raise UserError(f"{shelf.address} is not a registry address; use HOST/PATH", where=shelf.word)
    else:
        parse_url(url)  # rejects a URL with a password, without repeating it
    return values


async def add(desk: Desk, shelf: Shelf, values: Mapping[str, str], *, replaces: bool) -> Declared:
    """argo: an existing one must be equal, unless `replaces`."""
    project = values.get("project", "")
    before = await find(desk, shelf, values["url"], project)
    if before is not None and before.text("project") == project:
        if {key: text for key, text in before.values.items() if text} == dict(values):
            return before
        if not replaces:
            raise UserError(f"existing {shelf.word} spec is different; use upsert flag to force update")
        return await declare_anew(desk, before, kept(before, values))
    try:
        return await declare(desk, shelf.type, secret_name(shelf.prefix, values["url"], project), values)
    except Conflict:
        raise UserError(
            f"the Secret name for this {shelf.word} is taken by another Secret; delete or relabel it first"
        ) from None


async def change(desk: Desk, before: Declared, values: Mapping[str, str]) -> Declared:
    return await declare_anew(desk, before, kept(before, values))


def kept(before: Declared, values: Mapping[str, str]) -> dict[str, str]:
    """Add the stored secrets, unless new ones are given, the target changes, or host verification gets weaker."""
    if any(key in values for key in SECRET_KEYS):
        return dict(values)
    is_elsewhere = any(before.text(key) != values.get(key, "").strip() for key in ("url", "proxy"))
    is_elsewhere |= (before.text("type") or "git") != (values.get("type") or "git")
    is_weaker = any(values.get(key) == "true" and before.text(key) != "true" for key in WEAKENING)
    if is_elsewhere or is_weaker:
        return dict(values)
    return {**{key: before.values[key] for key in SECRET_KEYS if before.values.get(key)}, **values}


async def remove(desk: Desk, declared: Declared) -> None:
    await withdraw(desk, declared)
