"""Builds the `operation` of a sync from flags.

In: flags, an Application. Out: `operation` in Argo CD's wire format. Never: writes it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from argosy.errors import PolicyError, UserError
from argosy.gitops.application import Application
from argosy.gitops.application.sources import remove_empty_options
from argosy.gitops.application_client.status_summary import describe_retry, is_busy, list_rows
from argosy.gitops.status.status_json_conversions import as_mapping, omit_empty, sources_to_wire
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


@dataclass(frozen=True)
class SyncFlags:
    revision: str = ""
    revisions: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()  # JSON texts, which replace the manifests of Git
    prune: bool = False
    dry_run: bool = False
    force: bool = False
    replace: bool = False
    server_side: bool = False
    only_out_of_sync: bool = False
    strategy: str = ""  # hook or apply
    resources: tuple[str, ...] = ()
    info: tuple[str, ...] = ()
    retry_limit: int | None = None
    retry_duration: str = ""
    retry_max_duration: str = ""
    retry_factor: int | None = None
    retry_refresh: bool = False
    options: tuple[str, ...] = ()  # further sync options; the last value of a name wins


class ObjectPattern(NamedTuple):
    """argo: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; `*` matches any text, a leading `!` excludes."""

    group: str
    kind: str
    namespace: str
    name: str
    is_excluding: bool = False

    def matches(self, key: ResourceKey) -> bool:
        wanted_parts = (self.group, self.kind, self.namespace or "*", self.name)
        return all(fnmatch.fnmatchcase(actual, requested) for actual, requested in zip(key, wanted_parts, strict=True))


def read_object_pattern(text: str) -> ObjectPattern:
    parts = text.removeprefix("!").split(":")
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise UserError(f"invalid resource {text!r}; expected GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME")
    namespace, _, name = parts[2].rpartition("/")
    return ObjectPattern(parts[0], parts[1], namespace, name, text.startswith("!"))


def select_keys(app: Application, texts: Sequence[str]) -> list[ResourceKey]:
    """List managed objects that the patterns select."""
    patterns = [read_object_pattern(item) for item in texts]
    including = [item for item in patterns if not item.is_excluding]
    excluding = [item for item in patterns if item.is_excluding]
    keys = [
        row.key
        for row in list_rows(app)
        if (not including or any(item.matches(row.key) for item in including))
        and not any(item.matches(row.key) for item in excluding)
    ]
    if not keys:
        patterns_text = ", ".join(texts)
        raise UserError(
            f"{app.name} manages no object like {patterns_text}; list its objects: argosy app resources {app.name}"
        )
    return keys


def build_operation_from_flags(
    app: Application, flags: SyncFlags, user: str, additional_keys: Sequence[ResourceKey] = ()
) -> dict[str, Any]:
    check_no_operation(app)
    _check_revision_allowed(app, flags)
    keys = [*(select_keys(app, flags.resources) if flags.resources else ()), *additional_keys]
    if flags.strategy == "apply":
        strategy: dict[str, Any] = {"apply": omit_empty(force=flags.force)}
    else:
        strategy = {"hook": omit_empty(force=flags.force)}
    options = [
        f"{name}=true"
        for name, is_on in (
            ("ServerSideApply", flags.server_side),
            ("Replace", flags.replace),
            ("ApplyOutOfSyncOnly", flags.only_out_of_sync),
        )
        if is_on
    ]
    sync = omit_empty(
        revision=flags.revision,
        revisions=list(flags.revisions),
        manifests=list(flags.manifests),
        prune=flags.prune,
        dryRun=flags.dry_run,
        resources=[_key_to_wire(key) for key in dict.fromkeys(keys)],
        syncOptions=[
            *app.policy.options,
            *options,
            *flags.options,
        ],  # argo: a sync uses only the options of its request
    )
    sync["syncStrategy"] = strategy
    # argo: the operation and its retries keep these sources if the Application gets others meanwhile
    sources = [remove_empty_options(source.wire) for source in app.sources]
    sync |= sources_to_wire(sources, are_many=app.has_many_sources)
    return {
        "sync": sync,
        "initiatedBy": {"username": user},
        **omit_empty(retry=_build_retry(app, flags), info=[_read_info(text) for text in flags.info]),
    }


def check_no_operation(app: Application) -> None:
    if app.deletion_timestamp:
        raise PolicyError(f"{app.name} is being deleted; wait until it is gone: argosy app wait {app.name} --delete")
    if is_busy(app):
        advice = f"argosy app wait {app.name} --operation, or end it: argosy app terminate-op {app.name}"
        detail = f" ({retry_text.partition(';')[0]})" if (retry_text := describe_retry(app)) else ""
        raise PolicyError(f"{app.name}: another operation is already in progress{detail}; wait for it: {advice}")


def check_no_automated_sync(app: Application, *, is_dry_run: bool) -> None:
    """argo: an automated sync would undo a sync of local manifests."""
    automated = app.policy.automated
    if automated is None or not automated.is_on or is_dry_run:
        return
    raise PolicyError(
        "cannot use local sync when Automatic Sync Policy is enabled unless for dry run; "
        f"turn it off first: argosy app set {app.name} --sync-policy none"
    )


def _check_revision_allowed(app: Application, flags: SyncFlags) -> None:
    automated = app.policy.automated
    if not flags.revision or flags.dry_run or automated is None or not automated.is_on or len(app.sources) != 1:
        return
    if flags.revision != app.sources[0].ref:  # argo: automated sync would undo it immediately
        advice = f"hold it first: argosy app hold {app.name}, or change it with: argosy app set {app.name} --revision"
        raise PolicyError(
            f"{app.name}: cannot sync to {flags.revision}: auto-sync is set to {app.sources[0].ref or 'HEAD'}; {advice}"
        )


def _key_to_wire(key: ResourceKey) -> dict[str, str]:
    return {**omit_empty(group=key.group, namespace=key.namespace), "kind": key.kind, "name": key.name}


def _read_info(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"{text!r} is not NAME=VALUE", where="--info")
    return {"name": name, "value": value}


def _build_retry(app: Application, flags: SyncFlags) -> dict[str, Any]:
    """argo: defaults to the Application's own retry policy."""
    backoff = omit_empty(duration=flags.retry_duration, maxDuration=flags.retry_max_duration, factor=flags.retry_factor)
    if flags.retry_limit is None and not backoff and not flags.retry_refresh:
        spec = as_mapping(as_mapping(app.wire.get("spec")).get("syncPolicy"))
        return dict(as_mapping(spec.get("retry")))
    return omit_empty(limit=flags.retry_limit, refresh=flags.retry_refresh, backoff=backoff)


