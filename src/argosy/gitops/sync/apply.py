"""Applies one desired manifest to the cluster, as kubectl would.

In: a key, a desired and a live manifest, and apply options. Out: the live object and kubectl's message. Raises
ClusterError. Never: writes an object that is up to date; waits: if the old object must be deleted first, it is tried
again later.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from argosy.annotations import FIELD_MANAGER, LAST_APPLIED
from argosy.errors import ClusterError, Conflict, Invalid, PatchError
from argosy.gitops.sync import client_side_apply_patch_builder
from argosy.gitops.sync.client_side_apply_patch_builder import add_last_applied, set_namespace
from argosy.gitops.sync.effective_apply_and_prune_options import REPLACE_FIELD_MANAGER, ApplyOptions
from argosy.gitops.sync.managed_fields_migration import build_migration_patch
from argosy.gitops.sync.role_reconciliation import BINDING_KINDS, describe_reconciliation, is_reconciled
from argosy.gitops.sync.secret_error_redaction import redact_secret_error
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.merge_patch import remove_nulls
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CRD

_GO_MAP: Final = re.compile(r"map\[.*\]")
MAX_CONFLICT_ATTEMPTS: Final = 5  # attempts after write conflicts
_UPDATED_KINDS: Final = frozenset({CRD, ("", "Namespace")})


@dataclass(frozen=True, slots=True)
class ApplyResult:
    live: Manifest | None
    message: str
    is_waiting: bool = False  # until the old object is deleted
    is_unchanged: bool = False


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """One manifest to apply."""

    key: ResourceKey
    desired: Manifest
    live: Manifest | None
    options: ApplyOptions
    operation_started: str  # start of the operation

    @property
    def kubectl_name(self) -> str:
        """k8s: the name as kubectl prints it."""
        group = f".{self.key.group}" if self.key.group else ""
        return f"{self.key.kind.lower()}{group}/{self.key.name}"


def dry_run_apply(request: ApplyRequest) -> str:
    """Do kubectl's client-side dry run: return its message, or raise its error."""
    desired = set_namespace(request.desired, request.key)
    _check_name(request)
    if not request.options.replace and is_reconciled(request.key.group_kind, desired):
        reconciled = describe_reconciliation(request.kubectl_name, desired, request.live, dry_run=True)
        return f"{reconciled}{_dry_run_by_patch(request, desired)}"
    return _dry_run_by_patch(request, desired)


def _dry_run_by_patch(request: ApplyRequest, desired: Manifest) -> str:
    if request.live is None:
        return f"{request.kubectl_name} created (dry run)"
    if request.options.replace:
        return f"{request.kubectl_name} replaced (dry run)"
    if request.live.get("apiVersion") != desired["apiVersion"]:
        return f"{request.kubectl_name} configured (dry run)"
    patch = _build_patch(add_last_applied(desired), request.live)
    return f"{request.kubectl_name} {'configured' if patch else 'unchanged'} (dry run)"


def _check_name(request: ApplyRequest) -> None:
    """k8s: only `kubectl create` generates names, which Argo CD runs with Replace=true."""
    metadata = request.desired["metadata"]
    if not metadata.get("name") and not request.options.replace:
        message = "resource name may not be empty; add metadata.name"
        if metadata.get("generateName"):
            message = f"from {metadata['generateName']}: cannot use generate name with apply"
        raise ClusterError(message, code=400, reason="BadRequest")


