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

from argosy.kube.client import PatchKind, User
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.patch.managed_fields import keep_live_if_only_times_differ
from argosy.kube.schema import field_error
from argosy.kube.schema.field_error import FieldError
from argosy.sandbox.apiserver import ephemeral_containers, status_errors, undecodable_patch_result_errors
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver.admission import AdmissionChain
from argosy.sandbox.apiserver.authorization import AccessChecker, Attributes
from argosy.sandbox.apiserver.cel_rules import CelRuleEvaluator
from argosy.sandbox.apiserver.field_ownership import merge_applied, record_creator, record_owner
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind, CustomApiKind
from argosy.sandbox.apiserver.metadata import Clock, utc_now
from argosy.sandbox.apiserver.off_loop_work import LARGE_BYTES, OffLoopExecutor
from argosy.sandbox.apiserver.request_body_decoding_and_patches import (
    UndecodableBody,
    apply_patch,
    check_apply_configuration,
    decode_object,
    has_copy_operation,
)
from argosy.sandbox.apiserver.resource_catalog import CRD_BUCKET, ResourceCatalog
from argosy.sandbox.apiserver.storage_encoding_and_size_check import (
    build_encoder,
    check_changed_size,
    check_managed_fields_size,
    check_size,
    drop_type_meta,
    is_removable,
)
from argosy.sandbox.apiserver.write_call_and_result_types import RegistryCall, WriteResult
from argosy.sandbox.store import Store, StoreEntry

PARTIAL_SUBRESOURCES = ("status", ephemeral_containers.SUBRESOURCE)  # subresources that change one part of an object
MAX_LARGE_ATTEMPTS = 5  # k8s: how often a patch is retried on write conflicts
WHOLE_OBJECT_SUBRESOURCES = ("binding", "finalize", "approval")
Result = TypeVar("Result")
ChangeFunction = Callable[[Manifest], tuple[Manifest, Sequence[str]]]


