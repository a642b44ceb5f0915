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
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.listing import whole_number
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.registry_call import Call, Written
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.apiserver.stored_objects import encoder, is_releasable
from argosy.sandbox.store import Entry

PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
NAMESPACE, POD, JOB = GroupKind("", "Namespace"), GroupKind("", "Pod"), GroupKind("batch", "Job")
POD_GRACE = 30
JOB_ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)
FINISHED_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    propagation: Propagation | None = None
    grace: int | None = None
    uid: str = ""
    version: str = ""
    dry_run: bool = False


def read_options(value: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    """k8s: options come from the body, else from the query; an invalid policy is reported as invalid DeleteOptions."""
    if not isinstance(value, Mapping):
        raise status_errors.bad_request("DeleteOptions must be an object")
    preconditions = value.get("preconditions") or {}
    policy = value.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = value.get("orphanDependents")
    if orphan is None and "orphanDependents" in query:
        orphan = query["orphanDependents"] not in ("0", "false")
    _check_policy(policy, orphan)
    if orphan is not None:
        policy = Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    grace = value.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in query:
        grace = whole_number(query["gracePeriodSeconds"])
    dry = value.get("dryRun") or ([query["dryRun"]] if "dryRun" in query else [])
    if dry and dry != ["All"]:
        shown = "[]string{" + ", ".join(f'"{each}"' for each in dry) + "}"
        raise status_errors.invalid_options("DeleteOptions", field_error.not_supported("dryRun", shown, ["All"]))
    return DeleteOptions(
        Propagation(policy) if policy else None,
        grace if grace is None or grace >= 0 else 1,  # k8s: a negative value means one second
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        bool(dry),
    )


def _check_policy(policy: str, orphan: bool | None) -> None:
    problem = None
    if policy and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        problem = field_error.invalid("propagationPolicy", f'"{policy}"', detail)
    elif policy and policy not in list(Propagation):
        known = ["Foreground", "Background", "Orphan", "nil"]
        problem = field_error.unsupported("propagationPolicy", f'"{policy}"', known)
    if problem:
        raise status_errors.invalid_options("DeleteOptions", problem)


class Deletion:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def delete(
        self, served: Served, namespace: str, name: str, options: DeleteOptions, call: Call
    ) -> Written | Manifest:
        """Returns the terminating object, or a Success Status if it was removed at once."""
        registry = self._registry
        registry.authorize(call.user, "delete", served, namespace, name)
        entry = registry.store.latest(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        manifest = served.read(entry)
        self._check(served, manifest, options)
        return await self._delete(served, entry, manifest, options)

    async def delete_all(self, served: Served, entries: Iterable[Entry], options: DeleteOptions) -> list[Entry]:
        """Delete those that still exist; return them as they were listed. The caller has authorized the request."""
        deleted = []
        for listed in entries:
            entry = self._registry.store.latest(served.bucket, listed.namespace, listed.name)
            if entry is not None:
                manifest = served.read(entry)
                self._check(served, manifest, options)
                await self._delete(served, entry, manifest, options)
                deleted.append(listed)
        return deleted

    def _check(self, served: Served, manifest: Manifest, options: DeleteOptions) -> None:
        resource, metadata = served.resource, manifest["metadata"]
        if resource.group_kind == NAMESPACE and metadata["name"] in PROTECTED_NAMESPACES:
            raise status_errors.forbidden(resource, metadata["name"], "this namespace may not be deleted")
        if options.uid and options.uid != metadata["uid"]:
            why = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
                "The object might have been deleted and then recreated"
            )
            raise status_errors.conflict(resource, metadata["name"], why, kind=resource.kind)
        if options.version and options.version != metadata["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
                f"record ({metadata['resourceVersion']}). The object might have been modified"
            )
            raise status_errors.conflict(resource, metadata["name"], why, kind=resource.kind)

    async def _delete(
        self, served: Served, entry: Entry, manifest: Manifest, options: DeleteOptions
    ) -> Written | Manifest:
        registry = self._registry
        dying = _dying(served, manifest, options, registry.clock)
        if is_releasable(dying):
            if served.resource.group_kind != POD:
                if not options.dry_run:
                    await registry.remove(served, entry, manifest)
                return status_errors.success(served.resource, entry.name, manifest["metadata"]["uid"])
            if not options.dry_run:  # k8s: the response for a Pod is its last state
                if dying != manifest:  # k8s: watches get the deletionTimestamp before the deletion
                    marked = encoder(served.store(dying))
                    # both are staged together, so that no create with the same name can come between
                    entry = registry.store.put(served.bucket, entry.namespace, entry.name, marked).entry
                await registry.remove(served, entry, dying)
            return Written(served, registry.unstored(served, entry.namespace, dying))
        warnings = (JOB_ORPHANS,) if options.propagation is None and served.resource.group_kind == JOB else ()
        if dying == manifest:
            await registry.store.settled()
            return Written(served, entry, warnings=warnings)
        if options.dry_run:
            return Written(served, registry.unstored(served, entry.namespace, dying), warnings=warnings)
        written = await registry.store.put(served.bucket, entry.namespace, entry.name, encoder(served.store(dying)))
        return Written(served, written, warnings=warnings)


def _dying(served: Served, manifest: Manifest, options: DeleteOptions, clock: meta.Clock) -> Manifest:
    """The manifest with deletionTimestamp, grace period and finalizers of the deletion."""
    metadata = dict(manifest["metadata"])
    finalizers = _finalizers(served, metadata.get("finalizers") or [], options.propagation)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    left = metadata.get("deletionGracePeriodSeconds") or 0
    if not metadata.get("deletionTimestamp"):
        grace = _grace(served, manifest, options)
        metadata["deletionTimestamp"] = meta.stamp(clock() + timedelta(seconds=grace))
        if served.resource.group_kind != NAMESPACE:
            metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):  # k8s: a deletion counts as a change of the desired state
            metadata["generation"] += 1
    elif options.grace is not None and options.grace < left:  # k8s: only a shorter grace is accepted
        until = datetime.fromisoformat(metadata["deletionTimestamp"])
        metadata["deletionTimestamp"] = meta.stamp(until + timedelta(seconds=options.grace - left))
        metadata["deletionGracePeriodSeconds"] = options.grace
    dying = {**manifest, "metadata": meta.ordered(metadata)}
    if served.resource.group_kind == NAMESPACE:
        dying["status"] = {**(manifest.get("status") or {}), "phase": "Terminating"}
    return dying


def _finalizers(served: Served, present: list[str], propagation: Propagation | None) -> list[str]:
    """k8s: the propagation policy becomes a finalizer; Background removes the finalizer of an earlier deletion."""
    if propagation is None:
        if served.resource.group_kind != JOB or {FOREGROUND, ORPHAN} & set(present):
            return list(present)
        propagation = Propagation.ORPHAN  # k8s: legacy default of Jobs
    wanted = {Propagation.FOREGROUND: FOREGROUND, Propagation.ORPHAN: ORPHAN}.get(propagation)
    kept = [each for each in present if each not in (FOREGROUND, ORPHAN)]
    return [*kept, wanted] if wanted else kept


def _grace(served: Served, manifest: Manifest, options: DeleteOptions) -> int:
    """k8s: only Pods that run on a node have a grace period."""
    if served.resource.group_kind != POD:
        return 0
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in FINISHED_PHASES:
        return 0
    if options.grace is not None:
        return options.grace
    return int(spec.get("terminationGracePeriodSeconds", POD_GRACE))
