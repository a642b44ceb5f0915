"""What belongs to an Application, and may be touched through it: in its tree, and permitted by its project.

In: a reader, an Application. Out: live manifests. Never: one of which either is not so; judges how it fares.
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
    """The Application has no such object, or its project does not permit it: nobody is told which."""


async def belongings(reader: Reader, app: Application) -> Iterator[Manifest]:
    """Parents before what came of them."""
    reader.check(app)
    keys = [row.key for row in rows(app)]
    await reader.load(keys)
    await reader.load_namespaces({key.namespace for key in keys if key.namespace})
    allowed = permission(app, reader.project(app), reader.rules, await reader.kinds())
    managed = {key: found for key in keys if (found := reader.cache.get(key)) is not None}
    return walk(reader.cache, managed, allowed)


async def belonging(reader: Reader, app: Application, choice: Choice) -> Manifest:
    """The one that is named. Raises NotIts."""
    if not choice.kind or not choice.name:
        raise UserError("no object is named; say its kind and resourceName", where="resourceName")
    wanted = (choice.group, choice.kind, choice.namespace, choice.name)
    for manifest in await belongings(reader, app):
        if key_of(manifest) == wanted:
            return manifest
    named = f"{choice.kind} {choice.group} {choice.name}".replace("  ", " ")
    # argo: its words
    raise NotIts(f"{named} not found as part of application {app.name}; see what it has: argosy app tree {app.name}")
