"""Creates and updates Applications.

In: an ApplicationService, a manifest. Out: `created`, `updated` or `unchanged`. Never: overwrites an Application unless
requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from argosy.errors import UserError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.client import Desk, now
from argosy.gitops.application_client.spec_flags import checked
from argosy.gitops.status.events import NOBODY, Reason, event
from argosy.kube.objects import Manifest, load_all
from argosy.kube.patch import merge_patch


def read_file(path: str, content: bytes) -> dict[str, Any]:
    found = [each for each in load_all(content, where=path) if isinstance(each, dict)]
    apps = [each for each in found if each.get("kind") == "Application"]
    if len(apps) != 1:
        told = f"contains {len(apps)} Applications; expected exactly one"
        raise UserError(told, where=path)
    return dict(apps[0])


def content_of(path: str, stdin: Callable[[], bytes]) -> bytes:
    return stdin() if path == "-" else Path(path).read_bytes()


async def create(desk: Desk, manifest: Manifest, *, replaces: bool) -> str:
    """Return `created`, `updated` or `unchanged`."""
    checked(manifest)
    made = read_application(manifest, f"Application {manifest['metadata'].get('name')}")
    before = await desk.get(made.key)
    if before is None:
        after = read_application(await desk.cluster.create(manifest))
        await _told(desk, after, Reason.RESOURCE_CREATED, "created application")
        return "created"
    existing = read_application(before)
    if before.get("spec") == manifest.get("spec") and _carries(before, manifest):
        return "unchanged"
    if not replaces:
        raise UserError(
            f"existing application spec is different: {made.name} in {made.namespace}; "
            f"overwrite it with --upsert, or see how: argosy app get {made.name} -o yaml"
        )
    await change(desk, existing, lambda current: _overwritten(current, manifest))
    return "updated"


def _overwritten(current: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    asked = manifest["metadata"]
    marks = {name: asked[name] for name in ("labels", "annotations", "finalizers") if name in asked}
    return {**current, "spec": manifest["spec"], "metadata": {**current["metadata"], **marks}}


def _carries(before: Manifest, manifest: Manifest) -> bool:
    """True if the live object has the labels, annotations and finalizers of the manifest."""
    have, want = before["metadata"], manifest["metadata"]
    return all(
        (want.get(name) or {}).items() <= (have.get(name) or {}).items() for name in ("labels", "annotations")
    ) and set(want.get("finalizers") or ()) <= set(have.get("finalizers") or ())


async def change(desk: Desk, app: Application, make: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> bool:
    """Change an Application; return True if anything changed."""
    return (await rewritten(desk, app, make))[1]


async def rewritten(
    desk: Desk, app: Application, make: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> tuple[Application, bool]:
    """Change an Application; return it and whether anything changed."""
    changed = [False]

    def patch(current: Application) -> dict[str, Any] | None:
        after = make(current.wire)
        checked(after)
        read_application(after, f"Application {current.name}")  # refuse an invalid manifest
        found: dict[str, Any] = merge_patch.diff(dict(current.wire), dict(after))
        changed[0] = bool(found)
        return found or None

    after = await desk.revise(app, patch)
    if changed[0]:
        await _told(desk, after, Reason.RESOURCE_UPDATED, "updated application")
    return after, changed[0]


async def _told(desk: Desk, app: Application, reason: Reason, what: str) -> None:
    by = await desk.who()
    await desk.record(event(app, reason, f"{by or NOBODY} {what}", at=now(), by=by))
