"""Build the operation of a sync requested over the API.

In: the body of the request, an Application. Out: `operation` in Argo CD's format. Never: writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.application_client.sync_operation_builder import (
    SyncFlags,
    assign_refs,
    build_operation_from_flags,
    check_no_automated_sync,
)
from argosy.gitops.status.status_json_conversions import omit_empty
from argosy.kube.resource_key import ResourceKey
from argosy.web.api.body_fields import BodyReader, rename_flags_to_body_fields


def has_manifests(body: BodyReader) -> bool:
    """argo: Syncing sent manifests needs the permission to override."""
    return bool(body.values.get("manifests"))


def build_sync_operation(app: Application, body: BodyReader, user: str, commits: Sequence[str] = ()) -> dict[str, Any]:
    """argo: The operation names the commits, if they are known, so that it syncs what the caller could see."""
    manifests = tuple(body.get_texts("manifests"))
    if manifests:
        check_no_automated_sync(app, is_dry_run=body.get_bool("dryRun"))
    wish = SyncFlags(
        # argo: local manifests have no revision
        revision="" if manifests else body.get_text("revision"),
        revisions=() if manifests else read_revisions(app, body),
        manifests=manifests,
        prune=body.get_bool("prune"),
        dry_run=body.get_bool("dryRun"),
        force=_is_forced(body),
        strategy=_read_strategy(body),
    )
    operation = build_operation_from_flags(app, wish, user, list_selected_keys(app, body))
    if commits:
        operation["sync"] |= {"revisions": list(commits)} if app.has_many_sources else {"revision": commits[0]}
    if (options := body.get_body("syncOptions")) is not None:
        operation["sync"]["syncOptions"] = options.get_texts("items")  # argo: replace those of the Application
    infos = [{"name": info.get_text("name"), "value": info.get_text("value")} for info in body.get_bodies("infos")]
    if infos:
        operation["info"] = infos
    if (retry := body.get_body("retryStrategy")) is not None:
        operation["retry"] = _read_retry(retry)
    return operation


def read_revisions(app: Application, body: BodyReader) -> tuple[str, ...]:
    refs, positions = body.get_texts("revisions"), body.get_ints("sourcePositions")
    if not refs:
        return ()
    if not positions and len(refs) == len(app.sources):
        return tuple(refs)
    with rename_flags_to_body_fields():
        return assign_refs(app, refs, positions)


def list_selected_keys(app: Application, body: BodyReader) -> Sequence[ResourceKey]:
    """List the objects to sync by name; with `exclude`, all others."""
    resources = body.get_bodies("resources")
    keys = [
        (ResourceKey(*(selected.get_text(part) for part in ResourceKey._fields)), selected.get_bool("exclude"))
        for selected in resources
    ]
    for key, _ in keys:
        if not key.kind or not key.name:
            raise UserError("a resource needs kind and name; send both", where="resources")
    excluded = [key for key, is_excluded in keys if is_excluded]
    if not excluded:
        return [key for key, _ in keys]
    kept = [row.key for row in list_rows(app) if not any(_matches(selected, row.key) for selected in excluded)]
    included = [key for key, is_excluded in keys if not is_excluded]
    return [key for key in kept if not included or any(_matches(selected, key) for selected in included)]


def _matches(selected: ResourceKey, key: ResourceKey) -> bool:
    return selected.namespace in ("", key.namespace) and selected[:2] == key[:2] and selected.name == key.name


def _read_strategy(body: BodyReader) -> str:
    strategy = body.get_body("strategy")
    return "apply" if strategy is not None and strategy.get_body("apply") is not None else ""


def _is_forced(body: BodyReader) -> bool:
    strategy = body.get_body("strategy")
    if strategy is None:
        return False
    apply_strategy, hook = strategy.get_body("apply"), strategy.get_body("hook")
    if hook is not None:
        # argo: nested in the Go type, inlined in JSON
        nested = hook.get_body("syncStrategyApply")
        return hook.get_bool("force") or (nested is not None and nested.get_bool("force"))
    return apply_strategy is not None and apply_strategy.get_bool("force")


def _read_retry(body: BodyReader) -> dict[str, Any]:
    backoff = body.get_body("backoff")
    backoff_wire = {}
    if backoff is not None:
        backoff_wire = omit_empty(
            duration=backoff.get_text("duration"),
            maxDuration=backoff.get_text("maxDuration"),
            factor=backoff.get_int("factor"),
        )
    return omit_empty(limit=body.get_int("limit"), refresh=body.get_bool("refresh"), backoff=backoff_wire)