class Registry:
    def __init__(
        self,
        store: Store,
        catalog: ResourceCatalog,
        access: AccessChecker,
        rules: CelRuleEvaluator,
        *,
        clock: Clock = utc_now,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.access = access
        self.clock = clock
        self._cel_rules = rules
        self.admission = AdmissionChain(store, catalog)
        self.off_loop_executor = OffLoopExecutor()

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, served: ApiKind, namespace: str, name: str, user: User, *, subresource: str = "") -> StoreEntry:
        self.authorize(user, "get", served, namespace, name, subresource)
        entry = self.store.get(served.bucket, namespace, name)
        if entry is None:
            raise status_errors.not_found(served.resource, name)
        return entry

    def authorize(
        self, user: User, verb: str, served: ApiKind, namespace: str, name: str = "", subresource: str = ""
    ) -> None:
        resource = served.resource
        if (resource.group, resource.plural) == ("", "namespaces"):
            namespace = name  # k8s: a namespace counts as inside itself, so a Role in it can allow reading it
        attributes = Attributes(verb, resource.group, resource.plural, subresource, namespace, name)
        self.access.require(user, attributes)

    # -- creating ------------------------------------------------------------------------------------------------

    async def create(
        self, served: ApiKind, namespace: str, body: Any, call: RegistryCall, *, name: str = ""
    ) -> WriteResult:
        self.authorize(call.user, "create", served, namespace, name)
        manifest, warnings = await self._run_off_loop(call, call.body_bytes, self._decode, served, body, call)
        if call.body_bytes >= LARGE_BYTES:
            await self._run_off_loop(call, call.body_bytes, check_managed_fields_size, served, manifest)
        return await self._create(served, namespace, manifest, call, warnings)

    async def _create(
        self, served: ApiKind, namespace: str, manifest: Manifest, call: RegistryCall, warnings: Sequence[str], *,
        is_apply: bool = False,
    ) -> WriteResult:  # fmt: skip
        resource, now = served.resource, self.clock()
        metadata = meta.build_create_metadata(served, manifest, namespace, now)
        self._check_can_create(served, namespace, metadata["name"])
        run_off_loop = partial(self._run_off_loop, call, call.body_bytes)
        sent_manifest = await run_off_loop(served.apply_defaults, {**manifest, "metadata": metadata})
        new = self.admission.mutate(served, await run_off_loop(served.prepare_create, sent_manifest))
        if not is_apply:
            new = await run_off_loop(record_creator, served, sent_manifest, new, call, self.clock)
        new = self.admission.run_admitters(served, new, None, format_timestamp(now))
        name = new["metadata"]["name"]
        self.access.authorizer.check_escalation(call.user, resource, new, request_name=name if is_apply else "")
        if field_errors := [
            *await run_off_loop(served.validate_create, new),
            *self.admission.validate(served, new, None),
        ]:
            raise status_errors.invalid(resource, name, field_errors)
        if call.body_bytes >= LARGE_BYTES:
            await run_off_loop(check_size, served, new)
        if await self._run_cel_rules_if_any(served, new, None) or call.body_bytes >= LARGE_BYTES:
            self._check_can_create(served, namespace, name)  # the namespace or CRD may be gone by now
            if self.admission.validate(served, new, None):  # a concurrent write took the same address
                return await self._create(served, namespace, manifest, call, warnings, is_apply=is_apply)
        if (existing := self.store.get_latest(served.bucket, namespace, name)) is not None:
            if not manifest.get("metadata", {}).get("name") and not call.dry_run:  # the generated name is already used
                return await self._create(served, namespace, manifest, call, warnings, is_apply=is_apply)
            is_terminating = bool(served.read_entry(existing)["metadata"].get("deletionTimestamp"))
            raise status_errors.already_exists(resource, name, is_terminating=is_terminating)
        self.admission.check_quotas(served, new)
        warnings = [*warnings, *self.admission.list_warnings(served, new)]
        if call.dry_run:
            return WriteResult(
                served, self.build_unstored_entry(served, namespace, new), is_created=True, warnings=warnings
            )
        commit = self.store.put(served.bucket, namespace, name, build_encoder(served.to_stored(new)))
        self.admission.on_staged(served, new)
        entry = await commit
        return WriteResult(served, entry, is_created=True, warnings=warnings)

    # -- changing ------------------------------------------------------------------------------------------------

    async def update(
        self, served: ApiKind, namespace: str, name: str, body: Any, call: RegistryCall, *, subresource: str = ""
    ) -> WriteResult:
        self.authorize(call.user, "update", served, namespace, name, subresource)

        def replace_manifest(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            requested, warnings = self._decode(served, body, call)
            if uid := (requested.get("metadata") or {}).get("uid"):
                meta.check_uid(served, old, uid)
            return requested, warnings

        return await self.read_modify_write(served, namespace, name, replace_manifest, call, subresource)

    async def patch(
        self, served: ApiKind, namespace: str, name: str, patch: Any, kind: PatchKind, call: RegistryCall, *,
        subresource: str = "",
    ) -> WriteResult:  # fmt: skip
        self.authorize(call.user, "patch", served, namespace, name, subresource)
        if has_copy_operation(patch):  # a small patch may create a large object
            call = replace(call, body_bytes=max(call.body_bytes, LARGE_BYTES))

        def apply_to_live(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            result = apply_patch(served, old, patch, kind)
            try:
                return self._decode(served, result, call)
            except UndecodableBody as error:
                raise undecodable_patch_result_errors.build_undecodable_patch_error(
                    kind, patch, result, error.detail
                ) from error

        return await self.read_modify_write(served, namespace, name, apply_to_live, call, subresource)

    async def apply(
        self, served: ApiKind, namespace: str, name: str, config: Any, call: RegistryCall, *, subresource: str = ""
    ) -> WriteResult:
        """Server-side apply: merge the configuration with the live object and its field owners."""
        self.authorize(call.user, "patch", served, namespace, name, subresource)
        config = check_apply_configuration(served, config, subresource)
        if self.store.get_latest(served.bucket, namespace, name) is None and not subresource:
            self.authorize(call.user, "create", served, namespace, name)
            meta.check_name(config["metadata"], name)
            if uid := config["metadata"].get("uid"):
                reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise status_errors.conflict(served.resource, name, reason)
            metadata = {field: value for field, value in config["metadata"].items() if field != "resourceVersion"}
            config = {**config, "metadata": metadata}

            def merge_new() -> tuple[Manifest, Sequence[str]]:
                return self._decode(served, merge_applied(served, None, config, call, self.clock), call)

            manifest, warnings = await self._run_off_loop(call, call.body_bytes, merge_new)
            return await self._create(served, namespace, manifest, call, warnings, is_apply=True)

        def merge_with_live(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            self._check_resource_version(served, config, old, is_apply=True)
            merged = merge_applied(served, old, config, call, self.clock, subresource)
            return self._decode(served, merged, call)

        return await self.read_modify_write(served, namespace, name, merge_with_live, call, subresource, is_apply=True)

    async def read_modify_write(
        self,
        served: ApiKind,
        namespace: str,
        name: str,
        change: ChangeFunction,
        call: RegistryCall,
        subresource: str,
        *,
        is_apply: bool = False,
    ) -> WriteResult:
        """Read an object, change it and store it. `change` returns the requested manifest and warnings.

        `change` must be pure: for a large object it runs off the loop, and again if another write came first.
        """
        for attempt in itertools.count(1):
            entry = self.store.get_latest(served.bucket, namespace, name)
            if entry is None:
                raise status_errors.not_found(served.resource, name)
            size = max(call.body_bytes, len(entry.body))
            run_off_loop = partial(self._run_off_loop, call, size)

            def prepare(entry: StoreEntry = entry) -> tuple[Manifest, Manifest, Sequence[str]]:
                old = served.read_entry(entry)
                requested, warnings = change(old)
                self._check_resource_version(served, requested, old, is_apply=is_apply)
                return old, self._prepare_update(served, requested, old, subresource), warnings

            old, new, warnings = await run_off_loop(prepare)
            if has_admission := subresource not in (*PARTIAL_SUBRESOURCES, *WHOLE_OBJECT_SUBRESOURCES):
                new = self.admission.mutate(served, new, old)
            if not is_apply:
                new = await run_off_loop(record_owner, served, old, new, call, self.clock, subresource)
            if not subresource:
                new = self.admission.run_admitters(served, new, old, format_timestamp(self.clock()))
            new = await run_off_loop(meta.update_generation, served, new, old)
            self.access.authorizer.check_escalation(call.user, served.resource, new, old=old, request_name=name)
            field_errors = await run_off_loop(self._validate_update, served, new, old, subresource)
            if has_admission:
                field_errors = [*field_errors, *self.admission.validate(served, new, old)]
            if field_errors:
                raise status_errors.invalid(served.resource, name, field_errors)
            await self._run_cel_rules_if_any(served, new, old)
            stored_manifest = await run_off_loop(keep_live_if_only_times_differ, old, new)
            if stored_manifest is not old and size >= LARGE_BYTES:
                await run_off_loop(check_changed_size, served, stored_manifest, entry)
            is_taken = has_admission and size >= LARGE_BYTES and self.admission.validate(served, new, old)
            if self.store.get_latest(served.bucket, namespace, name) is entry and not is_taken:  # else: write conflict
                warnings = warnings if subresource else [*warnings, *self.admission.list_warnings(served, new)]
                return await self._store_change(served, entry, old, new, stored_manifest, call, warnings)
            if size >= LARGE_BYTES and attempt >= MAX_LARGE_ATTEMPTS:
                raise status_errors.conflict(served.resource, name)
        raise AssertionError("unreachable")

    def _prepare_update(self, served: ApiKind, requested: Manifest, old: Manifest, subresource: str) -> Manifest:
        new = {**requested, "metadata": meta.build_update_metadata(served, requested, old)}
        if subresource == "status":
            new = served.prepare_status(new, old)
            return {**new, "metadata": meta.order_metadata(new["metadata"])}
        if subresource in WHOLE_OBJECT_SUBRESOURCES:
            return new  # the subresource handler decided what changes
        if subresource == ephemeral_containers.SUBRESOURCE:
            return ephemeral_containers.keep_only_ephemeral_containers(served.apply_defaults(new), old)
        return served.prepare_update(served.apply_defaults(new), old)

    async def _store_change(
        self,
        served: ApiKind,
        entry: StoreEntry,
        old: Manifest,
        new: Manifest,
        stored_manifest: Manifest,
        call: RegistryCall,
        warnings: Sequence[str],
    ) -> WriteResult:
        """k8s: a change without effect writes nothing; a terminating object without finalizers is removed."""
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp") and is_removable(new):
            if not call.dry_run:
                await self.remove(served, entry, new)
            return WriteResult(served, self.build_unstored_entry(served, entry.namespace, new), warnings=warnings)
        if stored_manifest is old:
            await self.store.wait_until_durable()  # a response must be durable, also if another request wrote it
            return WriteResult(served, entry, warnings=warnings)
        if call.dry_run:
            return WriteResult(
                served, self.build_unstored_entry(served, entry.namespace, stored_manifest), warnings=warnings
            )
        body = build_encoder(served.to_stored(stored_manifest))
        commit = self.store.put(served.bucket, entry.namespace, entry.name, body)
        self.admission.on_staged(served, stored_manifest)
        stored_entry = await commit
        return WriteResult(served, stored_entry, warnings=warnings)

    async def remove(self, served: ApiKind, entry: StoreEntry, last_state: Manifest) -> StoreEntry:
        """Remove the object; watches get its last state with the revision of the deletion."""
        commit = self.store.remove(
            served.bucket, entry.namespace, entry.name, build_encoder(served.to_stored(last_state))
        )
        self.admission.on_staged(served, last_state, is_deleted=True)
        return await commit

    def _validate_update(self, served: ApiKind, new: Manifest, old: Manifest, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return served.validate_status(new, old)
        if subresource in WHOLE_OBJECT_SUBRESOURCES:
            return ()
        if subresource == ephemeral_containers.SUBRESOURCE:
            return ephemeral_containers.validate_update(new, old)
        return served.validate_update(new, old)

    async def _run_off_loop(self, call: RegistryCall, size: int, function: Callable[..., Result], *args: Any) -> Result:
        """Run a pure function; off the loop if the object is large."""
        return await self.off_loop_executor.run(call.user.name, size, function, *args)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _decode(self, served: ApiKind, body: Any, call: RegistryCall) -> tuple[Manifest, Sequence[str]]:
        resource = served.resource
        manifest, warnings = decode_object(served, body, call.validation, call.duplicates)
        for field, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
            manifest.setdefault(field, expected)
        return manifest, warnings

    def _check_resource_version(self, served: ApiKind, requested: Manifest, old: Manifest, *, is_apply: bool) -> None:
        """k8s: some kinds, and all custom ones, can only be updated with a resourceVersion."""
        version, old_metadata = meta.read_resource_version(requested.get("metadata") or {}), old["metadata"]
        if not version and not is_apply and not served.allows_unconditional_update:
            detail = field_error.invalid("metadata.resourceVersion", "0x0", "must be specified for an update")
            raise status_errors.invalid(served.resource, old_metadata["name"], [detail], kind=served.resource.plural)
        if version and version != old_metadata["resourceVersion"]:
            raise status_errors.conflict(served.resource, old_metadata["name"])

    def _check_can_create(self, served: ApiKind, namespace: str, name: str) -> None:
        if self.catalog.is_terminating(served):
            raise status_errors.crd_terminating(served.resource)
        self.admission.check_namespace(served, namespace, name)

    async def _run_cel_rules_if_any(self, served: ApiKind, new: Manifest, old: Manifest | None) -> bool:
        """Check CEL rules. Returns True if there were any: other requests may have written meanwhile."""
        if served.bucket == CRD_BUCKET and (old is None or old["spec"] != new["spec"]):
            if field_errors := await self._cel_rules.validate_definition(new, old):
                raise status_errors.invalid(served.resource, new["metadata"]["name"], field_errors)
            return True
        if not isinstance(served, CustomApiKind) or not served.kind.has_rules:
            return False
        if field_errors := await self._cel_rules.validate(served.kind, new, old):
            raise status_errors.invalid(served.resource, new["metadata"]["name"], field_errors)
        return True

    def build_unstored_entry(self, served: ApiKind, namespace: str, manifest: Manifest) -> StoreEntry:
        """The entry that would have been written, for dry runs and removed objects."""
        stored = drop_type_meta(served.to_stored(manifest))
        if not stored["metadata"].get("resourceVersion"):
            stored["metadata"] = {k: v for k, v in stored["metadata"].items() if k != "resourceVersion"}
        return StoreEntry(namespace, manifest["metadata"]["name"], self.store.revision, orjson.dumps(stored))
