"""`/api/webhook`: refresh the Applications affected by a push to a repository.

In: deliveries from any sender. Out: 200, or the reason for the refusal. Never: reads a body before its turn; parses it
before its signature is verified; answers 5xx to bad input; refreshes an Application more than once in ten seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from argosy.errors import SourceRefused, UserError
from argosy.gitops.application_client.rate_limited_refresh_queue import RefreshQueue
from argosy.gitops.source.webhook_verification import Push, affects_source, read_pushes, repository_identity
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION
from argosy.web.api import request_response_schemas as schema
from argosy.web.request import RequestContext
from argosy.web.request_limits import RequestLimitExceeded
from argosy.web.responses import JsonResponse
from argosy.web.route import Public, Route

MAX_BODY_BYTES: Final = 5 << 20
MAX_WAITING_DELIVERIES: Final = 32
RECEIVE_TIMEOUT_SECONDS: Final = 10.0
MAX_DELIVERIES_PER_SECOND: Final = 10  # from one address
MAX_BURST_DELIVERIES: Final = 20
MAX_REMEMBERED_SENDERS: Final = 10_000
MAX_REMEMBERED_DELIVERIES: Final = 10_000  # to recognize repeated deliveries
MAX_REFS_PER_REPOSITORY: Final = 100  # of one repository in one delivery; with more, all its refs count as changed
LARGE_BODY_BYTES: Final = 64 << 10  # larger bodies are read one at a time and parsed in a thread
BAD_SIGNATURE_MESSAGE: Final = (
    "webhook secret or signature is missing or wrong; configure the webhook with a secret from argocd-secret"
)


class WebhookReceiver:
    """Rate limits and recent deliveries, all of bounded size."""

    def __init__(self) -> None:
        self.refreshes = RefreshQueue()
        self._large_body_lock = asyncio.Lock()
        self._waiting = 0
        # by sender: the tokens left, and the time of the last delivery
        self._tokens_by_sender: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._seen_digests: OrderedDict[bytes, None] = OrderedDict()

    def check_rate(self, sender: str) -> None:
        """Raise TooMuch if a sender exceeds ten deliveries a second."""
        now = asyncio.get_running_loop().time()
        tokens, last_seen_at = self._tokens_by_sender.pop(sender, (float(MAX_BURST_DELIVERIES), now))
        tokens = min(float(MAX_BURST_DELIVERIES), tokens + (now - last_seen_at) * MAX_DELIVERIES_PER_SECOND)
        if tokens < 1.0:
            self._tokens_by_sender[sender] = tokens, now
            raise RequestLimitExceeded(429, "too many webhooks from this address; send fewer than ten a second")
        self._tokens_by_sender[sender] = tokens - 1.0, now
        if len(self._tokens_by_sender) > MAX_REMEMBERED_SENDERS:
            self._tokens_by_sender.popitem(last=False)

    @asynccontextmanager
    async def wait_for_turn(self, content_length: str) -> AsyncIterator[None]:
        """Receive large bodies one at a time and with a timeout, so that senders cannot fill the memory."""
        if self._waiting >= MAX_WAITING_DELIVERIES:
            raise RequestLimitExceeded(429, "too many webhooks at once; send it again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(RECEIVE_TIMEOUT_SECONDS):
                # the server reads no more than Content-Length
                if content_length.isdecimal() and int(content_length) < LARGE_BODY_BYTES:
                    yield
                else:
                    async with self._large_body_lock:
                        yield
        except TimeoutError:
            raise RequestLimitExceeded(408, "the webhook did not arrive in time; send it again") from None
        finally:
            self._waiting -= 1

    def is_new(self, body: bytes, event_headers: Iterable[str]) -> bool:
        """True if this delivery was not received before."""
        digest = hashlib.sha256("\n".join(event_headers).encode("utf-8", "surrogatepass") + b"\0")
        digest.update(body)
        key = digest.digest()
        if key in self._seen_digests:
            self._seen_digests.move_to_end(key)
            return False
        self._seen_digests[key] = None
        if len(self._seen_digests) > MAX_REMEMBERED_DELIVERIES:
            self._seen_digests.popitem(last=False)
        return True


async def receive_webhook(webhooks: WebhookReceiver, request: RequestContext) -> JsonResponse:
    webhooks.check_rate(request.peer)
    async with webhooks.wait_for_turn(request.headers.get("content-length", "")):
        body = await request.read_raw_body()
        pushes = await _read_verified_pushes(request, body)
        is_new = bool(pushes) and webhooks.is_new(body, _list_event_headers(request))
        del body
        request.memory.forget_body()
    if is_new:
        webhooks.refreshes.enqueue(request.service.cluster, list_affected_applications(request, pushes))
    return JsonResponse({})


def _list_event_headers(request: RequestContext) -> list[str]:
    return [f"{name}={text}" for name, text in sorted(request.headers.items()) if "event" in name]


async def _read_verified_pushes(request: RequestContext, body: bytes) -> tuple[Push, ...]:
    secrets = request.cluster_view.settings.load_webhook_secrets()
    try:
        if len(body) < LARGE_BODY_BYTES:
            return read_pushes(request.headers, body, secrets, max_bytes=MAX_BODY_BYTES)
        return await asyncio.to_thread(read_pushes, request.headers, body, secrets, max_bytes=MAX_BODY_BYTES)
    except SourceRefused:
        if secrets.values:  # do not reveal which hosts have a secret
            raise UserError(BAD_SIGNATURE_MESSAGE, where="webhook") from None
        raise


def list_affected_applications(request: RequestContext, pushes: Iterable[Push]) -> list[ResourceKey]:
    """List the Applications whose target revision may have changed."""
    pushes_by_repository: dict[object, dict[Push, None]] = {}
    for push in pushes:
        for url in push.urls:
            pushes_by_repository.setdefault(repository_identity(url), {})[push] = None
    pushes_by_repository.pop(None, None)
    return [
        key_of(manifest)
        for manifest in request.cluster_view.cache.list(GroupKind(*APPLICATION))
        if any(_is_affected_by_pushes(url, ref, pushes_by_repository) for url, ref in _list_sources(manifest))
    ]


def _is_affected_by_pushes(url: str, ref: str, pushes_by_repository: dict[object, dict[Push, None]]) -> bool:
    repository_pushes = pushes_by_repository.get(repository_identity(url), {})
    return len(repository_pushes) > MAX_REFS_PER_REPOSITORY or any(
        affects_source(push, url, ref) for push in repository_pushes
    )


def _list_sources(manifest: Manifest) -> Iterator[tuple[str, str]]:
    spec = as_mapping(manifest.get("spec"))
    for source in (as_mapping(spec.get("source")), *as_mappings(spec.get("sources"))):
        url, ref = source.get("repoURL"), source.get("targetRevision")
        if isinstance(url, str) and url and (ref is None or isinstance(ref, str)):
            yield url, ref or ""


def build_routes(webhooks: WebhookReceiver) -> tuple[Route, ...]:
    return (
        Route(
            "POST",
            "/api/webhook",
            Public("Git hosts send a signature instead of a session"),
            partial(receive_webhook, webhooks),
            "Receive a push event from GitHub, GitLab, Gitea, Forgejo, Gogs, Bitbucket or Bitbucket Server. If "
            "argocd-secret has a webhook secret, unsigned events are refused.",
            request_schema={},
            response_schema=schema.NOTHING,
            accepted_media_types=("*",),
            max_body_bytes=MAX_BODY_BYTES,
            tag="webhook",
            operation_id="Webhook",
        ),
    )