def assign_refs(
    app: Application, given_refs: Sequence[str], positions: Sequence[int], names: Sequence[str] = ()
) -> tuple[str, ...]:
    """argo: return a ref per source; sources that are not listed keep their own."""
    if names and positions:
        raise UserError("only one of --source-positions and --source-names can be specified; omit one")
    positions = [_find_source_position(app, name) for name in names] or positions
    if len(given_refs) != len(positions):
        raise UserError("--source-positions and --revisions must have the same number of values, in the same order")
    refs = [source.ref for source in app.sources]
    for ref, position in zip(given_refs, positions, strict=True):
        if not 1 <= position <= len(refs):
            message = f"{app.name} has {len(refs)} sources, none at position {position}; positions start at 1"
            raise UserError(message, where="--source-positions")
        refs[position - 1] = ref
    return tuple(refs)


def _find_source_position(app: Application, name: str) -> int:
    for position, source in enumerate(app.sources, start=1):
        if source.wire.get("name") == name:
            return position
    raise UserError(f"unknown source name {name!r}; give it a name, or use --source-positions", where="--source-names")


def select_keys_by_labels(app: Application, desired: Sequence[Manifest], labels: Sequence[str]) -> list[ResourceKey]:
    """argo: list objects that have any of the labels in Git."""
    label_pairs = [text.partition("=")[::2] for text in labels]
    keys = [
        key_of(manifest)
        for manifest in desired
        if manifest["metadata"].get("name")
        and any((manifest["metadata"].get("labels") or {}).get(name) == value for name, value in label_pairs)
    ]
    if not keys:
        advice = f"list its manifests: argosy app manifests {app.name}"
        raise UserError(f"{app.name} has no manifest with label {', '.join(labels)}; {advice}")
    return keys
