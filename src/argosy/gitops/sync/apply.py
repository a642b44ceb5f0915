"""Applies one desired manifest to the cluster, as kubectl would.

In: a key, a desired and a live manifest, and apply options. Out: the live object and kubectl's message. Raises
ClusterError. Never: writes an object that is up to date; waits: if the old object must be deleted first, it is tried
again later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from argosy.annotations import FIELD_MANAGER
from argosy.errors import ClusterError, Conflict, Invalid, PatchError
from argosy.gitops.sync import client_side_patch
from argosy.gitops.sync.client_side_patch import placed, with_last_applied
from argosy.gitops.sync.managed_fields_migration import migration
from argosy.gitops.sync.operation_terms import DEFINITION, REPLACER, How
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

ROUNDS: Final = 5  # attempts after write conflicts
_UPDATED: Final = frozenset({DEFINITION, ("", "Namespace")})
_BINDINGS: Final = frozenset(("rbac.authorization.k8s.io", kind) for kind in ("RoleBinding", "ClusterRoleBinding"))


@dataclass(frozen=True, slots=True)
class Applied:
    live: Manifest | None
    message: str
    is_waiting: bool = False  # until the old object is deleted
    is_unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """One manifest to apply."""

    key: ResourceKey
    desired: Manifest
    live: Manifest | None
    how: How
    since: str  # start of the operation

    @property
    def name(self) -> str:
        """k8s: the name as kubectl prints it."""
        group = f".{self.key.group}" if self.key.group else ""
        return f"{self.key.kind.lower()}{group}/{self.key.name}"


def would_apply(wish: Wish) -> str:
    """Do kubectl's client-side dry run: return its message, or raise its error."""
    desired = placed(wish.desired, wish.key)
    if wish.how.validates:
        client_side_patch.check(desired)
    if wish.live is None:
        return f"{wish.name} created (dry run)"
    if wish.how.replaces:
        return f"{wish.name} replaced (dry run)"
    if wish.live.get("apiVersion") != desired["apiVersion"]:
        return f"{wish.name} configured (dry run)"
    patch = _patch(with_last_applied(desired), wish.live)
    return f"{wish.name} {'configured' if patch else 'unchanged'} (dry run)"


async def apply(wish: Wish, cluster: Cluster) -> Applied:
    wish = replace(wish, desired=placed(wish.desired, wish.key))
    for left in reversed(range(ROUNDS)):
        try:
            return await _applied(wish, cluster)
        except ClusterError as error:
            if left and _is_outdated(error, wish):
                wish = replace(wish, live=await cluster.get(wish.key))
            elif isinstance(error, Conflict) and _may_force(wish):
                return await _recreated(wish, cluster)
            else:
                raise
    raise AssertionError("the last attempt returns or raises")


def _is_outdated(error: ClusterError, wish: Wish) -> bool:
    """True if the live manifest that we know is outdated."""
    return isinstance(error, Conflict) or (error.code == 404 and wish.live is not None)


def _may_force(wish: Wish) -> bool:
    """k8s: `kubectl apply --force` recreates objects that are refused as invalid, or that stay in conflict."""
    return wish.how.forces and wish.how.may_recreate and wish.live is not None


async def _applied(wish: Wish, cluster: Cluster) -> Applied:
    try:
        if wish.how.replaces:
            return await _replaced(wish, cluster)
        if wish.how.on_server:
            return await _server_side(wish, cluster)
        return await _client_side(wish, cluster)
    except Invalid:
        if _may_force(wish):
            return await _recreated(wish, cluster)
        raise


