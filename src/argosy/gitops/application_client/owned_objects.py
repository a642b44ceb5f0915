"""Finds the live objects that an Application owns: in its tree and permitted by its project.

In: a reader, an Application. Out: live manifests. Never: returns an object that fails one of the two; assesses health.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.live import walk_tree
from argosy.gitops.reconciler.object_permission_and_deletion_check import build_permission_check
from argosy.kube.objects import Manifest, key_of


class NotOwnedObject(UserError):
    """The Application has no such object, or its project forbids it; the message does not say which."""


async def walk_owned_objects(reader: ApplicationReader, app: Application) -> Iterator[Manifest]:
    """Walk the tree, parents before children."""
    reader.check_same_destination(app)
    keys = [row.key for row in list_rows(app)]
    await reader.load_objects(keys)
    await reader.load_namespaces({key.namespace for key in keys if key.namespace})
    is_permitted = build_permission_check(
        app, reader.get_project(app), reader.reconciler_settings, await reader.list_kinds()
    )
    managed = {key: manifest for key in keys if (manifest := reader.cache.get(key)) is not None}
    return walk_tree(reader.cache, managed, is_permitted)


async def load_owned_object(reader: ApplicationReader, app: Application, choice: ObjectSelector) -> Manifest:
    """Return the named object. Raises NotOwnedObject."""
    if not choice.kind or not choice.name:
        raise UserError("no object given; set kind and resourceName", where="resourceName")
    wanted_key = (choice.group, choice.kind, choice.namespace, choice.name)
    for manifest in await walk_owned_objects(reader, app):
        if key_of(manifest) == wanted_key:
            return manifest
    display_name = f"{choice.kind} {choice.group} {choice.name}".replace("  ", " ")
    # argo: same message
    raise NotOwnedObject(
        f"{display_name} not found as part of application {app.name}; list them: argosy app tree {app.name}"
    )
