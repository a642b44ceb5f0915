"""Verifies webhook requests of Git hosts and reads the pushes in them.

In: headers and body of a request, the configured secrets. Out: Pushes, none for other events; SourceRefused if the
sender cannot be verified. Never: parses a body before its sender is verified; does HTTP.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from argosy.errors import LimitError, ManifestError, SourceRefused
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.source.version_ranges import find_newest_tag
from argosy.gitops.source.webhook_payloads import (
    Push,
    read_azure_pushes,
    read_bitbucket_pushes,
    read_bitbucket_server_pushes,
    read_gitea_pushes,
    read_github_pushes,
    read_gitlab_pushes,
)
from argosy.kube.objects import read_json
from argosy.kube.objects.strict_typed_field_reader import FieldReader

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "Push",
    "WebhookSecrets",
    "affects_source",
    "read_pushes",
    "read_webhook_secrets",
    "repository_identity",
]

MAX_PAYLOAD_BYTES: Final = 50 << 20  # argo: webhook.maxPayloadSizeMB
_FORM_CONTENT_TYPE: Final = "application/x-www-form-urlencoded"
_SSH_HOST_PREFIXES: Final = ("altssh.", "ssh.")  # argo: alternative host names for ssh over port 443


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """Webhook secrets by their key in argocd-secret."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)


class _GitHost(NamedTuple):
    name: str
    secret_key: str  # of its secret in argocd-secret
    event_header: str  # the header that names the event
    verify: Callable[[bytes, Mapping[str, str], str], bool]
    read_pushes: Callable[[str, FieldReader], Iterator[Push]]


def read_webhook_secrets(secret: Mapping[str, str]) -> WebhookSecrets:
    """Read the webhook secrets from the decoded data of argocd-secret."""
    values = {key: text for key in _SECRET_KEYS if (text := secret.get(key, "").strip())}
    if _AZURE_PASSWORD_KEY in values:  # it sends user and password in one header
        values[_AZURE_PASSWORD_KEY] = f"{secret.get(_AZURE_USERNAME_KEY, '').strip()}:{values[_AZURE_PASSWORD_KEY]}"
    return WebhookSecrets(values)


def read_pushes(
    headers: Mapping[str, str], body: bytes, secrets: WebhookSecrets, *, max_bytes: int = MAX_PAYLOAD_BYTES
) -> tuple[Push, ...]:
    """Return the pushes; empty for other events, such as the ping that tests a new hook."""
    if len(body) > max_bytes:
        message = f"payload of {len(body)} bytes exceeds the limit of {max_bytes}; push fewer changes at once"
        raise LimitError(message, where="webhook")
    lowercase_headers = {name.lower(): text for name, text in headers.items()}
    host = _find_host(lowercase_headers)
    _verify_sender(host, body, lowercase_headers, secrets)
    value = read_json(_unwrap_form(body, lowercase_headers), where=f"webhook of {host.name}").value
    payload = FieldReader(value, f"webhook of {host.name}")
    return tuple(
        push for push in host.read_pushes(lowercase_headers[host.event_header], payload) if push.ref and push.urls
    )


def affects_source(push: Push, url: str, ref: str, *, tag_prefix: str = "") -> bool:
    """True if the push may change the revision of a source. A source pinned to a commit id never changes."""
    if (identity := repository_identity(url)) is None or identity not in map(repository_identity, push.urls):
        return False
    if ref in ("", "HEAD"):
        return bool(push.branch) and push.default_branch in ("", push.branch)
    if ref in (push.ref, push.branch, push.tag) or f"refs/{ref}" == push.ref:
        return True
    return bool(push.tag) and find_newest_tag(ref, [push.tag], tag_prefix) == push.tag


@lru_cache(4096)
def repository_identity(url: str) -> tuple[str, tuple[str, ...]] | None:
    """Return host and path of a repository, without protocol, port and user; None if the URL is invalid."""
    try:
        parsed = parse_url(url)
    except SourceRefused:
        return None
    host = parsed.host
    if parsed.scheme == "ssh":
        host = next((host.removeprefix(prefix) for prefix in _SSH_HOST_PREFIXES if host.startswith(prefix)), host)
    return host, parsed.segments


def _find_host(headers: Mapping[str, str]) -> _GitHost:
    match = next((host for host in _HOSTS if host.event_header in headers), None)
    if match is None:
        hosts = ", ".join(dict.fromkeys(host.name for host in _HOSTS))
        raise SourceRefused(f"unknown sender; supported are webhooks of {hosts}", where="webhook")
    if match.secret_key == _BITBUCKET_UUID_KEY and "x-hook-uuid" not in headers:
        return _BITBUCKET_SERVER
    return match


