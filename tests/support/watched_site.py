"""A Site on an embedded cluster with a real cluster view, without an engine and without a socket.

In: a folder, manifests. Out: a Site; requests to call page functions with. Never: mocks a cluster.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.cluster_view.cluster_view import open_cluster_view
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.web.auth.caller import Caller
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site
from support.engine import CONTROL, furnish, shared_crew
from support.page_site import KnownPeople, a_request, anything

HOST = "https://git.test"
ML_KINDS = ("inferenceservices.serving.kserve.io", "notebookvalidationjobs.mlops.mlops.dev")


def project(name: str = "default", *source_repos: str) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {"sourceRepos": list(source_repos or ("*",)), "destinations": [{"server": "*", "namespace": "*"}]},
    }


async def put(cluster: Cluster, manifest: Manifest, part: str = "status") -> Manifest:
    """Create the object, or replace a part of it."""
    key = key_of(manifest)
    subresource = "status" if part == "status" and key.group != "argoproj.io" else ""
    if await cluster.get(key) is None:
        plain = {name: value for name, value in manifest.items() if not subresource or name != "status"}
        created = await cluster.create(plain)
        if not subresource or "status" not in manifest:
            return created
    return await cluster.patch(key, {part: manifest[part]}, subresource=subresource)


@contextlib.asynccontextmanager
async def watched_site(
    folder: Path, manifests: Iterable[Manifest], people: KnownPeople | None = None, **options: Any
) -> AsyncIterator[Site]:
    """A Site that reads repositories of HOST from `folder`."""
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EmbeddedCluster.open())
        for name in ML_KINDS:
            await cluster.create(load_definition(name))
        await furnish(cluster, CONTROL, "ml")
        settings: Mapping[str, Mapping[str, str]] = {
            "argosy-cm": {"source.mirrors": f"{HOST} file://{folder}"}, "argocd-cm": {}, "argocd-rbac-cm": {},
        }  # fmt: skip
        for name, data in settings.items():
            metadata = {"name": name, "namespace": CONTROL}
            await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)})
        for manifest in manifests:
            await put(cluster, manifest)
        desk = ApplicationService(cluster, "a test", CONTROL, CONTROL)
        repositories = Repositories(folder / "mirrors", SourceSettings())
        stack.callback(repositories.close)
        lookout = await stack.enter_async_context(open_cluster_view(desk, repositories, shared_crew()))
        identities = people or KnownPeople({"ann": anything})
        yield Site(desk, lookout, identities, None, ServeOptions(version="1.2.3", **options))


def request(
    site: Site, path: str, who: str = "ann", query: Iterable[tuple[str, str]] = (), **values: str
) -> RequestContext:
    caller = Caller(who, credential_kind="cookie")
    return a_request(site, "GET", path, values, QueryParameters(list(query)), caller=caller)
