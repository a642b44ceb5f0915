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
from argosy.gitops.application_client.app_state_reader import ApplicationReader, DestinationUnreadable
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.objects import Manifest, key_of
from argosy.web.request import RequestContext

UNKNOWN_ACCOUNT: Final = "_unknown"  # audit name of an account that does not exist
VISIBILITY_TIMEOUT_SECONDS: Final = 2.0  # how long to wait until the cluster view has a write
REMOTE_READER_SECONDS: Final = 2.0  # for which a reader of another cluster is reused


def build_service(request: RequestContext) -> ApplicationService:
    """Return a service that writes as the caller and reads the current state of the cluster."""
    return replace(request.service, acting_user=request.caller.display_name)


def get_audit_account_name(request: RequestContext, name: str) -> str:
    """Return the account name for the audit log. Unknown names are not logged: they may be mistyped passwords."""
    return name if name in request.authenticator.state.accounts else UNKNOWN_ACCOUNT


def build_reader(request: RequestContext) -> ApplicationReader:
    """Return a reader of the cluster view; for an Application on another cluster, a reader of that cluster."""
    reader: ApplicationReader = request.cluster_view.reader
    app = request.subject
    if isinstance(app, Application):
        reader = _build_remote_reader(request, reader, app)
    return reader.recording_events_as(request.caller.display_name)


def build_impersonating_reader(request: RequestContext, app: Application) -> ApplicationReader:
    """Return a reader that changes objects of an Application with the permissions of its syncs."""
    return build_reader(request).impersonating(app)


def _build_remote_reader(request: RequestContext, reader: ApplicationReader, app: Application) -> ApplicationReader:
    """Return one reader for all parts of a response. Long-lived streams get a new one every few seconds."""
    cached = request.memory.remote_reader
    if cached is not None and cached[0] > time.monotonic():
        return cached[1]
    try:
        remote_reader = reader.for_destination(app)
    except DestinationUnreadable:
        remote_reader = reader  # pages show the cached state; reads of live objects report the error themselves
    request.memory.remote_reader = time.monotonic() + REMOTE_READER_SECONDS, remote_reader
    return remote_reader


async def wait_until_visible(request: RequestContext, written_object: Mapping[str, Any]) -> None:
    """argo: wait briefly until the cluster view has a write, because programs read back what they wrote."""
    manifest = dict(written_object)
    key, cluster_view, is_visible = key_of(manifest), request.cluster_view, asyncio.Event()

    def check_change(_: Manifest | None, after: Manifest | None) -> None:
        if after is not None and key_of(after) == key and _is_at_least_as_new(after, manifest):
            is_visible.set()

    stop = cluster_view.add_listener(check_change)
    try:
        check_change(None, cluster_view.cache.get(key))
        with suppress(TimeoutError):
            await asyncio.wait_for(is_visible.wait(), VISIBILITY_TIMEOUT_SECONDS)
    finally:
        stop()


def _is_at_least_as_new(cached: Manifest, written: Manifest) -> bool:
    """k8s: numeric resource versions of one kind can be ordered; other versions can only be equal."""
    cached_version, written_version = (
        str(manifest["metadata"].get("resourceVersion") or "") for manifest in (cached, written)
    )
    return (
        int(cached_version) >= int(written_version)
        if cached_version.isdecimal() and written_version.isdecimal()
        else cached_version == written_version
    )
