"""The write path of the API server: authorize, decode, default, admit, validate, track field ownership, store.

In: a served kind, a name and the request body. Out: the written object, or a ClusterError in Kubernetes' words.
Never: knows of HTTP, or treats clients differently except by their user.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson

from argosy.errors import PatchError
from argosy.kube.client import PatchKind, User
from argosy.kube.objects import Manifest
from argosy.kube.patch import server_side_apply
from argosy.kube.patch.field_sets import FieldSet
from argosy.kube.patch.managed_fields import keep_times, record_update
from argosy.kube.schema import field_error
from argosy.kube.schema.field_error import Fault
from argosy.sandbox.apiserver import ephemeral_containers, patch_errors, status_errors
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver.admission import Admission
from argosy.sandbox.apiserver.authorization import Access, Attributes
from argosy.sandbox.apiserver.cel_rules import Rules
from argosy.sandbox.apiserver.metadata import Clock, utc_now
from argosy.sandbox.apiserver.off_loop_work import LARGE_BYTES, LargeWork
from argosy.sandbox.apiserver.registry_call import Call, Written
from argosy.sandbox.apiserver.request_decoding import Undecodable, applicable, decoded, has_copies, patched
from argosy.sandbox.apiserver.resource_catalog import DEFINITIONS, Catalog
from argosy.sandbox.apiserver.served_kind import Custom, Served, without_status
from argosy.sandbox.apiserver.stored_objects import (
    check_changed_size,
    check_owned_fields,
    check_size,
    encoder,
    is_releasable,
    without_kind,
)
from argosy.sandbox.store import Entry, Store

STATUS = FieldSet.of(["f:status"])  # k8s: has no owner through the main path of a kind that has /status
PREPARED_PARTS = ("status", ephemeral_containers.PART)  # subresources that change one part of an object
MAX_LARGE_ATTEMPTS = 5  # k8s: how often a patch is retried on write conflicts
WHOLE_PARTS = ("binding", "finalize", "approval")
Result = TypeVar("Result")
Change = Callable[[Manifest], tuple[Manifest, Sequence[str]]]


class Registry:
    def __init__(self, store: Store, catalog: Catalog, access: Access, rules: Rules, *, clock: Clock = utc_now) -> None:
        self.store = store
        self.catalog = catalog
        self.access = access
        self.clock = clock
        self._rules = rules
        self.admission = Admission(store, catalog)
        self.large_work = LargeWork()

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, served: Served, namespace: str, name: str, user: User, *, subresource: str = "") -> Entry:
        self.authorize(user, "get", served, namespace, name, subresource)
        entry = self.store.get(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        return entry

    def authorize(
        self, user: User, verb: str, served: Served, namespace: str, name: str = "", subresource: str = ""
    ) -> None:
        resource = served.resource
        if (resource.group, resource.plural) == ("", "namespaces"):
            namespace = name  # k8s: a namespace counts as inside itself, so a Role in it can allow reading it
        asked = Attributes(verb, resource.group, resource.plural, subresource, namespace, name)
        self.access.require(user, asked)

    # -- creating ------------------------------------------------------------------------------------------------

    async def create(self, served: Served, namespace: str, value: Any, call: Call, *, name: str = "") -> Written:
        self.authorize(call.user, "create", served, namespace, name)
        manifest, warnings = await self._beside(call, call.size, self._decoded, served, value, call)
        if call.size >= LARGE_BYTES:
            await self._beside(call, call.size, check_owned_fields, served, manifest)
        return await self._create(served, namespace, manifest, call, warnings)

    async def _create(
        self, served: Served, namespace: str, manifest: Manifest, call: Call, warnings: Sequence[str], *,
        applied: bool = False,
    ) -> Written:  # fmt: skip
        resource, now = served.resource, self.clock()
        metadata = meta.for_create(served, manifest, namespace, now)
        self._check_place(served, namespace, metadata["name"])
        beside = partial(self._beside, call, call.size)
        sent = await beside(served.complete, {**manifest, "metadata": metadata})
        new = self.admission.complete(served, await beside(served.prepare_create, sent))
        if not applied:
            new = await beside(self._created_by, served, sent, new, call)
        new = self.admission.admitted(served, new, None, meta.stamp(now))
        name = new["metadata"]["name"]
        self.access.authorizer.check_escalation(call.user, resource, new, request_name=name if applied else "")
        if faults := [*await beside(served.faults_on_create, new), *self.admission.faults(served, new, None)]:
            raise status_errors.invalid(resource, name, faults)
        if call.size >= LARGE_BYTES:
            await beside(check_size, served, new)
        if await self._check_rules(served, new, None) or call.size >= LARGE_BYTES:
            self._check_place(served, namespace, name)  # the namespace or CRD may be gone by now
            if self.admission.faults(served, new, None):  # a concurrent write took the same address
                return await self._create(served, namespace, manifest, call, warnings, applied=applied)
        if (found := self.store.latest(served.bucket, namespace, name)) is not None:
            if not manifest.get("metadata", {}).get("name") and not call.dry_run:  # the generated name is already used
                return await self._create(served, namespace, manifest, call, warnings, applied=applied)
            dying = bool(served.read(found)["metadata"].get("deletionTimestamp"))
            raise status_errors.already_exists(resource, name, dying=dying)
        self.admission.check_quotas(served, new)
        warnings = [*warnings, *self.admission.warnings(served, new)]
        if call.dry_run:
            return Written(served, self.unstored(served, namespace, new), created=True, warnings=warnings)
        commit = self.store.put(served.bucket, namespace, name, encoder(served.store(new)))
        self.admission.stored(served, new)
        entry = await commit
        return Written(served, entry, created=True, warnings=warnings)

    # -- changing ------------------------------------------------------------------------------------------------

    async def update(
        self, served: Served, namespace: str, name: str, value: Any, call: Call, *, subresource: str = ""
    ) -> Written:
        self.authorize(call.user, "update", served, namespace, name, subresource)

        def replaced(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            sent, warnings = self._decoded(served, value, call)
            if uid := (sent.get("metadata") or {}).get("uid"):
                meta.check_uid(served, old, uid)
            return sent, warnings

        return await self.change(served, namespace, name, replaced, call, subresource)

    async def patch(
        self, served: Served, namespace: str, name: str, patch: Any, kind: PatchKind, call: Call, *,
        subresource: str = "",
    ) -> Written:  # fmt: skip
        self.authorize(call.user, "patch", served, namespace, name, subresource)
        if has_copies(patch):  # a small patch may create a large object
            call = replace(call, size=max(call.size, LARGE_BYTES))

        def change(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            made = patched(served, old, patch, kind)
            try:
                return self._decoded(served, made, call)
            except Undecodable as error:
                raise patch_errors.unreadable(kind, patch, made, error.why) from error

        return await self.change(served, namespace, name, change, call, subresource)

    async def apply(
        self, served: Served, namespace: str, name: str, config: Any, call: Call, *, subresource: str = ""
    ) -> Written:
        """Server-side apply: merge the configuration with the live object and its field owners."""
        self.authorize(call.user, "patch", served, namespace, name, subresource)
        config = applicable(served, config, subresource)
        if self.store.latest(served.bucket, namespace, name) is None and not subresource:
            self.authorize(call.user, "create", served, namespace, name)
            meta.check_name(config["metadata"], name)
            if uid := config["metadata"].get("uid"):
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise status_errors.conflict(served.resource, name, why)
            metadata = {field: each for field, each in config["metadata"].items() if field != "resourceVersion"}
            config = {**config, "metadata": metadata}

            def first() -> tuple[Manifest, Sequence[str]]:
                return self._decoded(served, self._merged(served, None, config, call, ""), call)

            manifest, warnings = await self._beside(call, call.size, first)
            return await self._create(served, namespace, manifest, call, warnings, applied=True)

        def merged(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            return self._decoded(served, self._merged(served, old, config, call, subresource), call)

        return await self.change(served, namespace, name, merged, call, subresource, applied=True)

    async def change(
        self, served: Served, namespace: str, name: str, change: Change, call: Call, subresource: str, *,
        applied: bool = False,
    ) -> Written:  # fmt: skip
        """Read an object, change it and store it. `change` returns the requested manifest and warnings.

        `change` must be pure: for a large object it runs off the loop, and again if another write came first.
        """
        for attempt in itertools.count(1):
            entry = self.store.latest(served.bucket, namespace, name)
            if entry is None:
                raise status_errors.not_found(served.resource, name)
            size = max(call.size, len(entry.body))
            beside = partial(self._beside, call, size)

            def prepare(entry: Entry = entry) -> tuple[Manifest, Manifest, Sequence[str]]:
                old = served.read(entry)
                sent, warnings = change(old)
                self._check_version(served, sent, old, applied=applied)
                return old, self._prepared_update(served, sent, old, subresource), warnings

            old, new, warnings = await beside(prepare)
            if has_admission := subresource not in (*PREPARED_PARTS, *WHOLE_PARTS):
                new = self.admission.complete(served, new, old)
            if not applied:
                new = await beside(self._owned, served, old, new, call, subresource)
            if not subresource:
                new = self.admission.admitted(served, new, old, meta.stamp(self.clock()))
            new = await beside(meta.next_generation, served, new, old)
            self.access.authorizer.check_escalation(call.user, served.resource, new, old=old, request_name=name)
            faults = await beside(self._update_faults, served, new, old, subresource)
            if has_admission:
                faults = [*faults, *self.admission.faults(served, new, old)]
            if faults:
                raise status_errors.invalid(served.resource, name, faults)
            await self._check_rules(served, new, old)
            kept = await beside(keep_times, old, new)
            if kept is not old and size >= LARGE_BYTES:
                await beside(check_changed_size, served, kept, entry)
            is_taken = has_admission and size >= LARGE_BYTES and self.admission.faults(served, new, old)
            if self.store.latest(served.bucket, namespace, name) is entry and not is_taken:  # else: write conflict
                warnings = warnings if subresource else [*warnings, *self.admission.warnings(served, new)]
                return await self._store_change(served, entry, old, new, kept, call, warnings)
            if size >= LARGE_BYTES and attempt >= MAX_LARGE_ATTEMPTS:
                raise status_errors.conflict(served.resource, name)
        raise AssertionError("unreachable")

    def _prepared_update(self, served: Served, sent: Manifest, old: Manifest, subresource: str) -> Manifest:
        new = {**sent, "metadata": meta.for_update(served, sent, old)}
        if subresource == "status":
            new = served.prepare_status(new, old)
            return {**new, "metadata": meta.ordered(new["metadata"])}
        if subresource in WHOLE_PARTS:
            return new  # the subresource handler decided what changes
        if subresource == ephemeral_containers.PART:
            return ephemeral_containers.only_debuggers(served.complete(new), old)
        return served.prepare_update(served.complete(new), old)

    async def _store_change(
        self, served: Served, entry: Entry, old: Manifest, new: Manifest, kept: Manifest, call: Call,
        warnings: Sequence[str],
    ) -> Written:  # fmt: skip
        """k8s: a change without effect writes nothing; a terminating object without finalizers is removed."""
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp") and is_releasable(new):
            if not call.dry_run:
                await self.remove(served, entry, new)
            return Written(served, self.unstored(served, entry.namespace, new), warnings=warnings)
        if kept is old:
            await self.store.settled()  # a response must be durable, also if another request wrote it
            return Written(served, entry, warnings=warnings)
        if call.dry_run:
            return Written(served, self.unstored(served, entry.namespace, kept), warnings=warnings)
        body = encoder(served.store(kept))
        commit = self.store.put(served.bucket, entry.namespace, entry.name, body)
        self.admission.stored(served, kept)
        written = await commit
        return Written(served, written, warnings=warnings)

    async def remove(self, served: Served, entry: Entry, last: Manifest) -> Entry:
        """Remove the object; watches get its last state with the revision of the deletion."""
        commit = self.store.remove(served.bucket, entry.namespace, entry.name, encoder(served.store(last)))
        self.admission.stored(served, last, gone=True)
        return await commit

    def _update_faults(self, served: Served, new: Manifest, old: Manifest, subresource: str) -> Sequence[Fault]:
        if subresource == "status":
            return served.faults_on_status(new, old)
        if subresource in WHOLE_PARTS:
            return ()
        if subresource == ephemeral_containers.PART:
            return ephemeral_containers.faults(new, old)
        return served.faults_on_update(new, old)

    async def _beside(self, call: Call, size: int, function: Callable[..., Result], *args: Any) -> Result:
        """Run a pure function; off the loop if the object is large."""
        return await self.large_work.run(call.user.name, size, function, *args)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _decoded(self, served: Served, value: Any, call: Call) -> tuple[Manifest, Sequence[str]]:
        resource = served.resource
        manifest, warnings = decoded(served, value, call.validation, call.duplicates)
        for field, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
            manifest.setdefault(field, expected)
        return manifest, warnings

    def _created_by(self, served: Served, sent: Manifest, new: Manifest, call: Call) -> Manifest:
        """k8s: a creator owns the fields it sent and their defaults, not fields set by the server, nor a status."""
        tracked = without_status(sent) if served.resource.subresource("status") else sent
        owned = self._owned(served, None, tracked, call)["metadata"].get("managedFields")
        metadata = {**new["metadata"], "managedFields": owned}
        return {**new, "metadata": meta.ordered(metadata)}

    def _owned(
        self, served: Served, old: Manifest | None, new: Manifest, call: Call, subresource: str = ""
    ) -> Manifest:
        now = meta.stamp(self.clock())
        owned = record_update(
            old,
            new,
            zero=served.zero,
            manager=call.manager,
            api_version=served.resource.api_version,
            subresource=subresource,
            now=now,
            shape=served.shape,
        )
        return {**owned, "metadata": meta.ordered(owned["metadata"])}

    def _merged(self, served: Served, old: Manifest | None, config: Manifest, call: Call, subresource: str) -> Manifest:
        resource = served.resource
        now = meta.stamp(self.clock())
        if old is not None:
            self._check_version(served, config, old, applied=True)
        if call.size >= LARGE_BYTES:
            check_owned_fields(served, config, old)
        try:
            return server_side_apply.apply(
                old,
                config,
                manager=call.manager,
                force=call.force,
                api_version=resource.api_version,
                now=now,
                shape=served.shape,
                subresource=subresource,
                zero=served.zero,
                ignored=STATUS if served.resource.subresource("status") and not subresource else None,
            )
        except PatchError as error:
            namespace, name = (config["metadata"].get(field, "") for field in ("namespace", "name"))
            group = f"{resource.group}/{resource.version}, Kind={resource.kind}"
            which = f"{namespace}/{name}; {group}"
            raise status_errors.internal(f"failed to create typed patch object ({which}): {error.message}") from error

    def _check_version(self, served: Served, sent: Manifest, old: Manifest, *, applied: bool) -> None:
        """k8s: some kinds, and all custom ones, can only be updated with a resourceVersion."""
        version, before = meta.version_of(sent.get("metadata") or {}), old["metadata"]
        if not version and not applied and not served.unconditional:
            detail = field_error.invalid("metadata.resourceVersion", "0x0", "must be specified for an update")
            raise status_errors.invalid(served.resource, before["name"], [detail], kind=served.resource.plural)
        if version and version != before["resourceVersion"]:
            raise status_errors.conflict(served.resource, before["name"])

    def _check_place(self, served: Served, namespace: str, name: str) -> None:
        if self.catalog.is_terminating(served):
            raise status_errors.terminating_definition(served.resource)
        self.admission.check_namespace(served, namespace, name)

    async def _check_rules(self, served: Served, new: Manifest, old: Manifest | None) -> bool:
        """Check CEL rules. Returns True if there were any: other requests may have written meanwhile."""
        if served.bucket == DEFINITIONS and (old is None or old["spec"] != new["spec"]):
            if faults := await self._rules.definition_faults(new, old):
                raise status_errors.invalid(served.resource, new["metadata"]["name"], faults)
            return True
        if not isinstance(served, Custom) or not served.kind.has_rules:
            return False
        if faults := await self._rules.faults(served.kind, new, old):
            raise status_errors.invalid(served.resource, new["metadata"]["name"], faults)
        return True

    def unstored(self, served: Served, namespace: str, manifest: Manifest) -> Entry:
        """The entry that would have been written, for dry runs and removed objects."""
        stored = without_kind(served.store(manifest))
        if not stored["metadata"].get("resourceVersion"):
            stored["metadata"] = {k: v for k, v in stored["metadata"].items() if k != "resourceVersion"}
        return Entry(namespace, manifest["metadata"]["name"], self.store.revision, orjson.dumps(stored))
