"""Application service and reader that act on behalf of the caller of a request.

In: a request. Out: an ApplicationService and an ApplicationReader that record the caller's name. Never: has more
permissions than the server itself, or permissions that the middleware did not check.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from argosy.gitops.application import Application
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.reader import Reader, Unseen
from argosy.kube.objects import Manifest, key_of
from argosy.web.request import Asked

UNKNOWN: Final = "_unknown"  # audit name of an account that does not exist
SECONDS: Final = 2.0  # how long to wait until the cluster view has a write
THERE, LASTS = "reader of its cluster", 2.0  # cache key, and seconds for which a reader of another cluster is reused


def desk_of(asked: Asked) -> Desk:
    """Return a service that writes as the caller and reads the current state of the cluster."""
    desk: Desk = asked.site.desk
    return replace(desk, signer=asked.caller.shown_name)


def account_called(asked: Asked, name: str) -> str:
    """Return the account name for the audit log. Unknown names are not logged: they may be mistyped passwords."""
    return name if name in asked.site.identities.standing.accounts else UNKNOWN


def reader_of(asked: Asked) -> Reader:
    """Return a reader of the cluster view; for an Application on another cluster, a reader of that cluster."""
    reader: Reader = asked.site.lookout.reader
    app = asked.subject
    if isinstance(app, Application):
        reader = _there(asked, reader, app)
    return reader.signed(asked.caller.shown_name)


def writer_of(asked: Asked, app: Application) -> Reader:
    """Return a reader that changes objects of an Application with the permissions of its syncs."""
    return reader_of(asked).impersonating(app)


def _there(asked: Asked, reader: Reader, app: Application) -> Reader:
    """Return one reader for all parts of a response. Long-lived streams get a new one every few seconds."""
    known: tuple[float, Reader] = asked.kept.get(THERE, (0.0, reader))
    if known[0] > time.monotonic():
        return known[1]
    try:
        found = reader.at(app)
    except Unseen:  # pages still show the cached state; reads of live objects report the error themselves
        found = reader
    asked.kept[THERE] = time.monotonic() + LASTS, found
    return found


async def until_seen(asked: Asked, written: Mapping[str, Any]) -> None:
    """argo: wait briefly until the cluster view has a write, because programs read back what they wrote."""
    manifest = dict(written)
    key, lookout, seen = key_of(manifest), asked.site.lookout, asyncio.Event()

    def look(_: Manifest | None, after: Manifest | None) -> None:
        if after is not None and key_of(after) == key and _is_as_new(after, manifest):
            seen.set()

    stop = lookout.listen(look)
    try:
        look(None, lookout.cache.get(key))
        with suppress(TimeoutError):
            await asyncio.wait_for(seen.wait(), SECONDS)
    finally:
        stop()


def _is_as_new(found: Manifest, written: Manifest) -> bool:
    """k8s: numeric resource versions of one kind can be ordered; other versions can only be equal."""
    one, other = (str(each["metadata"].get("resourceVersion") or "") for each in (found, written))
    return int(one) >= int(other) if one.isdecimal() and other.isdecimal() else one == other
