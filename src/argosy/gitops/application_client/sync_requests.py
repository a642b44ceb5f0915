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
from argosy.gitops.application_client.summary import is_busy, retrying, rows
from argosy.gitops.status.wire_format import given, mapping
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of


@dataclass(frozen=True)
class SyncWish:
    revision: str = ""
    revisions: tuple[str, ...] = ()
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
    retry_longest: str = ""
    retry_factor: int | None = None
    retry_refresh: bool = False
    options: tuple[str, ...] = ()  # further sync options; the last value of a name wins


class Pattern(NamedTuple):
    """argo: GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME; `*` matches any text, a leading `!` excludes."""

    group: str
    kind: str
    namespace: str
    name: str
    is_excluding: bool = False

    def fits(self, key: ResourceKey) -> bool:
        wanted = (self.group, self.kind, self.namespace or "*", self.name)
        return all(fnmatch.fnmatchcase(have, want) for have, want in zip(key, wanted, strict=True))


def read_pattern(text: str) -> Pattern:
    parts = text.removeprefix("!").split(":")
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise UserError(f"invalid resource {text!r}; expected GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME")
    namespace, _, name = parts[2].rpartition("/")
    return Pattern(parts[0], parts[1], namespace, name, text.startswith("!"))


def chosen_keys(app: Application, texts: Sequence[str]) -> list[ResourceKey]:
    """List managed objects that the patterns select."""
    patterns = [read_pattern(each) for each in texts]
    including = [each for each in patterns if not each.is_excluding]
    excluding = [each for each in patterns if each.is_excluding]
    found = [
        row.key
        for row in rows(app)
        if (not including or any(each.fits(row.key) for each in including))
        and not any(each.fits(row.key) for each in excluding)
    ]
    if not found:
        told = ", ".join(texts)
        raise UserError(f"{app.name} manages no object like {told}; list its objects: argosy app resources {app.name}")
    return found


def sync_operation(app: Application, wish: SyncWish, by: str, also: Sequence[ResourceKey] = ()) -> dict[str, Any]:
    check_free(app)
    _check_revision(app, wish)
    keys = [*(chosen_keys(app, wish.resources) if wish.resources else ()), *also]
    if wish.strategy == "apply":
        strategy: dict[str, Any] = {"apply": given(force=wish.force)}
    else:
        strategy = {"hook": given(force=wish.force)}
    options = [
        f"{name}=true"
        for name, is_on in (
            ("ServerSideApply", wish.server_side),
            ("Replace", wish.replace),
            ("ApplyOutOfSyncOnly", wish.only_out_of_sync),
        )
        if is_on
    ]
    sync = given(
        revision=wish.revision,
        revisions=list(wish.revisions),
        prune=wish.prune,
        dryRun=wish.dry_run,
        resources=[_chosen(key) for key in dict.fromkeys(keys)],
        syncOptions=[*app.policy.options, *options, *wish.options],  # argo: a sync uses only the options of its request
    )
    sync["syncStrategy"] = strategy
    return {
        "sync": sync,
        "initiatedBy": {"username": by},
        **given(retry=_retry(app, wish), info=[_info(each) for each in wish.info]),
    }


def check_free(app: Application) -> None:
    if app.deleted:
        raise PolicyError(f"{app.name} is being deleted; wait until it is gone: argosy app wait {app.name} --delete")
    if is_busy(app):
        told = f"argosy app wait {app.name} --operation, or end it: argosy app terminate-op {app.name}"
        why = f" ({again.partition(';')[0]})" if (again := retrying(app)) else ""
        raise PolicyError(f"{app.name}: another operation is already in progress{why}; wait for it: {told}")


def _check_revision(app: Application, wish: SyncWish) -> None:
    automated = app.policy.automated
    if not wish.revision or wish.dry_run or automated is None or not automated.is_on or len(app.sources) != 1:
        return
    if wish.revision != app.sources[0].ref:  # argo: automated sync would undo it immediately
        told = f"hold it first: argosy app hold {app.name}, or change it with: argosy app set {app.name} --revision"
        raise PolicyError(
            f"{app.name}: cannot sync to {wish.revision}: auto-sync is set to {app.sources[0].ref or 'HEAD'}; {told}"
        )


def _chosen(key: ResourceKey) -> dict[str, str]:
    return {**given(group=key.group, namespace=key.namespace), "kind": key.kind, "name": key.name}


def _info(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"{text!r} is not NAME=VALUE", where="--info")
    return {"name": name, "value": value}


def _retry(app: Application, wish: SyncWish) -> dict[str, Any]:
    """argo: defaults to the Application's own retry policy."""
    backoff = given(duration=wish.retry_duration, maxDuration=wish.retry_longest, factor=wish.retry_factor)
    if wish.retry_limit is None and not backoff and not wish.retry_refresh:
        spec = mapping(mapping(app.wire.get("spec")).get("syncPolicy"))
        return dict(mapping(spec.get("retry")))
    return given(limit=wish.retry_limit, refresh=wish.retry_refresh, backoff=backoff)


def positioned(
    app: Application, given_refs: Sequence[str], positions: Sequence[int], names: Sequence[str] = ()
) -> tuple[str, ...]:
    """argo: return a ref per source; sources that are not listed keep their own."""
    if names and positions:
        raise UserError("only one of --source-positions and --source-names can be specified; omit one")
    positions = [_position(app, name) for name in names] or positions
    if len(given_refs) != len(positions):
        raise UserError("--source-positions and --revisions must have the same number of values, in the same order")
    wanted = [source.ref for source in app.sources]
    for ref, position in zip(given_refs, positions, strict=True):
        if not 1 <= position <= len(wanted):
            told = f"{app.name} has {len(wanted)} sources, none at position {position}; positions start at 1"
            raise UserError(told, where="--source-positions")
        wanted[position - 1] = ref
    return tuple(wanted)


def _position(app: Application, name: str) -> int:
    for place, source in enumerate(app.sources, start=1):
        if source.wire.get("name") == name:
            return place
    raise UserError(f"unknown source name {name!r}; give it a name, or use --source-positions", where="--source-names")


def keys_with_labels(app: Application, desired: Sequence[Manifest], labels: Sequence[str]) -> list[ResourceKey]:
    """argo: list objects that have any of the labels in Git."""
    wanted = [text.partition("=")[::2] for text in labels]
    found = [
        key_of(manifest)
        for manifest in desired
        if manifest["metadata"].get("name")
        and any((manifest["metadata"].get("labels") or {}).get(name) == value for name, value in wanted)
    ]
    if not found:
        told = f"list its manifests: argosy app manifests {app.name}"
        raise UserError(f"{app.name} has no manifest with label {', '.join(labels)}; {told}")
    return found
