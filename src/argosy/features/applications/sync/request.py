"""Build the operation of a sync requested over the API.

In: the body of the request, an Application. Out: `operation` in Argo CD's format. Never: writes it; accepts manifests
that are not from Git.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.summary import rows
from argosy.gitops.application_client.sync_requests import SyncWish, positioned, sync_operation
from argosy.gitops.status.wire_format import given
from argosy.kube.names import ResourceKey
from argosy.web.api.body_fields import Body, as_fields

LOCAL: Final = "only manifests in Git are synced: commit and push them, then sync that revision"


def has_manifests(body: Body) -> bool:
    """argo: Syncing sent manifests needs the permission to override."""
    return bool(body.values.get("manifests"))


def refuse_manifests(where: str) -> None:
    raise UserError(f"syncing local manifests is not supported; {LOCAL}", where=where)


def sync_of(app: Application, body: Body, by: str) -> dict[str, Any]:
    if has_manifests(body):
        refuse_manifests("manifests")
    wish = SyncWish(
        revision=body.text("revision"),
        revisions=revisions_of(app, body),
        prune=body.flag("prune"),
        dry_run=body.flag("dryRun"),
        force=_is_forced(body),
        strategy=_strategy(body),
    )
    made = sync_operation(app, wish, by, chosen(app, body))
    if (options := body.body("syncOptions")) is not None:
        made["sync"]["syncOptions"] = options.texts("items")  # argo: replace those of the Application
    infos = [{"name": each.text("name"), "value": each.text("value")} for each in body.bodies("infos")]
    if infos:
        made["info"] = infos
    if (retry := body.body("retryStrategy")) is not None:
        made["retry"] = _retry(retry)
    return made


def revisions_of(app: Application, body: Body) -> tuple[str, ...]:
    refs, positions = body.texts("revisions"), body.numbers("sourcePositions")
    if not refs:
        return ()
    if not positions and len(refs) == len(app.sources):
        return tuple(refs)
    with as_fields():
        return positioned(app, refs, positions)


def chosen(app: Application, body: Body) -> Sequence[ResourceKey]:
    """List the objects to sync by name; with `exclude`, all others."""
    named = body.bodies("resources")
    keys = [(ResourceKey(*(each.text(part) for part in ResourceKey._fields)), each.flag("exclude")) for each in named]
    for key, _ in keys:
        if not key.kind or not key.name:
            raise UserError("a resource needs kind and name; send both", where="resources")
    left_out = [key for key, is_out in keys if is_out]
    if not left_out:
        return [key for key, _ in keys]
    kept = [row.key for row in rows(app) if not any(_fits(each, row.key) for each in left_out)]
    wanted = [key for key, is_out in keys if not is_out]
    return [key for key in kept if not wanted or any(_fits(each, key) for each in wanted)]


def _fits(wanted: ResourceKey, key: ResourceKey) -> bool:
    return wanted.namespace in ("", key.namespace) and wanted[:2] == key[:2] and wanted.name == key.name


def _strategy(body: Body) -> str:
    strategy = body.body("strategy")
    return "apply" if strategy is not None and strategy.body("apply") is not None else ""


def _is_forced(body: Body) -> bool:
    strategy = body.body("strategy")
    if strategy is None:
        return False
    apply, hook = strategy.body("apply"), strategy.body("hook")
    if hook is not None:
        # argo: nested in the Go type, inlined in JSON
        nested = hook.body("syncStrategyApply")
        return hook.flag("force") or (nested is not None and nested.flag("force"))
    return apply is not None and apply.flag("force")


def _retry(body: Body) -> dict[str, Any]:
    backoff = body.body("backoff")
    pauses = {}
    if backoff is not None:
        pauses = given(
            duration=backoff.text("duration"), maxDuration=backoff.text("maxDuration"), factor=backoff.number("factor")
        )
    return given(limit=body.number("limit"), refresh=body.flag("refresh"), backoff=pauses)
