"""Desks and readers that work on behalf of whoever asked.

In: a request. Out: a Desk and a Reader that sign with the caller's name. Never: more rights than the server's own, nor
any that the doors did not ask for.
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

UNKNOWN: Final = "_unknown"  # whom nobody is called
SECONDS: Final = 2.0  # that the lookout is waited for
THERE, LASTS = "reader of its cluster", 2.0  # what was read of another cluster, and for how many seconds that counts


def desk_of(asked: Asked) -> Desk:
    """Writes, and reads what the cluster has this very moment."""
    desk: Desk = asked.site.desk
    return replace(desk, signer=asked.caller.shown_name)


def account_called(asked: Asked, name: str) -> str:
    """As the audit names whose password was tried: what nobody is called may be a password in the wrong field."""
    return name if name in asked.site.identities.standing.accounts else UNKNOWN


def reader_of(asked: Asked) -> Reader:
    """Reads what the lookout has seen; of an Application that goes to another cluster, what that one has now."""
    reader: Reader = asked.site.lookout.reader
    app = asked.subject
    if isinstance(app, Application):
        reader = _there(asked, reader, app)
    return reader.signed(asked.caller.shown_name)


def writer_of(asked: Asked, app: Application) -> Reader:
    """A reader that changes objects of an Application with the rights that its syncs have."""
    return reader_of(asked).impersonating(app)


def _there(asked: Asked, reader: Reader, app: Application) -> Reader:
    """The same for all parts of an answer; a stream that lasts reads anew."""
    known: tuple[float, Reader] = asked.kept.get(THERE, (0.0, reader))
    if known[0] > time.monotonic():
        return known[1]
    try:
        found = reader.at(app)
    except Unseen:  # whoever reads what lives says so; what is known here can be told all the same
        found = reader
    asked.kept[THERE] = time.monotonic() + LASTS, found
    return found


async def until_seen(asked: Asked, written: Mapping[str, Any]) -> None:
    """argo: until what was written is what is read here, for a moment at most: programs read what they wrote."""
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
    """k8s: versions of one kind can be compared where they are numbers, and else only be the same."""
    one, other = (str(each["metadata"].get("resourceVersion") or "") for each in (found, written))
    return int(one) >= int(other) if one.isdecimal() and other.isdecimal() else one == other
