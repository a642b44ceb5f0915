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
from argosy.gitops.application.repository_url import parse_url
from argosy.gitops.source.version_ranges import newest_tag
from argosy.gitops.source.webhook_payloads import (
    Push,
    azure_pushes,
    bitbucket_pushes,
    bitbucket_server_pushes,
    gitea_pushes,
    github_pushes,
    gitlab_pushes,
)
from argosy.kube.objects import load_json
from argosy.kube.objects.field_reader import Fields

__all__ = ["LARGEST", "Push", "WebhookSecrets", "concerns", "place_of", "read_pushes", "read_webhook_secrets"]

LARGEST: Final = 50 << 20  # argo: webhook.maxPayloadSizeMB
_FORM: Final = "application/x-www-form-urlencoded"
_SSH_HOSTS: Final = ("altssh.", "ssh.")  # argo: alternative host names for ssh over port 443


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """Webhook secrets by their key in argocd-secret."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)


class _Host(NamedTuple):
    name: str
    key: str  # of its secret in argocd-secret
    event: str  # the header that names the event
    is_verified: Callable[[bytes, Mapping[str, str], str], bool]
    pushes: Callable[[str, Fields], Iterator[Push]]


def read_webhook_secrets(secret: Mapping[str, str]) -> WebhookSecrets:
    """Read the webhook secrets from the decoded data of argocd-secret."""
    found = {key: text for key in _KEYS if (text := secret.get(key, "").strip())}
    if _AZURE in found:  # it sends user and password in one header
        found[_AZURE] = f"{secret.get(_AZURE_USER, '').strip()}:{found[_AZURE]}"
    return WebhookSecrets(found)


def read_pushes(
    headers: Mapping[str, str], body: bytes, secrets: WebhookSecrets, *, largest: int = LARGEST
) -> tuple[Push, ...]:
    """Return the pushes; empty for other events, such as the ping that tests a new hook."""
    if len(body) > largest:
        message = f"payload of {len(body)} bytes exceeds the limit of {largest}; push fewer changes at once"
        raise LimitError(message, where="webhook")
    named = {name.lower(): text for name, text in headers.items()}
    host = _host(named)
    _verify(host, body, named, secrets)
    value = load_json(_unwrapped(body, named), where=f"webhook of {host.name}").value
    payload = Fields(value, f"webhook of {host.name}")
    return tuple(push for push in host.pushes(named[host.event], payload) if push.ref and push.urls)


def concerns(push: Push, url: str, ref: str, *, tag_prefix: str = "") -> bool:
    """True if the push may change the revision of a source. A source pinned to a commit id never changes."""
    if (place := place_of(url)) is None or place not in map(place_of, push.urls):
        return False
    if ref in ("", "HEAD"):
        return bool(push.branch) and push.default_branch in ("", push.branch)
    if ref in (push.ref, push.branch, push.tag) or f"refs/{ref}" == push.ref:
        return True
    return bool(push.tag) and newest_tag(ref, [push.tag], tag_prefix) == push.tag


@lru_cache(4096)
def place_of(url: str) -> tuple[str, tuple[str, ...]] | None:
    """Return host and path of a repository, without protocol, port and user; None if the URL is invalid."""
    try:
        parsed = parse_url(url)
    except SourceRefused:
        return None
    host = parsed.host
    if parsed.scheme == "ssh":
        host = next((host.removeprefix(each) for each in _SSH_HOSTS if host.startswith(each)), host)
    return host, parsed.segments


def _host(headers: Mapping[str, str]) -> _Host:
    found = next((host for host in _HOSTS if host.event in headers), None)
    if found is None:
        hosts = ", ".join(dict.fromkeys(host.name for host in _HOSTS))
        raise SourceRefused(f"unknown sender; supported are webhooks of {hosts}", where="webhook")
    if found.key == _CLOUD and "x-hook-uuid" not in headers:
        return _BITBUCKET_SERVER
    return found


def _verify(host: _Host, body: bytes, headers: Mapping[str, str], secrets: WebhookSecrets) -> None:
    secret = secrets.values.get(host.key)
    if not secrets.values:
        return  # argo: without any secret, everyone may trigger a refresh
    # Any sender can claim to be any host, so a host without a secret would bypass the secrets of the others.
    if not secret:
        message = f"no secret is set for {host.name}, but for other hosts; add {host.key} to argocd-secret"
        raise SourceRefused(message, where=f"webhook of {host.name}")
    if not host.is_verified(body, headers, secret):
        message = f"secret or signature is missing or wrong; configure the webhook with the secret in {host.key}"
        raise SourceRefused(message, where=f"webhook of {host.name}")


def _unwrapped(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return the JSON payload. GitHub may send it as a form field."""
    if not headers.get("content-type", "").lower().startswith(_FORM):
        return body
    try:
        found = parse_qs(body.decode(), strict_parsing=True, max_num_fields=16).get("payload", [])
    except ValueError:
        found = []
    if len(found) != 1:
        raise ManifestError("the form has no field payload; send the webhook as application/json", where="webhook")
    return found[0].encode()


