"""Whether an Application may be delivered at all, before it is written.

In: a desk, a manifest. Out: nothing, or an error that names the rule. Never: reads Git: the engine may see other hosts
than this machine does.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import ClusterError, PolicyError, UserError
from argosy.gitops.application import read_application
from argosy.gitops.application_client.client import Desk
from argosy.gitops.policy.projects import violations
from argosy.gitops.reconciler.settings_watch import PROJECT

ANYWAY = "write it all the same with --validate=false"


async def check_project(desk: Desk, manifest: dict[str, Any]) -> None:
    """argo: a project that does not exist, or does not permit it, is refused."""
    from argosy.gitops.application_client.reader import open_reader

    app = read_application(manifest)
    try:
        await desk.cluster.list(PROJECT, namespace=desk.control)
    except ClusterError:
        return  # who may not see projects leaves it to the engine
    async with open_reader(desk) as reader:
        project = reader.rules.projects.get(app.project)
        app = reader.rules.clusters.placed(app)  # a rule may be about a cluster's name or its address
    if project is None and app.project == "default":
        return  # the engine makes it
    found = violations(project, app, control_namespace=desk.control)
    if project is None:
        raise UserError(f"{found[0]}; argosy proj list shows those that do; {ANYWAY}")
    if found:
        raise PolicyError(f"{', '.join(found)}; see it with: argosy proj list, or {ANYWAY}")
