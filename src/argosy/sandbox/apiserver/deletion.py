"""Deletes objects: preconditions, grace period, finalizers, propagation policy.

In: a served kind, a name and DeleteOptions. Out: the terminating object, or a Success Status.
Never: deletes dependents itself; the garbage collector does that, based on the finalizers set here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from argosy.kube.client import Propagation
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.schema import field_error
from argosy.kube.well_known_kinds import JOB, NAMESPACE, POD
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.listing import parse_int
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.storage_encoding_and_size_check import build_encoder, is_removable
from argosy.sandbox.apiserver.write_call_and_result_types import RegistryCall, WriteResult
from argosy.sandbox.store import StoreEntry

PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
FOREGROUND_FINALIZER, ORPHAN_FINALIZER = "foregroundDeletion", "orphan"
DEFAULT_POD_GRACE_SECONDS = 30
JOB_ORPHANS_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)
FINISHED_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    propagation: Propagation | None = None
    grace_seconds: int | None = None
    uid: str = ""
    version: str = ""
    dry_run: bool = False


def read_delete_options(value: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    """k8s: options come from the body, else from the query; an invalid policy is reported as invalid DeleteOptions."""
    if not isinstance(value, Mapping):
        raise status_errors.bad_request("DeleteOptions must be an object")
    preconditions = value.get("preconditions") or {}
    policy = value.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = value.get("orphanDependents")
    if orphan is None and "orphanDependents" in query:
        orphan = query["orphanDependents"] not in ("0", "false")
    _check_propagation_policy(policy, orphan)
    if orphan is not None:
        policy = Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    grace = value.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in query:
        grace = parse_int(query["gracePeriodSeconds"])
    dry_run = value.get("dryRun") or ([query["dryRun"]] if "dryRun" in query else [])
    if dry_run and dry_run != ["All"]:
        shown_values = "[]string{" + ", ".join(f'"{value_text}"' for value_text in dry_run) + "}"
        raise status_errors.invalid_options("DeleteOptions", field_error.not_supported("dryRun", shown_values, ["All"]))
    return DeleteOptions(
        Propagation(policy) if policy else None,
        grace if grace is None or grace >= 0 else 1,  # k8s: a negative value means one second
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        bool(dry_run),
    )


def _check_propagation_policy(policy: str, orphan: bool | None) -> None:
    invalid_field = None
    if policy and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        invalid_field = field_error.invalid("propagationPolicy", f'"{policy}"', detail)
    elif policy and policy not in list(Propagation):
        supported = ["Foreground", "Background", "Orphan", "nil"]
        invalid_field = field_error.not_supported_unsorted("propagationPolicy", f'"{policy}"', supported)
    if invalid_field:
        raise status_errors.invalid_options("DeleteOptions", invalid_field)


class ObjectDeleter:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def delete(
        self, served: ApiKind, namespace: str, name: str, options: DeleteOptions, call: RegistryCall
    ) -> WriteResult | Manifest:
        """Returns the terminating object, or a Success Status if it was removed at once."""
        registry = self._registry
        registry.authorize(call.user, "delete", served, namespace, name)
        entry = registry.store.get_latest(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        manifest = served.read_entry(entry)
        self._check_preconditions(served, manifest, options)
        return await self._delete(served, entry, manifest, options)

    async def delete_entries(
        self, served: ApiKind, entries: Iterable[StoreEntry], options: DeleteOptions
    ) -> list[StoreEntry]:
        """Delete those that still exist; return them as they were listed. The caller has authorized the request."""
        deleted_entries = []
        for listed_entry in entries:
            entry = self._registry.store.get_latest(served.bucket, listed_entry.namespace, listed_entry.name)
            if entry is not None:
                manifest = served.read_entry(entry)
                self._check_preconditions(served, manifest, options)
                await self._delete(served, entry, manifest, options)
                deleted_entries.append(listed_entry)
        return deleted_entries

    def _check_preconditions(self, served: ApiKind, manifest: Manifest, options: DeleteOptions) -> None:
        resource, metadata = served.resource, manifest["metadata"]
        if resource.group_kind == NAMESPACE and metadata["name"] in PROTECTED_NAMESPACES:
            raise status_errors.forbidden(resource, metadata["name"], "this namespace may not be deleted")
        if options.uid and options.uid != metadata["uid"]:
            reason = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
                "The object might have been deleted and then recreated"
            )
            raise status_errors.conflict(resource, metadata["name"], reason, kind=resource.kind)
        if options.version and options.version != metadata["resourceVersion"]:
            reason = (
                f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
                f"record ({metadata['resourceVersion']}). The object might have been modified"
            )
            raise status_errors.conflict(resource, metadata["name"], reason, kind=resource.kind)

    async def _delete(
        self, served: ApiKind, entry: StoreEntry, manifest: Manifest, options: DeleteOptions
    ) -> WriteResult | Manifest:
        registry = self._registry
        marked_manifest = _mark_deleted(served, manifest, options, registry.clock)
        if is_removable(marked_manifest):
            if served.resource.group_kind != POD:
                if not options.dry_run:
                    await registry.remove(served, entry, manifest)
                return status_errors.build_success_status(served.resource, entry.name, manifest["metadata"]["uid"])
            if not options.dry_run:  # k8s: the response for a Pod is its last state
                if marked_manifest != manifest:  # k8s: watches get the deletionTimestamp before the deletion
                    encode_marked = build_encoder(served.to_stored(marked_manifest))
                    # both are staged together, so that no create with the same name can come between
                    entry = registry.store.put(served.bucket, entry.namespace, entry.name, encode_marked).entry
                await registry.remove(served, entry, marked_manifest)
            return WriteResult(served, registry.build_unstored_entry(served, entry.namespace, marked_manifest))
        warnings = (JOB_ORPHANS_WARNING,) if options.propagation is None and served.resource.group_kind == JOB else ()
        if marked_manifest == manifest:
            await registry.store.wait_until_durable()
            return WriteResult(served, entry, warnings=warnings)
        if options.dry_run:
            return WriteResult(
                served, registry.build_unstored_entry(served, entry.namespace, marked_manifest), warnings=warnings
            )
        stored_entry = await registry.store.put(
            served.bucket, entry.namespace, entry.name, build_encoder(served.to_stored(marked_manifest))
        )
        return WriteResult(served, stored_entry, warnings=warnings)


def _mark_deleted(served: ApiKind, manifest: Manifest, options: DeleteOptions, clock: meta.Clock) -> Manifest:
    """The manifest with deletionTimestamp, grace period and finalizers of the deletion."""
    metadata = dict(manifest["metadata"])
    finalizers = _choose_finalizers(served, metadata.get("finalizers") or [], options.propagation)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    remaining_grace = metadata.get("deletionGracePeriodSeconds") or 0
    if not metadata.get("deletionTimestamp"):
        grace = _choose_grace_seconds(served, manifest, options)
        metadata["deletionTimestamp"] = format_timestamp(clock() + timedelta(seconds=grace))
        if served.resource.group_kind != NAMESPACE:
            metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):  # k8s: a deletion counts as a change of the desired state
            metadata["generation"] += 1
    # k8s: only a shorter grace is accepted
    elif options.grace_seconds is not None and options.grace_seconds < remaining_grace:
        until = datetime.fromisoformat(metadata["deletionTimestamp"])
        metadata["deletionTimestamp"] = format_timestamp(
            until + timedelta(seconds=options.grace_seconds - remaining_grace)
        )
        metadata["deletionGracePeriodSeconds"] = options.grace_seconds
    marked_manifest = {**manifest, "metadata": meta.order_metadata(metadata)}
    if served.resource.group_kind == NAMESPACE:
        marked_manifest["status"] = {**(manifest.get("status") or {}), "phase": "Terminating"}
    return marked_manifest


def _choose_finalizers(served: ApiKind, finalizers: list[str], propagation: Propagation | None) -> list[str]:
    """k8s: the propagation policy becomes a finalizer; Background removes the finalizer of an earlier deletion."""
    if propagation is None:
        if served.resource.group_kind != JOB or {FOREGROUND_FINALIZER, ORPHAN_FINALIZER} & set(finalizers):
            return list(finalizers)
        propagation = Propagation.ORPHAN  # k8s: legacy default of Jobs
    added = {Propagation.FOREGROUND: FOREGROUND_FINALIZER, Propagation.ORPHAN: ORPHAN_FINALIZER}.get(propagation)
    kept_finalizers = [
        finalizer for finalizer in finalizers if finalizer not in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER)
    ]
    return [*kept_finalizers, added] if added else kept_finalizers


def _choose_grace_seconds(served: ApiKind, manifest: Manifest, options: DeleteOptions) -> int:
    """k8s: only Pods that run on a node have a grace period."""
    if served.resource.group_kind != POD:
        return 0
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in FINISHED_PHASES:
        return 0
    if options.grace_seconds is not None:
        return options.grace_seconds
    return int(spec.get("terminationGracePeriodSeconds", DEFAULT_POD_GRACE_SECONDS))