def _verify_sender(host: _GitHost, body: bytes, headers: Mapping[str, str], secrets: WebhookSecrets) -> None:
    secret = secrets.values.get(host.secret_key)
    if not secrets.values:
        return  # argo: without any secret, everyone may trigger a refresh
    # Any sender can claim to be any host, so a host without a secret would bypass the secrets of the others.
    if not secret:
        message = f"no secret is set for {host.name}, but for other hosts; add {host.secret_key} to argocd-secret"
        raise SourceRefused(message, where=f"webhook of {host.name}")
    if not host.verify(body, headers, secret):
        message = f"secret or signature is missing or wrong; configure the webhook with the secret in {host.secret_key}"
        raise SourceRefused(message, where=f"webhook of {host.name}")


def _unwrap_form(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return the JSON payload. GitHub may send it as a form field."""
    if not headers.get("content-type", "").lower().startswith(_FORM_CONTENT_TYPE):
        return body
    try:
        payloads = parse_qs(body.decode(), strict_parsing=True, max_num_fields=16).get("payload", [])
    except ValueError:
        payloads = []
    if len(payloads) != 1:
        raise ManifestError("the form has no field payload; send the webhook as application/json", where="webhook")
    return payloads[0].encode()


def _is_equal(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def _has_valid_signature(
    body: bytes, signature: str, secret: str, *, algorithm: str = "sha256", prefix: str = ""
) -> bool:
    digest = hmac.new(secret.encode(), body, getattr(hashlib, algorithm)).hexdigest()
    return bool(signature) and _is_equal(signature, prefix + digest)


def _verify_github(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    if signature := headers.get("x-hub-signature-256"):
        return _has_valid_signature(body, signature, secret, prefix="sha256=")
    return _has_valid_signature(body, headers.get("x-hub-signature", ""), secret, algorithm="sha1", prefix="sha1=")


def _verify_gitea(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    names = ("x-gitea-signature", "x-forgejo-signature", "x-gogs-signature")
    return _has_valid_signature(body, next((headers[name] for name in names if headers.get(name)), ""), secret)


def _verify_gitlab(_body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    return _is_equal(headers.get("x-gitlab-token", ""), secret)


def _verify_bitbucket(_body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    return _is_equal(headers.get("x-hook-uuid", "").strip("{}").lower(), secret.strip("{}").lower())


def _verify_bitbucket_server(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    return _has_valid_signature(body, headers.get("x-hub-signature", ""), secret, prefix="sha256=")


def _verify_azure(_body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    expected = base64.b64encode(secret.encode()).decode()
    return scheme.lower() == "basic" and _is_equal(token.strip(), expected)


_AZURE_PASSWORD_KEY, _AZURE_USERNAME_KEY = "webhook.azuredevops.password", "webhook.azuredevops.username"
_GOGS_SECRET_KEY: Final = "webhook.gogs.secret"
_BITBUCKET_UUID_KEY: Final = "webhook.bitbucket.uuid"
_BITBUCKET_SERVER: Final = _GitHost(
    "Bitbucket Server",
    "webhook.bitbucketserver.secret",
    "x-event-key",
    _verify_bitbucket_server,
    read_bitbucket_server_pushes,
)
# Gitea also sends the event headers of Gogs and GitHub, so it must be checked before them.
_HOSTS: Final = (
    _GitHost("Gitea", _GOGS_SECRET_KEY, "x-gitea-event", _verify_gitea, read_gitea_pushes),
    _GitHost("Forgejo", _GOGS_SECRET_KEY, "x-forgejo-event", _verify_gitea, read_gitea_pushes),
    _GitHost("Gogs", _GOGS_SECRET_KEY, "x-gogs-event", _verify_gitea, read_gitea_pushes),
    _GitHost("GitHub", "webhook.github.secret", "x-github-event", _verify_github, read_github_pushes),
    _GitHost("GitLab", "webhook.gitlab.secret", "x-gitlab-event", _verify_gitlab, read_gitlab_pushes),
    _GitHost("Bitbucket", _BITBUCKET_UUID_KEY, "x-event-key", _verify_bitbucket, read_bitbucket_pushes),
    _BITBUCKET_SERVER,
    _GitHost("Azure DevOps", _AZURE_PASSWORD_KEY, "x-vss-activityid", _verify_azure, read_azure_pushes),
)
_SECRET_KEYS: Final = tuple(dict.fromkeys(host.secret_key for host in _HOSTS))
