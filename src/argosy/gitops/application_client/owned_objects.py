"""Finds the live objects that an Application owns: in its tree and permitted by its project.

In: a reader, an Application. Out: live manifests. Never: returns an object that fails one of the two; assesses health.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.resource_actions import Choice
from argosy.gitops.application_client.summary import rows
from argosy.gitops.live import walk
from argosy.gitops.reconciler.permissions import permission
from argosy.kube.objects import Manifest, key_of


class NotIts(UserError):
    """The Application has no such object, or its project forbids it; the message does not say which."""


async def belongings(reader: Reader, app: Application) -> Iterator[Manifest]:
    """Walk the tree, parents before children."""
    reader.check(app)
    keys = [row.key for row in rows(app)]
    await reader.load(keys)
    await reader.load_namespaces({key.namespace for key in keys if key.namespace})
    allowed = permission(app, reader.project(app), reader.rules, await reader.kinds())
    managed = {key: found for key in keys if (found := reader.cache.get(key)) is not None}
    return walk(reader.cache, managed, allowed)


async def belonging(reader: Reader, app: Application, choice: Choice) -> Manifest:
    """Return the named object. Raises NotOwnedObject."""
    if not choice.kind or not choice.name:
        raise UserError("no object given; set kind and resourceName", where="resourceName")
    wanted = (choice.group, choice.kind, choice.namespace, choice.name)
    for manifest in await belongings(reader, app):
        if key_of(manifest) == wanted:
            return manifest
    named = f"{choice.kind} {choice.group} {choice.name}".replace("  ", " ")
    # argo: same message
    raise NotIts(f"{named} not found as part of application {app.name}; list them: argosy app tree {app.name}")