def _is_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _is_signed(body: bytes, given: str, secret: str, *, algorithm: str = "sha256", prefix: str = "") -> bool:
    digest = hmac.new(secret.encode(), body, getattr(hashlib, algorithm)).hexdigest()
    return bool(given) and _is_equal(given, prefix + digest)


def _by_github(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    if strong := headers.get("x-hub-signature-256"):
        return _is_signed(body, strong, secret, prefix="sha256=")
    return _is_signed(body, headers.get("x-hub-signature", ""), secret, algorithm="sha1", prefix="sha1=")


def _by_gitea(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    names = ("x-gitea-signature", "x-forgejo-signature", "x-gogs-signature")
    return _is_signed(body, next((headers[name] for name in names if headers.get(name)), ""), secret)


def _by_gitlab(_body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    return _is_equal(headers.get("x-gitlab-token", ""), secret)


def _by_bitbucket(_body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    return _is_equal(headers.get("x-hook-uuid", "").strip("{}").lower(), secret.strip("{}").lower())


def _by_bitbucket_server(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    return _is_signed(body, headers.get("x-hub-signature", ""), secret, prefix="sha256=")


def _by_azure(_body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    expected = base64.b64encode(secret.encode()).decode()
    return scheme.lower() == "basic" and _is_equal(given.strip(), expected)


_AZURE, _AZURE_USER = "webhook.azuredevops.password", "webhook.azuredevops.username"
_GOGS: Final = "webhook.gogs.secret"
_CLOUD: Final = "webhook.bitbucket.uuid"
_BITBUCKET_SERVER: Final = _Host(
    "Bitbucket Server", "webhook.bitbucketserver.secret", "x-event-key", _by_bitbucket_server, bitbucket_server_pushes
)
# Gitea also sends the event headers of Gogs and GitHub, so it must be checked before them.
_HOSTS: Final = (
    _Host("Gitea", _GOGS, "x-gitea-event", _by_gitea, gitea_pushes),
    _Host("Forgejo", _GOGS, "x-forgejo-event", _by_gitea, gitea_pushes),
    _Host("Gogs", _GOGS, "x-gogs-event", _by_gitea, gitea_pushes),
    _Host("GitHub", "webhook.github.secret", "x-github-event", _by_github, github_pushes),
    _Host("GitLab", "webhook.gitlab.secret", "x-gitlab-event", _by_gitlab, gitlab_pushes),
    _Host("Bitbucket", _CLOUD, "x-event-key", _by_bitbucket, bitbucket_pushes),
    _BITBUCKET_SERVER,
    _Host("Azure DevOps", _AZURE, "x-vss-activityid", _by_azure, azure_pushes),
)
_KEYS: Final = tuple(dict.fromkeys(host.key for host in _HOSTS))
