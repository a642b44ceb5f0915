"""Builds the operation request of a rollback. Pure.

In: a history entry. Out: a request. Never: checks whether the rollback is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.errors import ManifestError
from argosy.gitops.application import OperationRequest, SyncRequest
from argosy.gitops.application.sources import source_of
from argosy.kube.objects.field_reader import Fields


def rollback_request(
    entry: Mapping[str, Any], *, by: str = "", prune: bool = False, dry_run: bool = False, options: tuple[str, ...] = ()
) -> OperationRequest:
    """argo: a sync of the entry's sources at its revisions, without hooks."""
    given = Fields(entry, f"history entry {entry.get('id', 0)}")
    single, many = given.optional("source"), given.all_fields("sources")
    sources = many or ([single] if single else [])
    if not sources:
        raise ManifestError("it has no source; choose another entry", where=given.where)
    sync: dict[str, Any] = {"syncStrategy": {"apply": {}}, "prune": prune, "dryRun": dry_run}
    # argo: next to `sources` an entry has an empty `source`
    parts = ("revisions", "sources") if many else ("revision", "source")
    sync |= {name: entry[name] for name in parts if entry.get(name)}
    if options:
        sync["syncOptions"] = list(options)
    return OperationRequest(
        sync=SyncRequest(
            revision=given.text("revision"),
            revisions=given.all_texts("revisions"),
            prune=prune,
            dry_run=dry_run,
            runs_hooks=False,
            options=options,
            sources=tuple(map(source_of, sources)),
        ),
        by=by,
        wire={"sync": sync, **({"initiatedBy": {"username": by}} if by else {})},
    )
