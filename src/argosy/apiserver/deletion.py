"""Removing objects: preconditions, grace, finalizers, and what becomes of dependents.

In: a served kind, a name and DeleteOptions. Out: the dying object, or a Status that it is gone.
Never: deletes dependents itself; the garbage collector does, seeing what is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from argosy.apiserver import metadata as meta
from argosy.apiserver import refusals
from argosy.apiserver.call import Call, Written
from argosy.apiserver.registry import Registry, encoder, is_releasable
from argosy.apiserver.served import Served
from argosy.apiserver.store import Entry
from argosy.cluster import Propagation
from argosy.model.manifest import Manifest
from argosy.schema import fault

PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
POD_GRACE = 30
FINISHED_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    propagation: Propagation | None = None
    grace: int | None = None
    uid: str = ""
    version: str = ""
    dry_run: bool = False


def read_options(value: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    """k8s: options come in the body, else in the query; a bad policy is the options object's fault."""
    if not isinstance(value, Mapping):
        raise refusals.bad_request("DeleteOptions must be an object")
    preconditions = value.get("preconditions") or {}
    policy = value.get("propagationPolicy") or query.get("propagationPolicy") or ""
    if not policy and (value.get("orphanDependents") or query.get("orphanDependents") == "true"):
        policy = Propagation.ORPHAN
    if policy and policy not in list(Propagation):
        known = [str(each) for each in Propagation]
        bad = fault.not_supported("propagationPolicy", f'"{policy}"', known)
        raise refusals.invalid_options("DeleteOptions", bad)
    grace = value.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds", "").lstrip("-").isdigit():
        grace = int(query["gracePeriodSeconds"])
    dry = value.get("dryRun") or ([query["dryRun"]] if "dryRun" in query else [])
    if dry and dry != ["All"]:
        shown = "[]string{" + ", ".join(f'"{each}"' for each in dry) + "}"
        raise refusals.invalid_options("DeleteOptions", fault.not_supported("dryRun", shown, ["All"]))
    return DeleteOptions(
        Propagation(policy) if policy else None,
        max(0, int(grace)) if grace is not None else None,
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        bool(dry),
    )


class Deletion:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def delete(
        self, served: Served, namespace: str, name: str, options: DeleteOptions, call: Call
    ) -> Written | Manifest:
        """The object where it lives on for a while, else a Status that says it is gone."""
        registry = self._registry
        registry.authorize(call.user, "delete", served, namespace, name)
        entry = registry.store.latest(served.bucket, namespace, name)
        if entry is None:
            raise refusals.not_found(served.resource, name)
        manifest = served.read(entry)
        self._check(served, manifest, options)
        return await self._delete(served, entry, manifest, options)

    async def delete_all(
        self, served: Served, entries: Iterable[Entry], namespace: str, options: DeleteOptions, call: Call
    ) -> list[Entry]:
        """Every one of these that is still there; the deleted ones are returned as they were."""
        self._registry.authorize(call.user, "deletecollection", served, namespace)
        deleted = []
        for listed in entries:
            entry = self._registry.store.latest(served.bucket, listed.namespace, listed.name)
            if entry is not None:
                await self._delete(served, entry, served.read(entry), options)
                deleted.append(listed)
        return deleted

    def _check(self, served: Served, manifest: Manifest, options: DeleteOptions) -> None:
        resource, metadata = served.resource, manifest["metadata"]
        if resource.group_kind == ("", "Namespace") and metadata["name"] in PROTECTED_NAMESPACES:
            raise refusals.forbidden(resource, metadata["name"], "this namespace may not be deleted")
        if options.uid and options.uid != metadata["uid"]:
            why = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
                "The object might have been deleted and then recreated"
            )
            raise refusals.conflict(resource, metadata["name"], why, kind=resource.kind)
        if options.version and options.version != metadata["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
                f"record ({metadata['resourceVersion']}). The object might have been modified"
            )
            raise refusals.conflict(resource, metadata["name"], why, kind=resource.kind)

    async def _delete(
        self, served: Served, entry: Entry, manifest: Manifest, options: DeleteOptions
    ) -> Written | Manifest:
        registry = self._registry
        dying = _dying(served, manifest, options, registry.clock)
        if is_releasable(dying):
            if not options.dry_run:
                await registry.remove(served, entry, manifest)
            return refusals.success(served.resource, entry.name, manifest["metadata"]["uid"])
        if dying == manifest or options.dry_run:
            return Written(served, entry)
        written = await registry.store.put(served.bucket, entry.namespace, entry.name, encoder(served.store(dying)))
        registry.catalog_changed(served, written)
        return Written(served, written)


def _dying(served: Served, manifest: Manifest, options: DeleteOptions, clock: meta.Clock) -> Manifest:
    """The manifest as a deletion leaves it: marked, with what must happen before it goes."""
    metadata = dict(manifest["metadata"])
    finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
    grace = _grace(served, manifest, options)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = meta.stamp(clock() + timedelta(seconds=grace))
        if served.resource.kind != "Namespace":
            metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):  # k8s: asking for the end is a change of what is asked for
            metadata["generation"] += 1
    elif grace < (metadata.get("deletionGracePeriodSeconds") or 0):
        metadata["deletionTimestamp"] = meta.stamp(clock() + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
    dying = {**manifest, "metadata": meta.ordered(metadata)}
    if served.resource.group_kind == ("", "Namespace"):
        dying["status"] = {**(manifest.get("status") or {}), "phase": "Terminating"}
    return dying


def _finalizers(present: list[str], propagation: Propagation | None) -> list[str]:
    """k8s: the policy is written down as a finalizer; asking for none of them takes an earlier one back."""
    if propagation is None:
        return list(present)
    wanted = {Propagation.FOREGROUND: FOREGROUND, Propagation.ORPHAN: ORPHAN}.get(propagation)
    kept = [each for each in present if each not in (FOREGROUND, ORPHAN)]
    return [*kept, wanted] if wanted else kept


def _grace(served: Served, manifest: Manifest, options: DeleteOptions) -> int:
    """k8s: only Pods that run somewhere are given time."""
    if served.resource.group_kind != ("", "Pod"):
        return 0
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in FINISHED_PHASES:
        return 0
    if options.grace is not None:
        return options.grace
    return int(spec.get("terminationGracePeriodSeconds", POD_GRACE))