async def _client_side(wish: Wish, cluster: Cluster) -> Applied:
    modified = with_last_applied(wish.desired)
    if wish.live is None:
        return Applied(await cluster.create(modified, manager=FIELD_MANAGER), f"{wish.name} created")
    if _binds_otherwise(wish):
        return await _recreated(wish, cluster)
    if wish.live.get("apiVersion") != modified["apiVersion"]:
        # A patch cannot address fields that have other names in the version that was read; a server-side apply
        # converts.
        await _inherit(wish, cluster, FIELD_MANAGER)
        made = await cluster.apply(modified, manager=FIELD_MANAGER, force=True)
        return Applied(made, f"{wish.name} configured")
    patch = _patch(modified, wish.live)
    if not patch:
        return Applied(wish.live, f"{wish.name} unchanged", is_unchanged=True)
    kind = PatchKind.MERGE if client_side_patch.shape_of(modified) is None else PatchKind.STRATEGIC
    version = str(modified["apiVersion"])
    made = await cluster.patch(wish.key, patch, kind_of_patch=kind, manager=FIELD_MANAGER, api_version=version)
    return Applied(made, f"{wish.name} configured")


def _binds_otherwise(wish: Wish) -> bool:
    """argo: the roleRef of a binding is immutable, so a binding with another role is recreated without `force`."""
    wanted = wish.desired.get("roleRef")
    return wish.key.group_kind in _BINDINGS and not client_side_patch.holds((wish.live or {}).get("roleRef"), wanted)


def _patch(modified: Manifest, live: Manifest) -> dict[str, Any]:
    try:
        return client_side_patch.patch_of(modified, live)
    except PatchError as error:
        raise ClusterError(str(error), code=400, reason="BadRequest") from error


async def _server_side(wish: Wish, cluster: Cluster) -> Applied:
    await _inherit(wish, cluster, wish.how.migrates)
    made = await cluster.apply(wish.desired, manager=FIELD_MANAGER, force=True)
    return Applied(made, f"{wish.name} serverside-applied")


async def _inherit(wish: Wish, cluster: Cluster, manager: str) -> None:
    """Take over the fields of client-side apply: otherwise they could never be removed."""
    if wish.live is not None and (patch := migration(wish.live, manager, FIELD_MANAGER)):
        await cluster.patch(wish.key, patch, kind_of_patch=PatchKind.JSON, manager=FIELD_MANAGER)


async def _replaced(wish: Wish, cluster: Cluster) -> Applied:
    if wish.live is None:
        return Applied(await cluster.create(wish.desired, manager=REPLACER), f"{wish.name} created")
    if wish.how.forces and wish.how.may_recreate:
        if _is_new(wish.live, wish.since) and client_side_patch.holds(wish.live, wish.desired):
            return Applied(wish.live, f"{wish.name} replaced")  # by this operation, before a restart
        return await _recreated(wish, cluster)
    version = wish.live["metadata"].get("resourceVersion") or ""
    desired = {**wish.desired, "metadata": {**wish.desired["metadata"], "resourceVersion": version}}
    made = await cluster.replace(desired, manager=REPLACER)
    if wish.key.group_kind in _UPDATED:  # argo: updates these kinds instead of replacing them
        return Applied(made, f"{wish.key.kind}/{wish.key.name} updated")
    return Applied(made, f"{wish.name} replaced")


async def _recreated(wish: Wish, cluster: Cluster) -> Applied:
    """Delete and create the object. If finalizers delay the deletion, the creation is tried again later."""
    live = wish.live or {}
    uid = live["metadata"].get("uid")
    if not live["metadata"].get("deletionTimestamp"):
        try:
            await cluster.delete(wish.key, uid=uid)
        except ClusterError as error:
            if error.code != 404:
                raise
    found = await cluster.get(wish.key)
    if found is not None and found["metadata"].get("uid") == uid:
        return Applied(found, f"{wish.name} is being deleted", is_waiting=True)
    made = await _applied(replace(wish, live=None), cluster)
    return Applied(made.live, f"{wish.name} replaced")


def _is_new(live: Manifest, since: str) -> bool:
    created = live["metadata"].get("creationTimestamp")
    if not created or not since:
        return False
    # k8s: creationTimestamp has a resolution of one second
    return datetime.fromisoformat(created) >= datetime.fromisoformat(since).replace(microsecond=0)