async def apply_manifest(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    """Apply the manifest. Raises ClusterError, which quotes no value of a Secret."""
    try:
        return await _apply_with_retries(request, cluster)
    except ClusterError as error:
        redacted = redact_secret_error(error, request.desired)
        # argo: maps are cut out of the errors of kubectl
        raise _change_message(redacted, _GO_MAP.sub("", redacted.message)) from None


async def _apply_with_retries(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    request = replace(request, desired=set_namespace(request.desired, request.key))
    for attempts_left in reversed(range(MAX_CONFLICT_ATTEMPTS)):
        try:
            return await _apply_once(request, cluster)
        except ClusterError as error:
            if attempts_left and _is_live_outdated(error, request):
                request = replace(request, live=await cluster.get(request.key))
            elif isinstance(error, Conflict) and _may_recreate(request):
                return await _recreate(request, cluster)
            else:
                raise
    raise AssertionError("the last attempt returns or raises")


def _is_live_outdated(error: ClusterError, request: ApplyRequest) -> bool:
    """True if the live manifest that we know is outdated."""
    return isinstance(error, Conflict) or (error.code == 404 and request.live is not None)


def _may_recreate(request: ApplyRequest) -> bool:
    """k8s: `kubectl apply --force` recreates objects that are refused as invalid, or that stay in conflict."""
    return request.options.force and request.options.may_recreate and request.live is not None


async def _apply_once(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    try:
        if request.options.replace:
            return await _replace(request, cluster)
        _check_name(request)
        if request.options.server_side:
            return await _apply_server_side(request, cluster)
        if is_reconciled(request.key.group_kind, request.desired):
            return await _apply_role(request, cluster)
        return await _apply_client_side(request, cluster)
    except Invalid:
        if _may_recreate(request):
            return await _recreate(request, cluster)
        raise


async def _apply_role(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    """argo: a role or binding is created by `kubectl auth reconcile`, and then applied."""
    reconciled = describe_reconciliation(request.kubectl_name, request.desired, request.live, dry_run=False)
    warning = ""
    if request.live is None:
        created = await cluster.create(remove_nulls(request.desired), manager=REPLACE_FIELD_MANAGER)
        applied = await _apply_client_side(replace(request, live=created), cluster)
    elif _has_new_role_ref(request):
        applied = await _recreate(request, cluster)
        warning = "" if applied.is_waiting else await _format_annotation_warning(request, cluster)
    else:
        applied = await _apply_client_side(request, cluster)
    return replace(applied, message=f"{reconciled}{applied.message}{warning}")


async def _apply_client_side(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    modified = add_last_applied(request.desired)
    if request.live is None:
        created = await cluster.create(remove_nulls(modified), manager=FIELD_MANAGER)  # k8s: as `kubectl apply` does
        return ApplyResult(created, f"{request.kubectl_name} created")
    if request.live.get("apiVersion") != modified["apiVersion"]:
        # A patch cannot address fields that have other names in the version that was read; a server-side apply
        # converts.
        await _migrate_managed_fields(request, cluster, FIELD_MANAGER)
        applied = await cluster.apply(modified, manager=FIELD_MANAGER, force=True)
        return ApplyResult(applied, f"{request.kubectl_name} configured")
    patch = _build_patch(modified, request.live)
    if not patch:
        return ApplyResult(request.live, f"{request.kubectl_name} unchanged", is_unchanged=True)
    kind = (
        PatchKind.MERGE if client_side_apply_patch_builder.find_manifest_type(modified) is None else PatchKind.STRATEGIC
    )
    version = str(modified["apiVersion"])
    with _errors_of_kubectl("patching"):
        applied = await cluster.patch(
            request.key, patch, kind_of_patch=kind, manager=FIELD_MANAGER, api_version=version
        )
    warning = ""
    if LAST_APPLIED not in (request.live["metadata"].get("annotations") or {}):
        warning = await _format_annotation_warning(request, cluster)
    return ApplyResult(applied, f"{request.kubectl_name} configured{warning}")


async def _format_annotation_warning(request: ApplyRequest, cluster: Cluster) -> str:
    """k8s: the warning of `kubectl apply` for an object that it did not create. argo: it is part of the message."""
    kind_info = (await cluster.kinds()).get(request.key.group_kind)
    plural = kind_info.plural if kind_info is not None else request.key.kind.lower()
    return (
        f". Warning: resource {plural}/{request.key.name} is missing the {LAST_APPLIED} annotation which is required"
        " by  apply.  apply should only be used on resources created declaratively by either  create --save-config or"
        "  apply. The missing annotation will be patched automatically."
    )


@contextmanager
def _errors_of_kubectl(verb: str) -> Iterator[None]:
    """k8s: kubectl names the file that it read; it reads a manifest that is piped into it from STDIN."""
    try:
        yield
    except ClusterError as error:
        raise _change_message(error, f'error when {verb} "STDIN": {error.message}') from None


def _change_message(error: ClusterError, message: str) -> ClusterError:
    changed = copy.copy(error)
    changed.message, changed.args = message, (message,)
    return changed


def _has_new_role_ref(request: ApplyRequest) -> bool:
    """argo: the roleRef of a binding is immutable, so a binding with another role is recreated without `force`."""
    role_ref = request.desired.get("roleRef")
    return request.key.group_kind in BINDING_KINDS and not client_side_apply_patch_builder.contains_desired(
        (request.live or {}).get("roleRef"), role_ref
    )


def _build_patch(modified: Manifest, live: Manifest) -> dict[str, Any]:
    try:
        return client_side_apply_patch_builder.build_apply_patch(modified, live)
    except PatchError as error:
        raise ClusterError(str(error), code=400, reason="BadRequest") from error


async def _apply_server_side(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    await _migrate_managed_fields(request, cluster, request.options.migrated_manager)
    applied = await cluster.apply(request.desired, manager=FIELD_MANAGER, force=True)
    return ApplyResult(applied, f"{request.kubectl_name} serverside-applied")


async def _migrate_managed_fields(request: ApplyRequest, cluster: Cluster, manager: str) -> None:
    """Take over the fields of client-side apply: otherwise they could never be removed."""
    if request.live is not None and (patch := build_migration_patch(request.live, manager, FIELD_MANAGER)):
        await cluster.patch(request.key, patch, kind_of_patch=PatchKind.JSON, manager=FIELD_MANAGER)


async def _replace(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    if request.live is None:
        created = await cluster.create(request.desired, manager=REPLACE_FIELD_MANAGER)
        return ApplyResult(created, f"{replace(request, key=key_of(created)).kubectl_name} created")
    if request.options.force and request.options.may_recreate:
        if _is_created_since(
            request.live, request.operation_started
        ) and client_side_apply_patch_builder.contains_desired(request.live, request.desired):
            return ApplyResult(request.live, _format_recreated(request))  # by this operation, before a restart
        recreated = await _recreate(request, cluster)
        return recreated if recreated.is_waiting else replace(recreated, message=_format_recreated(request))
    version = request.live["metadata"].get("resourceVersion") or ""
    desired = {**request.desired, "metadata": {**request.desired["metadata"], "resourceVersion": version}}
    if request.key.group_kind in _UPDATED_KINDS:  # argo: updates these kinds instead of replacing them
        updated = await cluster.replace(desired, manager=REPLACE_FIELD_MANAGER)
        return ApplyResult(updated, f"{request.key.kind}/{request.key.name} updated")
    with _errors_of_kubectl("replacing"):
        replaced = await cluster.replace(desired, manager=REPLACE_FIELD_MANAGER)
    return ApplyResult(replaced, f"{request.kubectl_name} replaced")


async def _recreate(request: ApplyRequest, cluster: Cluster) -> ApplyResult:
    """Delete and create the object. If finalizers delay the deletion, the creation is tried again later."""
    live = request.live or {}
    uid = live["metadata"].get("uid")
    if not live["metadata"].get("deletionTimestamp"):
        try:
            await cluster.delete(request.key, uid=uid)
        except ClusterError as error:
            if error.code != 404:
                raise
    remaining = await cluster.get(request.key)
    if remaining is not None and remaining["metadata"].get("uid") == uid:
        return ApplyResult(remaining, f"{request.kubectl_name} is being deleted", is_waiting=True)
    recreated = await _apply_once(replace(request, live=None), cluster)
    return ApplyResult(recreated.live, f"{request.kubectl_name} configured")  # k8s: as `kubectl apply --force` says


def _format_recreated(request: ApplyRequest) -> str:
    """k8s: the output of `kubectl replace --force`."""
    kind = request.kubectl_name.partition("/")[0]
    place = f" from {request.key.namespace} namespace" if request.key.namespace else ""
    return f'{kind} "{request.key.name}" deleted{place}\n{request.kubectl_name} replaced'


def _is_created_since(live: Manifest, since: str) -> bool:
    created = live["metadata"].get("creationTimestamp")
    if not created or not since:
        return False
    # k8s: creationTimestamp has a resolution of one second
    return datetime.fromisoformat(created) >= datetime.fromisoformat(since).replace(microsecond=0)
