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
from typing import Final

from argosy.errors import SourceRefused, UserError
from argosy.gitops.application import APPLICATION
from argosy.gitops.application_client.refresh_requests import Refreshes
from argosy.gitops.source.webhooks import Push, concerns, place_of, read_pushes
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.web.api import json_schemas as schema
from argosy.web.middleware.request_limits import TooMuch
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Public, Route

MOST_BODY: Final = 5 << 20
WAITING: Final = 32
SECONDS: Final = 10.0
A_SECOND: Final = 10  # from one address
BURST: Final = 20
MOST_SENDERS: Final = 10_000
MOST_SEEN: Final = 10_000  # to recognize repeated deliveries
MOST_REFS: Final = 100  # of one repository in one delivery; with more, all its refs count as changed
LARGE: Final = 64 << 10  # larger bodies are read one at a time and parsed in a thread
UNSIGNED: Final = (
    "webhook secret or signature is missing or wrong; configure the webhook with a secret from argocd-secret"
)


class Webhooks:
    """Rate limits and recent deliveries, all of bounded size."""

    def __init__(self) -> None:
        self.refreshes = Refreshes()
        self._gate = asyncio.Lock()
        self._waiting = 0
        self._senders: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, time of the last delivery
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def admit(self, sender: str) -> None:
        """Raise TooMuch if a sender exceeds ten deliveries a second."""
        now = asyncio.get_running_loop().time()
        left, then = self._senders.pop(sender, (float(BURST), now))
        left = min(float(BURST), left + (now - then) * A_SECOND)
        if left < 1.0:
            self._senders[sender] = left, now
            raise TooMuch(429, "too many webhooks from this address; send fewer than ten a second")
        self._senders[sender] = left - 1.0, now
        if len(self._senders) > MOST_SENDERS:
            self._senders.popitem(last=False)

    @asynccontextmanager
    async def turn(self, announced: str) -> AsyncIterator[None]:
        """Receive large bodies one at a time and with a timeout, so that senders cannot fill the memory."""
        if self._waiting >= WAITING:
            raise TooMuch(429, "too many webhooks at once; send it again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(SECONDS):
                if announced.isdecimal() and int(announced) < LARGE:  # the server reads no more than Content-Length
                    yield
                else:
                    async with self._gate:
                        yield
        except TimeoutError:
            raise TooMuch(408, "the webhook did not arrive in time; send it again") from None
        finally:
            self._waiting -= 1

    def is_new(self, body: bytes, words: Iterable[str]) -> bool:
        """True if this delivery was not received before."""
        digest = hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass") + b"\0")
        digest.update(body)
        mark = digest.digest()
        if mark in self._seen:
            self._seen.move_to_end(mark)
            return False
        self._seen[mark] = None
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        return True


async def received(asked: Asked) -> Json:
    webhooks = asked.site.part(Webhooks)
    webhooks.admit(asked.peer)
    async with webhooks.turn(asked.headers.get("content-length", "")):
        body = await asked.raw()
        pushes = await _pushes(asked, body)
        is_new = bool(pushes) and webhooks.is_new(body, _events(asked))
        del body
        asked.kept.clear()
    if is_new:
        webhooks.refreshes.ask(asked.site.desk.cluster, concerned(asked, pushes))
    return Json({})


def _events(asked: Asked) -> list[str]:
    return [f"{name}={text}" for name, text in sorted(asked.headers.items()) if "event" in name]


async def _pushes(asked: Asked, body: bytes) -> tuple[Push, ...]:
    secrets = asked.site.lookout.settings.webhook_secrets()
    try:
        if len(body) < LARGE:
            return read_pushes(asked.headers, body, secrets, largest=MOST_BODY)
        return await asyncio.to_thread(read_pushes, asked.headers, body, secrets, largest=MOST_BODY)
    except SourceRefused:
        if secrets.values:  # do not reveal which hosts have a secret
            raise UserError(UNSIGNED, where="webhook") from None
        raise


def concerned(asked: Asked, pushes: Iterable[Push]) -> list[ResourceKey]:
    """List the Applications whose target revision may have changed."""
    by_place: dict[object, dict[Push, None]] = {}
    for push in pushes:
        for url in push.urls:
            by_place.setdefault(place_of(url), {})[push] = None
    by_place.pop(None, None)
    return [
        key_of(manifest)
        for manifest in asked.site.lookout.cache.list(GroupKind(*APPLICATION))
        if any(_moves(url, ref, by_place) for url, ref in _sources(manifest))
    ]


def _moves(url: str, ref: str, by_place: dict[object, dict[Push, None]]) -> bool:
    here = by_place.get(place_of(url), {})
    return len(here) > MOST_REFS or any(concerns(push, url, ref) for push in here)


def _sources(manifest: Manifest) -> Iterator[tuple[str, str]]:
    spec = mapping(manifest.get("spec"))
    for each in (mapping(spec.get("source")), *mappings(spec.get("sources"))):
        url, ref = each.get("repoURL"), each.get("targetRevision")
        if isinstance(url, str) and url and (ref is None or isinstance(ref, str)):
            yield url, ref or ""


ROUTES = (
    Route(
        "POST", "/api/webhook", Public("Git hosts send a signature instead of a session"), received,
        "Receive a push event from GitHub, GitLab, Gitea, Forgejo, Gogs, Bitbucket or Bitbucket Server. If "
        "argocd-secret has a webhook secret, unsigned events are refused.",
        takes={}, gives=schema.NOTHING, media=("*",), most=MOST_BODY, tag="webhook", operation="Webhook",
    ),
)  # fmt: skip
