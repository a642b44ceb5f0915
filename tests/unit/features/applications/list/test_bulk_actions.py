"""POST /apps/plan: the response when some of the selected Applications cannot be refreshed."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

import pytest

from argosy.annotations import REFRESH
from argosy.features.applications.list.bulk_sync_refresh_page import run_plan
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.web.auth.caller import Caller
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from support.engine import furnish
from support.page_site import CONTROL, KnownPeople, StillLookout, a_request, a_site, anything

pytestmark = pytest.mark.anyio


class LookoutWithoutRows(StillLookout):
    """A cluster view that has no row for any Application yet."""

    def find_row(self, namespace: str, name: str) -> None:
        return None


def application(name: str) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example/ml"}, "destination": {}},
    }


def post(cluster: EmbeddedCluster, apps: list[Manifest]) -> RequestContext:
    site = replace(a_site((), KnownPeople({"ann": anything}), cluster), cluster_view=LookoutWithoutRows(apps))
    names = [("app", f"{CONTROL}/{app['metadata']['name']}") for app in apps]

    async def read() -> bytes:
        return urlencode([("do", "refresh"), *names]).encode()

    return a_request(site, "POST", "/apps/plan", caller=Caller("ann", credential_kind="cookie"), read_body=read)


async def test_bulk_refresh_counts_refreshed_applications_and_lists_failed_ones() -> None:
    async with EmbeddedCluster.open() as cluster:
        await furnish(cluster, CONTROL)
        apps = [await cluster.create(application(name)) for name in ("one", "two", "three")]
        await cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "two"))  # the cluster view still has it
        answer = await run_plan(post(cluster, apps))
        assert isinstance(answer, PageResponse) and answer.code == 409
        assert (answer.values["done"], answer.values["of"]) == (2, 3)
        assert [planned.text for planned in answer.values["planned"]] == [f"{CONTROL}/two"]
        refreshed = await cluster.get(ResourceKey("argoproj.io", "Application", CONTROL, "three"))
        assert refreshed is not None and refreshed["metadata"]["annotations"][REFRESH] == "normal"
