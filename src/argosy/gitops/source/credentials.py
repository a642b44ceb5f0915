"""Repository credentials, read from Argo CD's Secrets.

In: Secrets with the label secret-type, a repository URL. Out: the matching credential. Never: a secret value in repr.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from argosy.errors import SourceRefused
from argosy.gitops.application.repository_url_parser import RepositoryUrl, parse_url
from argosy.kube.objects import Manifest

SECRET_TYPE_LABEL = "argocd.argoproj.io/secret-type"
REPOSITORY_SECRET, CREDENTIAL_TEMPLATE_SECRET = "repository", "repo-creds"
GIT, HELM = "git", "helm"
UNSUPPORTED_FIELDS = {
    "githubAppPrivateKey": "a GitHub App",
    "gcpServiceAccountKey": "a Google service account",
    "useAzureWorkloadIdentity": "Azure workload identity",
}


@dataclass(frozen=True, slots=True)
class RepositoryCredential:
    """Credentials for a repository URL or a URL prefix."""

    url: RepositoryUrl
    secret: str  # namespace/name of the Secret, for messages
    is_template: bool = False  # applies to every URL below `url`
    type: str = GIT
    name: str = ""  # of a Helm repository, by which Chart.yaml may refer to it
    project: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)
    ssh_key: str = field(default="", repr=False)
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    no_proxy: str = ""
    skips_verification: bool = False
    fault: str = ""  # why the Secret is unusable

    @property
    def has_credentials(self) -> bool:
        return bool(self.password or self.bearer_token or self.ssh_key or self.client_certificate or self.username)

    @property
    def secret_values(self) -> tuple[str, ...]:
        values = (self.password, self.bearer_token, self.ssh_key, self.client_key, self.proxy)
        return tuple(value for value in values if value)


@dataclass(frozen=True, slots=True)
class HostTrust:
    """ssh_known_hosts, and certificate authorities by host, from Argo CD's two ConfigMaps."""

    known_hosts: str = ""
    authorities_by_host: Mapping[str, str] = field(default_factory=dict)


def read_credentials(secrets: Iterable[Manifest]) -> list[RepositoryCredential]:
    """Read all repository Secrets. An unusable one stays in the list with its fault: no weaker match may replace it."""
    credentials = (_read_credential(secret) for secret in secrets)
    return [credential for credential in credentials if credential is not None]


def find_credential(
    credentials: Iterable[RepositoryCredential], url: RepositoryUrl, project: str = "", type: str = GIT
) -> RepositoryCredential | None:
    """Return the repository's own credential, else the template with the longest prefix; SourceRefused if unusable.

    A Secret of type helm is for Helm repositories only. One of type git, or without a type, is for both: most
    templates have no type.
    """
    chosen = _choose_credential(credentials, url, project, type)
    if chosen is not None and chosen.fault:
        raise SourceRefused(chosen.fault, where=f"Secret {chosen.secret}")
    return chosen


def inherits_credentials(
    credentials: Iterable[RepositoryCredential], url: RepositoryUrl, project: str = "", type: str = GIT
) -> bool:
    """argo: True if the repository has no credentials of its own, and a template applies to it, usable or not."""
    chosen = _choose_credential(credentials, url, project, type)
    return chosen is not None and chosen.is_template


def _choose_credential(
    credentials: Iterable[RepositoryCredential], url: RepositoryUrl, project: str, type: str
) -> RepositoryCredential | None:
    usable = [credential for credential in credentials if credential.project in ("", project)]
    usable = [credential for credential in usable if credential.type in (GIT, type)]
    exact = [
        candidate
        for candidate in usable
        if not candidate.is_template and candidate.url.identity == url.identity and _matches_user(candidate, url)
    ]
    templates = [
        candidate for candidate in usable if candidate.is_template and url.segments_after(candidate.url) is not None
    ]
    own = max(exact, key=lambda candidate: (candidate.type == type, bool(candidate.project)), default=None)
    chosen = own
    # argo: a repository without its own credentials uses those of the template.
    if own is None or not (own.has_credentials or own.fault):
        chosen = max(
            templates,
            key=lambda candidate: (len(candidate.url.segments), candidate.type == type, bool(candidate.project)),
            default=own,
        )
    if own is not None and chosen is not None and chosen is not own:
        chosen = _add_connection_settings(chosen, own)
    return chosen


def _add_connection_settings(template: RepositoryCredential, own: RepositoryCredential) -> RepositoryCredential:
    """argo: the repository's own Secret says how to connect, also if the credentials come from a template."""
    return replace(
        template,
        skips_verification=template.skips_verification or own.skips_verification,
        proxy=own.proxy or template.proxy,
        no_proxy=own.no_proxy or template.no_proxy,
    )


def _matches_user(credential: RepositoryCredential, url: RepositoryUrl) -> bool:
    return not (credential.url.user and url.user) or credential.url.user == url.user


def _read_credential(secret: Manifest) -> RepositoryCredential | None:
    metadata: Mapping[str, Any] = secret.get("metadata") or {}
    secret_type = (metadata.get("labels") or {}).get(SECRET_TYPE_LABEL)
    if secret_type not in (REPOSITORY_SECRET, CREDENTIAL_TEMPLATE_SECRET):
        return None
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".lstrip("/")
    values, fault = _decode_fields(secret)
    type = values.get("type") or GIT
    if type not in (GIT, HELM) or values.get("enableOCI") == "true":
        return None
    try:
        url = parse_url(values.get("url", ""))
    except SourceRefused:
        return None  # no usable URL, so it matches nothing
    return RepositoryCredential(
        url=url,
        secret=name,
        is_template=secret_type == CREDENTIAL_TEMPLATE_SECRET,
        type=type,
        name=values.get("name", ""),
        project=values.get("project", ""),
        username=values.get("username", ""),
        password=values.get("password", ""),
        bearer_token=values.get("bearerToken", ""),
        ssh_key=values.get("sshPrivateKey", ""),
        client_certificate=values.get("tlsClientCertData", ""),
        client_key=values.get("tlsClientCertKey", ""),
        proxy=values.get("proxy", ""),
        no_proxy=values.get("noProxy", ""),
        skips_verification=any(values.get(key) == "true" for key in ("insecure", "insecureIgnoreHostKey")),
        fault=fault or _find_fault(values),
    )


def _decode_fields(secret: Manifest) -> tuple[dict[str, str], str]:
    """Return the decoded fields, and an error that names an undecodable field but never its value."""
    values: dict[str, str] = {}
    fault = ""
    for key, value in (secret.get("data") or {}).items():
        try:
            values[key] = base64.b64decode(value or "", validate=True).decode()
        except (binascii.Error, ValueError, TypeError):
            fault = f"field {key} is not base64-encoded text; write it under stringData instead"
    for key, value in (secret.get("stringData") or {}).items():
        values[key] = value if isinstance(value, str) else ""
    return {key: value if "PrivateKey" in key else value.strip() for key, value in values.items()}, fault


def _find_fault(values: Mapping[str, str]) -> str:
    for key, name in UNSUPPORTED_FIELDS.items():
        if values.get(key) not in (None, "", "false"):
            return f"{name} is not supported yet ({key}); use a token or an ssh key"
    single_line_fields = ("username", "password", "bearerToken", "proxy", "noProxy")
    if invalid_fields := [key for key in single_line_fields if any(ord(char) < 32 for char in values.get(key, ""))]:
        return f"field {invalid_fields[0]} contains a line break or another control character; remove it"
    return ""
