"""Builds the operation request of a rollback. Pure.

In: a history entry. Out: a request. Never: checks whether the rollback is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.errors import ManifestError
from argosy.gitops.application import OperationRequest, SyncRequest
from argosy.gitops.application.sources import read_source_fields
from argosy.kube.objects.strict_typed_field_reader import FieldReader


def build_rollback_request(
    entry: Mapping[str, Any],
    *,
    username: str = "",
    prune: bool = False,
    dry_run: bool = False,
    options: tuple[str, ...] = (),
) -> OperationRequest:
    """argo: a sync of the entry's sources at its revisions, without hooks."""
    fields = FieldReader(entry, f"history entry {entry.get('id', 0)}")
    single, many = fields.find_map("source"), fields.read_map_list("sources")
    sources = many or ([single] if single else [])
    if not sources:
        raise ManifestError("it has no source; choose another entry", where=fields.where)
    sync: dict[str, Any] = {"syncStrategy": {"apply": {}}}
    sync |= {name: True for name, is_set in (("prune", prune), ("dryRun", dry_run)) if is_set}  # argo: omits false
    # argo: next to `sources` an entry has an empty `source`
    parts = ("revisions", "sources") if many else ("revision", "source")
    sync |= {name: entry[name] for name in parts if entry.get(name)}
    if options:
        sync["syncOptions"] = list(options)
    return OperationRequest(
        sync=SyncRequest(
            revision=fields.read_text("revision"),
            revisions=fields.read_text_list("revisions"),
            prune=prune,
            dry_run=dry_run,
            runs_hooks=False,
            options=options,
            sources=tuple(map(read_source_fields, sources)),
        ),
        username=username,
        wire={"sync": sync, **({"initiatedBy": {"username": username}} if username else {})},
    )
